package supervise

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

// init turns this process into a supervisor when New started it as one. It runs here and not in a main function, so
// that a test binary, whose main function is not ours, can be its own supervisor.
func init() {
	spec, ok := os.LookupEnv(marker)
	if !ok {
		return
	}
	var cfg Config
	if err := json.Unmarshal([]byte(spec), &cfg); err != nil {
		fmt.Fprintln(os.Stderr, "supervisor: configuration:", err)
		os.Exit(2)
	}
	os.Exit(run(cfg))
}

// keeper is the state of a process that runs as supervisor.
type keeper struct {
	log      *slog.Logger
	answerMu sync.Mutex
	answers  io.Writer

	mu       sync.Mutex
	lock     *FileLock
	order    []string // names in the order of their starts
	children map[string]*running
}

type running struct {
	Process
	cmd  *exec.Cmd
	done chan struct{}
}

func run(cfg Config) int {
	k := &keeper{log: slog.New(slog.NewTextHandler(os.Stderr, nil)), answers: os.Stdout, children: map[string]*running{}}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	// Caught by a channel that nobody reads and not ignored, since children would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)

	lock, lockErr := TryLock(cfg.Lock)
	k.lock = lock
	requests := make(chan request)
	go readRequests(requests)
	for open := true; open; {
		select {
		case req, more := <-requests:
			switch {
			case !more:
				open = false
			case lockErr != nil:
				k.answer(reply{ID: req.ID, Error: lockErr.Error(), Locked: errors.Is(lockErr, ErrLocked)})
			default:
				k.handle(req)
			}
		case <-signals:
			k.log.Info("told to end")
			if lockErr == nil {
				k.end(cfg)
			}
			return 0
		}
	}
	if lockErr != nil {
		return 0 // the holder has been told
	}
	if cfg.Lease != "" {
		k.log.Info("waiting for the last lease to end")
		_ = os.Stdout.Close() // tells the holder that its part is done
		if lease := waitForLease(k.log, cfg, signals); lease != nil {
			defer func() { _ = lease.Unlock() }()
		}
	}
	k.log.Info("no holder left")
	k.end(cfg)
	_ = lock.Unlock()
	return 0
}

// waitForLease returns the exclusive lock on the lease file when nobody has shared it for the linger time, or nil
// when a signal ends the wait.
func waitForLease(log *slog.Logger, cfg Config, signals <-chan os.Signal) *FileLock {
	free := make(chan *FileLock, 1)
	go func() {
		for {
			lease, err := lockBlocking(cfg.Lease)
			if err != nil {
				log.Error("lease cannot be locked", "error", err)
				free <- nil
				return
			}
			if cfg.Linger == 0 {
				free <- lease
				return
			}
			_ = lease.Unlock()
			<-time.After(cfg.Linger)
			if lease, err = TryLock(cfg.Lease); err == nil {
				free <- lease
				return
			}
		}
	}()
	select {
	case lease := <-free:
		return lease
	case <-signals:
		return nil
	}
}

func readRequests(to chan<- request) {
	defer close(to)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20) // an environment can be long
	for lines.Scan() {
		var req request
		if json.Unmarshal(lines.Bytes(), &req) == nil {
			to <- req
		}
	}
}

func (k *keeper) handle(req request) {
	switch req.Op {
	case opHello:
		k.answer(reply{ID: req.ID})
	case opStart:
		k.start(req.ID, *req.Start)
	case opSignal:
		k.signal(req)
	case opStop:
		go func() { // takes up to the stop timeout; others can be served meanwhile
			k.stop(req.Name)
			k.answer(reply{ID: req.ID})
		}()
	}
}

func (k *keeper) start(id int, p Process) {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		k.answer(reply{ID: id, Error: err.Error()})
		return
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = p.Env, p.Dir, log, log
	cmd.SysProcAttr = sysProcAttr(&p)
	cmd.ExtraFiles = []*os.File{k.lock.file} // an flock lasts until its last descriptor is closed
	if err := cmd.Start(); err != nil {
		k.answer(reply{ID: id, Error: err.Error()})
		return
	}
	k.log.Info("started", "name", p.Name, "pid", cmd.Process.Pid)
	c := &running{Process: p, cmd: cmd, done: make(chan struct{})}
	k.mu.Lock()
	k.children[p.Name] = c
	k.order = append(k.order, p.Name)
	k.mu.Unlock()
	k.answer(reply{ID: id, PID: cmd.Process.Pid})
	go k.reap(c)
}

func (k *keeper) reap(c *running) {
	_ = c.cmd.Wait() // its text is in the state
	k.log.Info("ended", "name", c.Name, "state", c.cmd.ProcessState.String())
	k.mu.Lock()
	delete(k.children, c.Name)
	for i, name := range k.order {
		if name == c.Name {
			k.order = append(k.order[:i], k.order[i+1:]...)
			break
		}
	}
	k.mu.Unlock()
	close(c.done)
	k.answer(reply{Name: c.Name, Exit: c.cmd.ProcessState.String()})
}

func (k *keeper) signal(req request) {
	k.mu.Lock()
	c := k.children[req.Name]
	k.mu.Unlock()
	if c == nil {
		k.answer(reply{ID: req.ID, Error: os.ErrProcessDone.Error()})
		return
	}
	r := reply{ID: req.ID}
	if err := c.cmd.Process.Signal(req.Signal); err != nil {
		r.Error = err.Error()
	}
	k.answer(r)
}

func (k *keeper) stop(name string) {
	k.mu.Lock()
	c := k.children[name]
	k.mu.Unlock()
	if c == nil {
		return
	}
	_ = c.cmd.Process.Signal(c.stopSignal()) // fails only when it has ended
	select {
	case <-c.done:
	case <-time.After(c.stopTimeout()):
		k.log.Warn("killed, it did not stop in time", "name", name)
		_ = c.cmd.Process.Kill()
		<-c.done
	}
}

// end stops the children, by rank and then last started first, and removes what the holder asked for.
func (k *keeper) end(cfg Config) {
	k.remove(cfg.RemoveFirst)
	for name, more := k.nextToStop(); more; name, more = k.nextToStop() {
		k.stop(name)
	}
	k.remove(cfg.RemoveLast)
}

// nextToStop returns the child to be stopped before all others, and whether there is one.
func (k *keeper) nextToStop() (name string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	rank := 0
	for _, started := range slices.Backward(k.order) {
		if r := k.children[started].StopRank; !ok || r > rank {
			name, rank, ok = started, r, true
		}
	}
	return name, ok
}

func (k *keeper) remove(paths []string) {
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			k.log.Error("not removed", "path", path, "error", err)
		}
	}
}

func (k *keeper) answer(r reply) {
	line, err := json.Marshal(r)
	if err != nil {
		k.log.Error("answer not encoded", "error", err)
		return
	}
	k.answerMu.Lock()
	defer k.answerMu.Unlock()
	_, _ = k.answers.Write(append(line, '\n')) // a holder that has gone reads nothing
}
