// Package supervise runs processes that must not outlive the program that wanted them.
//
// A program that starts a database and is then killed with SIGKILL leaves the database running for ever: it had
// no chance to stop it. So the program (the holder) starts a supervisor first: a second copy of its own executable in a
// session of its own, which starts, signals and stops the children on the holder's behalf and holds one end of a pipe
// to it. However the holder ends, the kernel closes the pipe, and the supervisor stops every child, by rank and within a
// rank in the reverse order of their starts, removes what it was told to remove, and ends.
//
// Several holders can share one supervisor through a lease file: each keeps a shared lock on it, and the supervisor
// stops when it can take the lock exclusively, which a killed holder cannot prevent either.
package supervise

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Config says when the supervisor ends and what it leaves behind.
type Config struct {
	// Log collects the supervisor's own messages.
	Log string `json:"log"`
	// Lock is a file that stays locked while the supervisor or one of its children lives, even when the supervisor is
	// killed before them: data in use is not given to a second pair of servers.
	Lock string `json:"lock"`
	// Lease, when set, is the file whose shared locks keep the supervisor alive after the holder's pipe has closed.
	Lease string `json:"lease,omitempty"`
	// Linger is how long the supervisor waits for another lease after the last one has gone. It spares the next test
	// process a fresh start of the servers.
	Linger time.Duration `json:"linger,omitempty"`
	// RemoveFirst are removed before the children are stopped, RemoveLast after. Folders go with their content.
	RemoveFirst []string `json:"removeFirst,omitempty"`
	RemoveLast  []string `json:"removeLast,omitempty"`
}

// marker is the variable that turns a copy of the executable into a supervisor.
const marker = "BANKING_SUPERVISOR"

// Supervisor is the holder's end. Its methods may be called from several goroutines.
type Supervisor struct {
	cmd    *exec.Cmd
	leased bool
	lock   string // Config.Lock
	stdin  io.WriteCloser
	gone   chan struct{} // closed when the supervisor's end of the pipe is closed
	sendMu sync.Mutex

	mu       sync.Mutex
	nextID   int
	waiting  map[int]chan reply
	children map[string]*Child
}

// ErrGone says that the supervisor has ended, and its children with it.
var ErrGone = errors.New("supervisor is gone")

// New starts a supervisor. It ends when Close is called or the calling process ends, whichever way.
func New(cfg Config) (*Supervisor, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own executable for the supervisor: %w", err)
	}
	spec, err := json.Marshal(cfg)
	if err != nil {
		return nil, fmt.Errorf("encode supervisor configuration: %w", err)
	}
	logFile, err := os.OpenFile(cfg.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open supervisor log: %w", err)
	}
	defer func() { _ = logFile.Close() }() // the supervisor has its own copy
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), marker+"="+string(spec))
	cmd.Stderr = logFile
	// A session of its own: Ctrl-C in the terminal goes to the holder alone, which then decides the order of things.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("pipe to supervisor: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("pipe from supervisor: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	s := &Supervisor{cmd: cmd, leased: cfg.Lease != "", lock: cfg.Lock, stdin: stdin, gone: make(chan struct{}),
		waiting: map[int]chan reply{}, children: map[string]*Child{}}
	go s.read(stdout)
	if _, err := s.call(request{Op: opHello}); err != nil {
		return nil, errors.Join(fmt.Errorf("start supervisor: %w", err), s.Close())
	}
	return s, nil
}

// Gone is closed when the supervisor has ended, or has gone on without this holder: see Close.
func (s *Supervisor) Gone() <-chan struct{} { return s.gone }

// Start starts a child. An error says that the program could not be executed; a program that ends at once is a child
// whose Done is closed.
func (s *Supervisor) Start(p Process) (*Child, error) {
	c := &Child{name: p.Name, sup: s, done: make(chan struct{})}
	s.mu.Lock()
	if old, running := s.children[p.Name]; running && !old.ended() {
		s.mu.Unlock()
		return nil, fmt.Errorf("start %s: already running", p.Name)
	}
	s.children[p.Name] = c // before the request: the child may end before the answer is read
	s.mu.Unlock()
	r, err := s.call(request{Op: opStart, Name: p.Name, Start: &p})
	if err != nil {
		s.mu.Lock()
		delete(s.children, p.Name)
		s.mu.Unlock()
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	c.pid = r.PID
	return c, nil
}

// Close ends the lease of this holder. Without a lease file it returns when all children are stopped and the
// supervisor has ended; with one the supervisor lives on until the last lease is gone, and Close returns at once. A
// supervisor that was killed is an error, but even then Close waits for the children.
func (s *Supervisor) Close() error {
	if err := s.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("close pipe to supervisor: %w", err)
	}
	<-s.gone
	if s.leased {
		return s.cmd.Process.Release()
	}
	if err := s.cmd.Wait(); err != nil {
		return errors.Join(fmt.Errorf("supervisor ended: %w", err), s.awaitOrphans())
	}
	return nil
}

// orphanTimeout exceeds every StopTimeout in use: the children of a killed supervisor have been asked to end by then.
const orphanTimeout = 40 * time.Second

// awaitOrphans waits for the children that a killed supervisor has left.
func (s *Supervisor) awaitOrphans() error {
	ctx, cancel := context.WithTimeout(context.Background(), orphanTimeout)
	defer cancel()
	lock, err := LockExclusive(ctx, s.lock)
	if err != nil {
		return fmt.Errorf("processes are left: %w", err)
	}
	return lock.Unlock()
}

func (s *Supervisor) call(req request) (reply, error) {
	answer := make(chan reply, 1)
	s.mu.Lock()
	s.nextID++
	req.ID = s.nextID
	s.waiting[req.ID] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waiting, req.ID)
		s.mu.Unlock()
	}()
	line, err := json.Marshal(req)
	if err != nil {
		return reply{}, fmt.Errorf("encode: %w", err)
	}
	s.sendMu.Lock()
	_, err = s.stdin.Write(append(line, '\n'))
	s.sendMu.Unlock()
	if err != nil {
		return reply{}, errors.Join(ErrGone, err)
	}
	select {
	case r := <-answer:
		if r.Locked {
			return reply{}, ErrLocked
		}
		if r.Error != "" {
			return reply{}, errors.New(r.Error)
		}
		return r, nil
	case <-s.gone:
		return reply{}, ErrGone
	}
}

func (s *Supervisor) read(from io.ReadCloser) {
	defer func() { _ = from.Close() }()
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		var r reply
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			continue // a supervisor of our own executable writes nothing else
		}
		s.mu.Lock()
		if r.ID != 0 {
			if answer, ok := s.waiting[r.ID]; ok {
				answer <- r
			}
		} else if c, ok := s.children[r.Name]; ok && !c.ended() {
			c.exit = r.Exit
			close(c.done)
		}
		s.mu.Unlock()
	}
	close(s.gone) // first: who sees a child end can then see why
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.children {
		if !c.ended() {
			c.exit = "unknown: " + ErrGone.Error()
			close(c.done)
		}
	}
}

// Child is one supervised process.
type Child struct {
	name string
	pid  int
	sup  *Supervisor
	done chan struct{}
	exit string
}

// PID is the child's process id.
func (c *Child) PID() int { return c.pid }

// Done is closed when the child has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Exit says how the child ended, for people ("exit status 1"); it is valid once Done is closed.
func (c *Child) Exit() string {
	<-c.done
	return c.exit
}

// Succeeded says whether the child ended by itself and with 0; it waits for its end.
func (c *Child) Succeeded() bool { return c.Exit() == success }

// success is how a state that is no failure describes itself.
const success = "exit status 0"

// Signal sends a signal to the child alone, not to processes that it started.
func (c *Child) Signal(sig syscall.Signal) error {
	_, err := c.sup.call(request{Op: opSignal, Name: c.name, Signal: sig})
	if err != nil {
		return fmt.Errorf("signal %s: %w", c.name, err)
	}
	return nil
}

// Stop asks the child to end with its StopSignal, kills it after its StopTimeout, and returns when it has ended.
// Stopping a child that has ended is no error.
func (c *Child) Stop() error {
	if c.ended() {
		return nil
	}
	if _, err := c.sup.call(request{Op: opStop, Name: c.name}); err != nil {
		return fmt.Errorf("stop %s: %w", c.name, err)
	}
	<-c.done
	return nil
}

// Kill ends the child with SIGKILL and returns when it has ended.
func (c *Child) Kill() error {
	if c.ended() {
		return nil
	}
	if err := c.Signal(syscall.SIGKILL); err != nil && !c.ended() {
		return err
	}
	<-c.done
	return nil
}

func (c *Child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
