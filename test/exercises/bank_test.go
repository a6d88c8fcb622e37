package exercises

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/banking/exercises"
	"example.com/banking/internal/control"
)

// programs is the folder with the real programs, built once for all tests of this package.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "banking-exercises-")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", dir, "example.com/banking/services/account", "example.com/banking/services/transfer",
		"example.com/banking/services/console", "example.com/banking/cmd/bank")
	if out, err := build.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("building the programs: %w\n%s", err, out)
	}
	build = exec.Command("go", "build", "-o", filepath.Join(dir, "variants")+"/", "example.com/banking/exercises/variants/...") // as make build does
	if out, err := build.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("building the wrong variants: %w\n%s", err, out)
	}
	return dir, nil
})

// TestMain lets all banks run side by side: most of the time they wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(fmt.Sprint(1 + len(groups)))
	}
	code := m.Run()
	if dir, _ := programs(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// bank is a bank of "bank up", with servers of its own and short waits where the true ones are not the point.
type bank struct {
	t        *testing.T
	bin, dir string
	env      []string // of the commands, beside the test's own
}

func openBank(t *testing.T, settings ...string) *bank {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "banking-exercises-bank-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL runs as another user when root starts it
		t.Fatal(err)
	}
	b := &bank{t: t, bin: filepath.Join(bin, "bank"), dir: dir}
	up := exec.Command(b.bin, "up", "--detach", "--any-port", "--dir", dir)
	up.Env = append(os.Environ(), "RETRY_DELAY=1s", "RETRY_INTERVALS=200ms,200ms,200ms")
	up.Env = append(up.Env, settings...)
	t.Cleanup(func() {
		if t.Failed() {
			for _, name := range []string{"up", "account", "transfer"} {
				log, _ := os.ReadFile(filepath.Join(dir, "logs", name+".log"))
				t.Logf("the end of %s.log:\n%s", name, log[max(0, len(log)-4000):])
			}
		}
		if out, err := exec.Command(b.bin, "down", "--dir", dir).CombinedOutput(); err != nil {
			t.Errorf("bank down: %v\n%s", err, out)
		}
		_ = os.RemoveAll(dir)
	})
	if out, err := up.CombinedOutput(); err != nil {
		t.Fatalf("bank up: %v\n%s", err, out)
	}
	return b
}

// command runs a bank command and decodes its JSON.
func (b *bank) command(into any, args ...string) {
	b.t.Helper()
	out, err := b.try(args...)
	if err == nil && into != nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		b.t.Fatalf("bank %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (b *bank) try(args ...string) ([]byte, error) {
	cmd := exec.Command(b.bin, append([]string{"--dir", b.dir, "--json"}, args...)...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return append(out, complaints.Bytes()...), err
	}
	return out, nil
}

// run runs an exercise and returns what it told. interrupt, when not nil, says which signal to send at an event, if any.
func (b *bank) run(number int, interrupt func(exercises.Event) syscall.Signal, args ...string) (events []exercises.Event, passed bool) {
	b.t.Helper()
	cmd := exec.Command(b.bin, append([]string{"--dir", b.dir, "--json", "exercise", "run", fmt.Sprint(number)}, args...)...)
	cmd.Env = append(os.Environ(), b.env...)
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	lines := json.NewDecoder(pipe)
	for lines.More() {
		var e exercises.Event
		if err := lines.Decode(&e); err != nil {
			b.t.Errorf("exercise %d: what it tells cannot be read: %v", number, err)
			break
		}
		events = append(events, e)
		if interrupt == nil {
			continue
		}
		if signal := interrupt(e); signal != 0 {
			if err := cmd.Process.Signal(signal); err != nil {
				b.t.Error(err)
			}
		}
	}
	return events, cmd.Wait() == nil
}

// when sends the signal at the event whose text begins so.
func when(text string, signal syscall.Signal) func(exercises.Event) syscall.Signal {
	return func(e exercises.Event) syscall.Signal {
		if strings.HasPrefix(e.Text, text) {
			return signal
		}
		return 0
	}
}

// expectUsual demands that everything runs as the bank has started it, and that nothing was left behind.
func (b *bank) expectUsual() {
	b.t.Helper()
	var processes []control.Process
	b.command(&processes, "service", "list")
	for _, p := range processes {
		if !p.Usual() {
			b.t.Errorf("left behind: %+v", p)
		}
	}
	var parked []json.RawMessage
	out, err := b.try("parked", "list")
	for deadline := time.Now().Add(time.Minute); err != nil && bytes.Contains(out, []byte("503")) && time.Now().Before(deadline); {
		out, err = b.try("parked", "list") // over a connection that the database has cut; the same call may be made again
	}
	if err == nil {
		err = json.Unmarshal(out, &parked)
	}
	if err != nil {
		b.t.Fatalf("bank parked list: %v\n%s", err, out)
	}
	if len(processes) != 5 || len(parked) != 0 {
		b.t.Errorf("%d processes, want 5; in quarantine: %s", len(processes), parked)
	}
	b.command(nil, "verify")
}

// told is what was told, for the message of a test that fails.
func told(events []exercises.Event) string {
	var text strings.Builder
	for _, e := range events {
		ok := ""
		if e.OK != nil {
			ok = fmt.Sprint(*e.OK)
		}
		fmt.Fprintf(&text, "%s %-8s %-10s %-5s %s %v\n", e.At.Format(time.TimeOnly), e.Kind, e.Proves, ok, e.Text, e.Figures)
	}
	return text.String()
}
