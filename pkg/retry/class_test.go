package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	"github.com/jackc/pgx/v5/pgconn"
)

type unsent struct{ error }

func (unsent) SafeToRetry() bool { return true }

func TestClassOf(t *testing.T) {
	t.Parallel()
	_, missing := os.Open("there is no such file")
	sqlState := func(code string) error { return fmt.Errorf("save: %w", &pgconn.PgError{Code: code}) }
	for _, c := range []struct {
		name string
		err  error
		want retry.Class
	}{
		{"none", nil, ""},
		{"its own", fmt.Errorf("load: %w", retry.Errorf(retry.NotFound, "transfer 7")), retry.NotFound},
		{"its own before what it wraps", retry.Errorf(retry.Invariant, "read: %w", io.EOF), retry.Invariant},
		{"the first one given", retry.Wrap(retry.Timeout, retry.Errorf(retry.Validation, "bad")), retry.Validation},
		{"serialization failure", sqlState("40001"), retry.Conflict},
		{"deadlock", sqlState("40P01"), retry.Conflict},
		{"lock not available", sqlState("55P03"), retry.Conflict},
		{"too many connections", sqlState("53300"), retry.RateLimited},
		{"disk full", sqlState("53100"), retry.Timeout},
		{"starting up", sqlState("57P03"), retry.Timeout},
		{"statement timeout", sqlState("57014"), retry.Timeout},
		{"connection failure", sqlState("08006"), retry.Timeout},
		{"password being changed", sqlState("28P01"), retry.Timeout},
		{"database being restored", sqlState("3D000"), retry.Timeout},
		{"I/O error", sqlState("58030"), retry.Timeout},
		{"a standby", sqlState("25006"), retry.Timeout},
		{"unique violation", sqlState("23505"), retry.Unknown},
		{"not a code", sqlState(""), retry.Unknown},
		{"our shutdown", fmt.Errorf("query: %w", context.Canceled), retry.Cancelled},
		{"deadline", fmt.Errorf("query: %w", context.DeadlineExceeded), retry.Timeout},
		{"socket deadline", os.ErrDeadlineExceeded, retry.Timeout},
		{"refused", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, retry.Timeout},
		{"reset", fmt.Errorf("read: %w", syscall.ECONNRESET), retry.Timeout},
		{"broken pipe", fmt.Errorf("write: %w", syscall.EPIPE), retry.Timeout},
		{"unknown host", &net.DNSError{Err: "no such host"}, retry.Timeout},
		{"closed by the peer", fmt.Errorf("receive: %w", io.ErrUnexpectedEOF), retry.Timeout},
		{"closed by us", net.ErrClosed, retry.Timeout},
		{"the network is down", syscall.ENETDOWN, retry.Timeout},
		{"an address in use", &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}, retry.Timeout},
		{"a file that is missing", fmt.Errorf("load: %w", missing), retry.Unknown},
		{"no space left", &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, retry.Unknown},
		{"a transaction rolled back", sqlState("40000"), retry.Conflict},
		{"nobody knows whether it took effect", sqlState("40003"), retry.Timeout},
		{"a deferred constraint", sqlState("40002"), retry.Unknown},
		{"database dropped", sqlState("57P04"), retry.Timeout},
		{"idle in a transaction", sqlState("25P03"), retry.Timeout},
		{"a value that does not fit", sqlState("22003"), retry.Unknown},
		{"a table that is missing", sqlState("42P01"), retry.Unknown},
		{"nothing was sent", fmt.Errorf("query: %w", unsent{errors.New("conn closed")}), retry.Timeout},
		{"anything else", errors.New("odd"), retry.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := retry.ClassOf(c.err); got != c.want {
				t.Errorf("ClassOf(%v) = %q, want %q", c.err, got, c.want)
			}
		})
	}
}

func TestCountsForBreaker(t *testing.T) {
	t.Parallel()
	for class, want := range map[retry.Class]bool{
		retry.Validation: false, retry.Invariant: false, retry.NotFound: false, retry.Conflict: false, retry.Cancelled: false, "": false,
		retry.Timeout: true, retry.RateLimited: true, retry.Unknown: true,
	} {
		if got := class.CountsForBreaker(); got != want {
			t.Errorf("%q counts: %v, want %v", class, got, want)
		}
	}
}

func TestAfterOf(t *testing.T) {
	t.Parallel()
	busy := errors.New("busy")
	limited := retry.LimitedFor(3*time.Second, busy)
	for _, c := range []struct {
		name string
		err  error
		want time.Duration
	}{
		{"none", nil, 0},
		{"without a class", busy, 0},
		{"of a class, without a delay", retry.Errorf(retry.RateLimited, "busy"), 0},
		{"given", limited, 3 * time.Second},
		{"given below", fmt.Errorf("call: %w", limited), 3 * time.Second},
		{"kept by Wrap", retry.Wrap(retry.Timeout, limited), 3 * time.Second},
		{"less than none", retry.LimitedFor(-time.Second, busy), 0},
		{"less than none, by hand", &retry.Error{Class: retry.RateLimited, Err: busy, After: -1}, 0},
		{"of the error that has the class", &retry.Error{Class: retry.Invariant, Err: limited}, 0},
	} {
		if got := retry.AfterOf(c.err); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if class := retry.ClassOf(limited); class != retry.RateLimited || limited.Error() != "busy" || !errors.Is(limited, busy) {
		t.Errorf("%v is of class %q", limited, class)
	}
	if class := retry.ClassOf(retry.LimitedFor(time.Second, retry.Errorf(retry.Timeout, "busy"))); class != retry.RateLimited {
		t.Errorf("class %q", class)
	}
	if retry.LimitedFor(time.Second, nil) != nil {
		t.Error("no error has become one")
	}
}

func TestClassifiersComeBeforeTheGeneralRules(t *testing.T) {
	t.Parallel()
	legs := func(err error) (retry.Class, bool) {
		var pg *pgconn.PgError
		return retry.Conflict, errors.As(err, &pg) && pg.Code == "23505"
	}
	if got := retry.ClassOf(&pgconn.PgError{Code: "23505"}, legs); got != retry.Conflict {
		t.Errorf("its own error: %q", got)
	}
	if got := retry.ClassOf(io.EOF, legs); got != retry.Timeout {
		t.Errorf("an error that is not its own: %q", got)
	}
	if got := retry.ClassOf(retry.Errorf(retry.Unknown, "x"), legs); got != retry.Unknown {
		t.Errorf("an error with a class: %q", got)
	}
}
