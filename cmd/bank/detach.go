package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// detached names, in the environment of a bank that was started to run in the background, the file descriptor on which
// it says that it is ready.
const detached = "BANK_DETACHED_READY_FD"

// detach starts 'bank up' in a session of its own, shows its progress, and returns once it is ready or has failed. A
// detach that is interrupted, or killed, takes the unfinished bank with it.
func detach(ctx context.Context, term *terminal, anyPort bool) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own executable: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(term.dir, "logs"), 0o755); err != nil {
		return fmt.Errorf("folder of the bank: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(term.dir, "logs", "up.log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("log of the bank: %w", err)
	}
	defer func() { _ = log.Close() }()
	progress, err := os.Open(log.Name()) // with a position of its own
	if err != nil {
		return fmt.Errorf("log of the bank: %w", err)
	}
	defer func() { _ = progress.Close() }()
	if _, err := progress.Seek(0, io.SeekEnd); err != nil {
		return fmt.Errorf("log of the bank: %w", err)
	}
	ready, tell, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("pipe to the bank: %w", err)
	}
	defer func() { _ = ready.Close() }()
	cmd := exec.Command(exe, "up", "--dir", term.dir)
	if anyPort {
		cmd.Args = append(cmd.Args, "--any-port")
	}
	const firstExtraFile = 3
	cmd.Env = append(os.Environ(), detached+"="+strconv.Itoa(firstExtraFile))
	cmd.ExtraFiles = []*os.File{tell}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("start the bank: %w", err), tell.Close())
	}
	if err := tell.Close(); err != nil { // ours; the bank has its own
		return fmt.Errorf("pipe to the bank: %w", err)
	}
	interrupted := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer interrupted()
	isReady, err := follow(ready, progress, term.out)
	if err != nil {
		return fmt.Errorf("wait for the bank: %w", err)
	}
	if !isReady {
		_ = cmd.Wait() // what it said has been shown
		_, _ = io.Copy(term.err, progress)
		return exitError(1)
	}
	return cmd.Process.Release()
}

// follow copies the bank's progress until the ready pipe ends, and returns whether the bank has said that it is ready.
func follow(ready, progress io.Reader, to io.Writer) (bool, error) {
	said := make(chan []byte, 1)
	go func() {
		text, _ := io.ReadAll(ready) // no text means not ready, for whatever reason
		said <- text
	}()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case text := <-said:
			_, err := io.Copy(to, progress)
			return len(text) > 0, err
		case <-tick.C:
			if _, err := io.Copy(to, progress); err != nil {
				return false, err
			}
		}
	}
}

// readyPipe returns the pipe to the waiting detach, or nil. It must be called before any process is started: the servers
// would inherit the pipe, and detach waits until nobody holds it.
func readyPipe() (*os.File, error) {
	number := os.Getenv(detached)
	if number == "" {
		return nil, nil
	}
	fd, err := strconv.Atoi(number)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", detached, err)
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "ready"), nil
}

// announceReady tells the waiting detach that the bank is ready.
func announceReady(pipe *os.File) error {
	if pipe == nil {
		return nil
	}
	if _, err := pipe.WriteString("ready\n"); err != nil {
		return fmt.Errorf("say that the bank is ready: %w", err)
	}
	return pipe.Close()
}
