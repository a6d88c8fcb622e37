package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// server is a PostgreSQL that follows a script: it tells what the driver makes of each way in which a server can fail,
// without one that does.
func server(t *testing.T, script func(net.Conn, *pgproto3.Backend)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(t.Context(), func() { _ = conn.Close() }) // a driver that gave up closes it 15 s later
			script(conn, pgproto3.NewBackend(conn, conn))
			stop()
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	return fmt.Sprintf("postgres://teller:secret@%s/bank?sslmode=disable&connect_timeout=30", listener.Addr())
}

// say sends messages; whether they arrive is for the other side to find out.
func say(b *pgproto3.Backend, messages ...pgproto3.BackendMessage) {
	for _, m := range messages {
		b.Send(m)
	}
	_ = b.Flush()
}

func fatal(code string) *pgproto3.ErrorResponse {
	return &pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: code, Message: "as the script says"}
}

// refusing refuses every connection with a code.
func refusing(code string) func(net.Conn, *pgproto3.Backend) {
	return func(_ net.Conn, b *pgproto3.Backend) {
		_, _ = b.ReceiveStartupMessage()
		say(b, fatal(code))
	}
}

// answering lets a client in and answers its first query.
func answering(answer func(net.Conn, *pgproto3.Backend)) func(net.Conn, *pgproto3.Backend) {
	return func(conn net.Conn, b *pgproto3.Backend) {
		_, _ = b.ReceiveStartupMessage()
		say(b, &pgproto3.AuthenticationOk{}, &pgproto3.ReadyForQuery{TxStatus: 'I'})
		_, _ = b.Receive()
		answer(conn, b)
	}
}

func silent(conn net.Conn, _ *pgproto3.Backend) { _, _ = io.Copy(io.Discard, conn) }

func TestClassOfWhatTheDatabaseDriverSays(t *testing.T) {
	t.Parallel()
	connect := func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			_ = conn.Close(ctx)
		}
		return err
	}
	query := func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return fmt.Errorf("the script does not get as far as the query: %w", err)
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, "select 1", pgx.QueryExecModeSimpleProtocol)
		return err
	}
	// Two calls: the first one ends the connection, the second finds it closed.
	queryTwice := func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return fmt.Errorf("the script does not get as far as the query: %w", err)
		}
		defer conn.Close(ctx)
		_, _ = conn.Exec(ctx, "select 1", pgx.QueryExecModeSimpleProtocol)
		_, err = conn.Exec(ctx, "select 1", pgx.QueryExecModeSimpleProtocol)
		return err
	}
	soon := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, 50*time.Millisecond)
	}
	over := func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx, cancel
	}
	for name, c := range map[string]struct {
		script func(net.Conn, *pgproto3.Backend) // nil: nothing listens
		call   func(context.Context, string) error
		within func(context.Context) (context.Context, context.CancelFunc)
		also   func(error) bool // what the error is, so that a case cannot pass by another error than it means
		want   retry.Class
	}{
		"nothing listens":           {nil, connect, nil, isConnect, retry.Timeout},
		"closes at once":            {func(net.Conn, *pgproto3.Backend) {}, connect, nil, isConnect, retry.Timeout},
		"is starting up":            {refusing("57P03"), connect, nil, isCode("57P03"), retry.Timeout},
		"is shutting down":          {refusing("57P01"), connect, nil, isCode("57P01"), retry.Timeout},
		"has no slot left":          {refusing("53300"), connect, nil, isCode("53300"), retry.RateLimited},
		"wants a new password":      {refusing("28P01"), connect, nil, isCode("28P01"), retry.Timeout},
		"is being restored":         {refusing("3D000"), connect, nil, isCode("3D000"), retry.Timeout},
		"does not answer":           {silent, connect, soon, isConnect, retry.Timeout},
		"does not answer a query":   {answering(silent), query, soon, pgconn.Timeout, retry.Timeout},
		"dies in a query":           {answering(func(net.Conn, *pgproto3.Backend) {}), query, nil, is(pgconn.ErrConnClosed), retry.Timeout},
		"is killed in a query":      {answering(reset), query, nil, is(pgconn.ErrConnClosed), retry.Timeout},
		"answers gibberish":         {answering(gibberish), query, nil, is(pgconn.ErrConnClosed), retry.Timeout},
		"ends the session":          {answering(saying(fatal("57P01"))), query, nil, isCode("57P01"), retry.Timeout},
		"sees a deadlock":           {answering(saying(fatal("40P01"))), query, nil, isCode("40P01"), retry.Conflict},
		"cancels a query":           {answering(saying(fatal("57014"))), query, nil, isCode("57014"), retry.Timeout},
		"sees a key broken":         {answering(saying(fatal("23505"))), query, nil, isCode("23505"), retry.Unknown},
		"was lost before":           {answering(func(net.Conn, *pgproto3.Backend) {}), queryTwice, nil, pgconn.SafeToRetry, retry.Timeout},
		"is asked by one who stops": {answering(silent), connect, over, is(context.Canceled), retry.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := "postgres://teller:secret@" + unusedAddress(t) + "/bank?sslmode=disable"
			if c.script != nil {
				url = server(t, c.script)
			}
			ctx := t.Context()
			if c.within != nil {
				var cancel context.CancelFunc
				ctx, cancel = c.within(ctx)
				defer cancel()
			}
			err := c.call(ctx, url)
			if err == nil || !c.also(err) {
				t.Fatalf("the case is another one: %v", err)
			}
			if got := retry.ClassOf(fmt.Errorf("save: %w", err)); got != c.want {
				t.Errorf("class %q of %v (%T), want %q", got, err, err, c.want)
			}
		})
	}
}

func isConnect(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect)
}

func isCode(code string) func(error) bool {
	return func(err error) bool {
		var answer *pgconn.PgError
		return errors.As(err, &answer) && answer.Code == code
	}
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

func saying(messages ...pgproto3.BackendMessage) func(net.Conn, *pgproto3.Backend) {
	return func(_ net.Conn, b *pgproto3.Backend) { say(b, messages...) }
}

// reset ends the connection as a process that is killed does.
func reset(conn net.Conn, _ *pgproto3.Backend) { _ = conn.(*net.TCPConn).SetLinger(0) }

func unusedAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// gibberish has a length that cannot be.
func gibberish(conn net.Conn, _ *pgproto3.Backend) { _, _ = conn.Write([]byte{'Z', 0, 0, 0, 3}) }

// What the driver says of a misuse tells nothing about trying again.
func TestClassOfMisuseIsUnknown(t *testing.T) {
	t.Parallel()
	for _, err := range []error{pgx.ErrNoRows, pgx.ErrTooManyRows, pgx.ErrTxClosed, pgx.ErrTxCommitRollback} {
		if got := retry.ClassOf(fmt.Errorf("load: %w", err)); got != retry.Unknown {
			t.Errorf("class %q of %v", got, err)
		}
	}
}
