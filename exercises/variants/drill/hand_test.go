package drill

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/banking/exercises/variants/toybank"
)

// The page's lines for people, typed one after the other.
func TestByHand(t *testing.T) {
	t.Parallel()
	c, env := config(t)
	program := func(arguments ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), filepath.Join(c.Programs, "ackbeforecommit"), arguments...)
		cmd.Env = append(os.Environ(), "AMQP_URL="+c.AMQPURL, "TRANSFER_DATABASE_URL="+c.DatabaseURL)
		return cmd
	}
	run := func(arguments ...string) string {
		t.Helper()
		out, err := program(arguments...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", arguments, err, out)
		}
		return string(out)
	}
	run("pay", "2500")
	run("pay", "2500")
	if all := run("sum"); !strings.Contains(all, "alice 1950.00 + bob 2000.00 + in transit 50.00 = 4000.00; expected 4000.00; drift 0.00") {
		t.Errorf("before: %s", all)
	}

	serve := program()
	serve.Env = append(serve.Env, "STOP_AT=between")
	printed, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(printed)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), toybank.Stopped) {
	}
	if err := serve.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = serve.Wait() // it was killed
	if !strings.HasPrefix(lines.Text(), toybank.Stopped+"between") {
		t.Fatalf("it did not stop between its two steps, and said last %q", lines.Text())
	}

	b, err := toybank.Open(t.Context(), toybank.Address{AMQPURL: c.AMQPURL, DatabaseURL: c.DatabaseURL, Name: "wrong_ackbeforecommit"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := (&stage{}).settle(t.Context(), b); err != nil { // who types is slower than the broker
		t.Fatal(err)
	}
	if all := run("sum"); !strings.Contains(all, "in transit 25.00 = 3975.00; expected 4000.00; drift -25.00") {
		t.Errorf("after the kill: %s", all)
	}
	run("freeze")
	if out, err := program("pay", "2500").CombinedOutput(); err == nil || !strings.Contains(string(out), "alice has too little, or is frozen") {
		t.Errorf("payment from a frozen account: %v\n%s", err, out)
	}
	run("drop")
	for _, q := range env.Queues(t) {
		t.Errorf("the queue %s is left", q.Name)
	}
}

// A program that is told neither where the broker nor where the database is says how to get both.
func TestByHandWithoutABank(t *testing.T) {
	t.Parallel()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "requeue"), "sum")
	cmd.Env = []string{}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "make up") {
		t.Errorf("without a bank: %v\n%s", err, out)
	}
}

// Nobody is there to stop a program whose drill was killed: it has to notice by itself.
func TestVariantEndsWithItsDrill(t *testing.T) {
	t.Parallel()
	c, _ := config(t)
	s := &stage{Config: c, Variant: variants[0]}
	p, err := s.start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer p.abandon()
	if err := p.stdin.Close(); err != nil { // as the kernel does for a process that is gone
		t.Fatal(err)
	}
	if _, err := p.await(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	if code := p.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}
