package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"example.com/banking/internal/supervise"
	"example.com/banking/internal/testenv/servers"
)

// service is one of the bank's own programs, run from the folder that the bank program lies in.
type service struct {
	name    string
	process supervise.Process // without its address
	token   string            // its ADMIN_TOKEN, by which it is told from another bank's
	run     func(supervise.Process) (*supervise.Child, error)
	ports   *servers.Ports // where this bank's ports are taken

	port   int
	url    string
	child  *supervise.Child
	logged atomic.Int64 // how long its log was when it was started: what stands there is of earlier runs
}

// stopTimeout exceeds a service's SHUTDOWN_GRACE of 15 s, so that a graceful stop is never cut short.
const stopTimeout = 20 * time.Second

// portAttempts is how many ports a service is given before its start has failed.
const portAttempts = 5

// errEndedEarly says that a service ended before it was ready.
var errEndedEarly = errors.New("ended before it was ready")

// start starts the service on the port, or on a free one when that is somebody else's. 0 is any.
func (s *service) start(port int, term *terminal) error {
	s.port = port
	if port == 0 || !s.ports.Take(port) {
		var err error
		if s.port, err = s.ports.TakeAny(); err != nil {
			return err
		}
	}
	if port != 0 && s.port != port {
		term.printf("  port %d is taken, %s listens on %d\n", port, s.name, s.port)
	}
	s.url = "http://" + s.address()
	return s.launch(nil)
}

func (s *service) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// restart starts the service where it was, so that the addresses that people have stay valid. No other bank has that port now, but any
// program can listen on it that does not ask whose it is.
func (s *service) restart(changed map[string]string) error {
	if !servers.PortFree(s.port) {
		return fmt.Errorf("port %d is taken by another program, and %s does not change its own: end that program first", s.port, s.name)
	}
	return s.launch(changed)
}

// launch runs the program. What is changed in its environment counts for this start only.
func (s *service) launch(changed map[string]string) error {
	p := s.process
	p.Env = append(slices.Clone(p.Env), "HTTP_ADDR="+s.address())
	for name, value := range changed {
		p.Env = append(p.Env, name+"="+value) // of two of a name the last counts
	}
	s.logged.Store(0)
	if log, err := os.Stat(p.Log); err == nil {
		s.logged.Store(log.Size())
	}
	child, err := s.run(p)
	if err == nil {
		s.child = child
	}
	return err
}

// bringUp waits until the service that was started is ready. Between the choice of a port and its use another
// program can take it; then the service gets another port.
func (s *service) bringUp(ctx context.Context, term *terminal) error {
	began := time.Now()
	for attempt := 1; ; attempt++ {
		err := s.awaitReady(ctx, s.child, term)
		if err == nil {
			term.printf("  %s is ready on %s (%.1f s)\n", s.name, s.url, time.Since(began).Seconds())
			return nil
		}
		if !errors.Is(err, errEndedEarly) || servers.PortFree(s.port) || attempt == portAttempts {
			return err
		}
		if err := s.start(s.port, term); err != nil {
			return err
		}
	}
}

const readyInterval = 100 * time.Millisecond

// awaitReady polls /readyz until the service that was started as this child is ready. One that ends before it is ready has its log's end
// shown, since the reason stands there.
func (s *service) awaitReady(ctx context.Context, child *supervise.Child, term *terminal) error {
	began := time.Now()
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	client := &http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	reason := ""
	for {
		ready, why := s.probe(ctx, client)
		if ready && !over(child) { // or it is somebody else who answers
			return nil
		}
		if why != reason && time.Since(began) > 2*time.Second {
			reason = why
			term.printf("  waiting for %s: %s\n", s.name, reason)
		}
		select {
		case <-child.Done():
			return s.endedEarly(child)
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready: %w: %s", s.name, ctx.Err(), why)
		case <-tick.C:
		}
	}
}

func (s *service) endedEarly(child *supervise.Child) error {
	return fmt.Errorf("%s %w (%s):\n%s", s.name, errEndedEarly, child.Exit(), s.lastLines())
}

// probe asks whether the service is ready, and whether it is this one: before a service finds its port taken, another
// bank's may answer there. That one refuses the admin token.
func (s *service) probe(ctx context.Context, client *http.Client) (ready bool, why string) {
	status, text := s.get(ctx, client, "/readyz", "") // nobody is told the token who has no use for it
	if status != http.StatusOK {
		return false, text
	}
	switch status, text = s.get(ctx, client, "/admin", s.token); status {
	case 0:
		return false, text
	case http.StatusUnauthorized, http.StatusForbidden:
		return false, "another bank answers on " + s.address()
	default:
		return true, ""
	}
}

// get returns the answer's status and text, or 0 and the reason why there is none. token may be "".
func (s *service) get(ctx context.Context, client *http.Client, path, token string) (status int, text string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return 0, err.Error()
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "does not answer yet"
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, strings.TrimSpace(string(body))
}

// mostLastLines is how much of a log an error shows, in bytes.
const mostLastLines = 2000

// lastLines are those that the service wrote since it was started, from the end: the reason why it ended stands there.
func (s *service) lastLines() string {
	content, err := os.ReadFile(s.process.Log)
	if err != nil {
		return err.Error()
	}
	if from := s.logged.Load(); from <= int64(len(content)) {
		content = content[from:]
	}
	if len(content) > mostLastLines {
		content = content[len(content)-mostLastLines:]
		if _, whole, cut := bytes.Cut(content, []byte("\n")); cut {
			content = whole
		}
	}
	return fmt.Sprintf("%s\n(the whole log: %s)", bytes.TrimSpace(content), s.process.Log)
}
