package drill

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Programs finds the folder of the built variants: beside the program that runs, where 'make build' puts them, or, when there is a Go
// toolchain and this is the module's folder, in a temporary folder into which they are built. cleanup removes that.
func Programs(ctx context.Context) (dir string, cleanup func(), err error) {
	exe, err := os.Executable()
	if err != nil {
		return "", nil, fmt.Errorf("find own folder: %w", err)
	}
	beside := filepath.Join(filepath.Dir(exe), "variants")
	if _, err := os.Stat(filepath.Join(beside, variants[0].Name)); err == nil {
		return beside, func() {}, nil
	}
	dir, err = os.MkdirTemp("", "wrong-variants-")
	if err != nil {
		return "", nil, fmt.Errorf("folder for the variants: %w", err)
	}
	cleanup = func() { _ = os.RemoveAll(dir) }
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", dir+string(filepath.Separator),
		"example.com/banking/exercises/variants/...")
	if out, err := build.CombinedOutput(); err != nil {
		cleanup()
		return "", nil, fmt.Errorf("the wrong variants are not in %s (make build puts them there), and cannot be built here: %w\n%s",
			beside, err, out)
	}
	return dir, cleanup, nil
}

// process is a variant that runs.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	lines chan line // what it prints; closed when it has ended
	heard func(line string)
}

type line struct {
	text string
	at   time.Time
}

// start starts a variant and returns when it has begun. It is killed when ctx ends, and ends itself when this process does.
func (s *stage) start(ctx context.Context, stopAt string) (*process, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.Programs, s.Name))
	if s.right != s.swapped {
		cmd.Args = append(cmd.Args, "--right")
	}
	cmd.Env = append(os.Environ(), "AMQP_URL="+s.AMQPURL, "TRANSFER_DATABASE_URL="+s.DatabaseURL, "TOYBANK="+s.name(), "STOP_AT="+stopAt)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	printed, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	err = cmd.Start()
	_ = write.Close() // the child has it now
	if err != nil {
		_ = printed.Close()
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	p := &process{cmd: cmd, stdin: stdin, lines: make(chan line, 100), heard: func(line string) { s.heard(s.Name, line) }}
	go func() {
		defer close(p.lines)
		defer func() { _ = printed.Close() }()
		for text := bufio.NewScanner(printed); text.Scan(); {
			p.lines <- line{text.Text(), time.Now()}
		}
	}()
	if _, err := p.await(ctx, s.Name); err != nil {
		p.abandon()
		return nil, err
	}
	return p, nil
}

// await reads on until a line begins with one of the prefixes. Without any it reads until the program has ended.
func (p *process) await(ctx context.Context, prefixes ...string) (line, error) {
	for {
		select {
		case <-ctx.Done():
			return line{}, fmt.Errorf("wait for the variant: %w", ctx.Err())
		case l, more := <-p.lines:
			if !more && len(prefixes) == 0 {
				return line{}, nil
			}
			if !more {
				return line{}, fmt.Errorf("the variant has ended and was to print %q", prefixes)
			}
			p.heard(l.text)
			for _, prefix := range prefixes {
				if strings.HasPrefix(l.text, prefix) {
					return l, nil
				}
			}
		}
	}
}

// kill is kill -9. It says how long the program has kept a processor busy.
func (p *process) kill(ctx context.Context) (cpu time.Duration, err error) {
	if err := p.cmd.Process.Kill(); err != nil {
		return 0, fmt.Errorf("kill: %w", err)
	}
	if _, err := p.await(ctx); err != nil {
		return 0, err
	}
	_ = p.cmd.Wait() // an error that says what is looked at next
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		return 0, fmt.Errorf("the variant was to be killed, and has ended otherwise: %s", p.cmd.ProcessState)
	}
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(), nil
}

// stop asks the program to finish what it has and to end.
func (p *process) stop(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop: %w", err)
	}
	if _, err := p.await(ctx); err != nil {
		return err
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("the variant was asked to stop: %w", err)
	}
	return nil
}

// abandon ends the program, whatever became of it.
func (p *process) abandon() {
	_ = p.stdin.Close()
	_ = p.cmd.Process.Kill()
	for range p.lines { // so that its reader ends
	}
	_ = p.cmd.Wait()
}
