package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binaries is the folder with the real programs, built once for all tests of this package.
var binaries = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "banking-e2e-")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", dir, "example.com/banking/services/account",
		"example.com/banking/services/transfer", "example.com/banking/services/console", "example.com/banking/cmd/bank")
	if out, err := build.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("building the programs: %w\n%s", err, out)
	}
	return dir, nil
})

// TestMain lets twice as many tests run side by side as there are cores, unless the command line says otherwise: most of their time
// they wait for programs and for delays that are part of the test.
func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0)))
	}
	code := m.Run()
	if dir, _ := binaries(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// replica is one running copy of a service. It can be killed and started again on the same port, as a supervisor would.
type replica struct {
	t    *testing.T
	name string
	path string
	env  []string

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
	log  *tail
	url  string
}

// startReplica starts a service with the given environment and waits until it listens, not until it is ready.
func startReplica(t *testing.T, name, service string, env map[string]string) *replica {
	t.Helper()
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{t: t, name: name, path: filepath.Join(dir, service), log: &tail{}}
	r.env = append(os.Environ(), "HTTP_ADDR=127.0.0.1:0", "LOG_FORMAT=json")
	for key, value := range env {
		r.env = append(r.env, key+"="+value)
	}
	t.Cleanup(func() {
		r.kill()
		if t.Failed() {
			t.Logf("last lines of %s:\n%s", r.name, r.log)
		}
	})
	if err := r.start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// start runs the program and learns from its log which address it listens on.
func (r *replica) start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	cmd := exec.Command(r.path)
	cmd.Env = r.env
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	cmd.Stdout = cmd.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", r.name, err)
	}
	listening := make(chan string, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(pipe)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			r.log.add(lines.Text())
			var line struct {
				Addr string `json:"addr"`
			}
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Addr != "" {
				select {
				case listening <- line.Addr:
				default:
				}
			}
		}
		_ = cmd.Wait()
	}()
	r.cmd, r.done = cmd, done
	select {
	case addr := <-listening:
		r.keep(addr)
		return nil
	case <-done:
		return fmt.Errorf("%s ended before it listened:\n%s", r.name, r.log)
	case <-time.After(60 * time.Second):
		return fmt.Errorf("%s does not listen:\n%s", r.name, r.log)
	}
}

// keep makes the address of the first start that of all later ones: clients find the replica again. After that it never changes,
// so that they may read it at any time.
func (r *replica) keep(addr string) {
	if r.url != "" {
		return
	}
	r.url = "http://" + addr
	for i, entry := range r.env {
		if strings.HasPrefix(entry, "HTTP_ADDR=") {
			r.env[i] = "HTTP_ADDR=" + addr
		}
	}
}

// kill ends the program at once, as a power cut would.
func (r *replica) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd == nil {
		return
	}
	_ = r.cmd.Process.Kill()
	<-r.done
	r.cmd = nil
}

// stop asks the program to end and returns its exit code.
func (r *replica) stop() int {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-r.done:
	case <-time.After(60 * time.Second):
		r.t.Fatalf("%s does not stop:\n%s", r.name, r.log)
	}
	code := r.cmd.ProcessState.ExitCode()
	r.cmd = nil
	return code
}

// ended waits until the program has ended by itself and returns its exit code.
func (r *replica) ended() int {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.done:
	case <-time.After(90 * time.Second):
		r.t.Fatalf("%s does not end:\n%s", r.name, r.log)
	}
	code := r.cmd.ProcessState.ExitCode()
	r.cmd = nil
	return code
}

// restart starts the program again after it has ended by itself, as a supervisor would.
func (r *replica) restart() {
	r.t.Helper()
	if err := r.start(); err != nil {
		r.t.Fatal(err)
	}
	r.awaitReady()
}

func (r *replica) pid() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cmd.Process.Pid
}

// awaitReady waits until /readyz says yes.
func (r *replica) awaitReady() {
	r.t.Helper()
	var last string
	eventually(r.t, 90*time.Second, func() bool {
		resp, err := http.Get(r.url + "/readyz")
		if err != nil {
			last = err.Error()
			return false
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		last = string(body)
		return resp.StatusCode == http.StatusOK
	}, func() string { return r.name + " is not ready: " + last })
}

// tail keeps the last lines of a log.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (l *tail) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == 60 {
		l.lines = append(l.lines[:0], l.lines[1:]...)
	}
	l.lines = append(l.lines, line)
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// eventually asks until the answer is yes, or fails the test with what explain says.
func eventually(t *testing.T, limit time.Duration, ask func() bool, explain func() string) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for !ask() {
		select {
		case <-again.C:
		case <-deadline.C:
			t.Fatalf("after %s: %s", limit, explain())
		}
	}
}

// call makes one HTTP request and returns its status and body; status 0 means that no answer came.
func call(method, url string, body any, headers ...string) (int, []byte) {
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return 0, []byte(err.Error())
		}
		reader = bytes.NewReader(raw)
	}
	request, err := http.NewRequest(method, url, reader)
	if err != nil {
		return 0, []byte(err.Error())
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{Timeout: 15 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return response.StatusCode, answer
}
