package service_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/banking/pkg/service"
	"github.com/labstack/echo/v4"
)

// The tests of Main start this test binary again as a service, since signals and exit codes belong to a process.
const behaviour = "SERVICE_TEST_BEHAVIOUR"

type exitError struct{ error }

func (exitError) ExitCode() int { return 3 }

type mainConfig struct {
	service.Config
	Number int `env:"NUMBER" envDefault:"7" desc:"a number"`
}

func asService() bool {
	how, wanted := os.LookupEnv(behaviour)
	if !wanted {
		return false
	}
	service.Main("example", service.Defaults{"HTTP_ADDR": "127.0.0.1:0"}, func(ctx context.Context, cfg mainConfig, log *slog.Logger) error {
		switch how {
		case "serve":
			server, err := service.NewHTTP(service.HTTPConfig{Addr: cfg.HTTPAddr, Grace: cfg.ShutdownGrace, Logger: log, Checks: []service.Check{
				{Name: "number", Ready: func(context.Context) error {
					if cfg.Number == 13 {
						return errors.New("an unlucky number")
					}
					return nil
				}},
			}})
			if err != nil {
				return err
			}
			return service.Run(ctx, cfg.ShutdownGrace, log, service.Component{Name: "http", Run: server.Run})
		case "hang":
			log.Info("hanging")
			<-ctx.Done()
			select {}
		case "canceled":
			log.Info("waiting")
			<-ctx.Done()
			return ctx.Err()
		case "panic":
			panic("oh")
		case "exit 3":
			return exitError{errors.New("queue differs")}
		}
		return errors.New("failed")
	})
	return true
}

// program runs the service and returns its exit code and what it wrote. onLine is called for each line on standard error.
func program(t *testing.T, how string, environ []string, onLine func(p *os.Process, line string), args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(environ, behaviour+"="+how)
	var out bytes.Buffer
	cmd.Stdout = &out
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	scanner := bufio.NewScanner(pipe)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
		if onLine != nil {
			onLine(cmd.Process, scanner.Text())
		}
	}
	_ = cmd.Wait()
	if ctx.Err() != nil {
		t.Fatalf("did not end; it said\n%s", strings.Join(lines, "\n"))
	}
	return cmd.ProcessState.ExitCode(), out.String(), strings.Join(lines, "\n")
}

func signalOn(text string, signals ...os.Signal) func(*os.Process, string) {
	return func(p *os.Process, line string) {
		if len(signals) > 0 && (strings.Contains(line, text) || strings.Contains(line, "stopping")) {
			_ = p.Signal(signals[0])
			signals = signals[1:]
		}
	}
}

// signalTwice sends a signal twice at once, as to a process and to its group.
func signalTwice(text string) func(*os.Process, string) {
	return func(p *os.Process, line string) {
		if strings.Contains(line, text) {
			_ = p.Signal(syscall.SIGTERM)
			_ = p.Signal(syscall.SIGTERM)
		}
	}
}

func TestMainExitCodes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, how string
		environ   []string
		args      []string
		onLine    func(*os.Process, string)
		code      int
		says      string // on either output
	}{
		{name: "help", args: []string{"--help"}, code: 0, says: "NUMBER          7            a number"},
		{name: "unknown argument", args: []string{"serve"}, code: 2, says: `unknown argument "serve"`},
		{name: "too many arguments", args: []string{"--help", "--health"}, code: 2, says: "too many arguments"},
		{name: "wrong configuration", environ: []string{"NUMBER=x", "LOG_FORMAT=y"}, code: 2, says: "wrong configuration:\n  LOG_FORMAT=\"y\": wanted json or text\n  NUMBER=\"x\": wanted a whole number"},
		{name: "failure", code: 1, says: `"error":"failed"`},
		{name: "panic", how: "panic", code: 1, says: `"reason":"oh"`},
		{name: "its own code", how: "exit 3", code: 3, says: "queue differs"},
		{name: "address in use or impossible", how: "serve", environ: []string{"HTTP_ADDR=192.0.2.1:1"}, code: 1, says: "take the address 192.0.2.1:1"},
		{name: "SIGTERM", how: "serve", onLine: signalOn("listening", syscall.SIGTERM), code: 0, says: "service stopped"},
		{name: "SIGINT", how: "serve", onLine: signalOn("listening", syscall.SIGINT), code: 0, says: "service stopped"},
		{name: "context's own error after a signal", how: "canceled", onLine: signalOn("waiting", syscall.SIGTERM), code: 0, says: "service stopped"},
		{name: "one signal that comes twice", how: "serve", onLine: signalTwice("listening"), code: 0, says: "service stopped"},
		{name: "second signal", how: "hang", onLine: signalOn("hanging", syscall.SIGTERM, syscall.SIGINT), code: 130, says: "exiting at once"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := program(t, test.how, test.environ, test.onLine, test.args...)
			if code != test.code || !strings.Contains(stdout+stderr, test.says) {
				t.Errorf("exit code %d, want %d, and %q in\n%s%s", code, test.code, test.says, stdout, stderr)
			}
		})
	}
}

func TestHealthFlagAsksTheRunningService(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		number string
		code   int
		says   string
	}{{"7", 0, `"number":"ok"`}, {"13", 1, "an unlucky number"}} {
		var address string
		program(t, "serve", []string{"NUMBER=" + test.number}, func(p *os.Process, line string) {
			if !strings.Contains(line, "listening") {
				return
			}
			_, rest, _ := strings.Cut(line, `"addr":"127.0.0.1:`)
			port, _, _ := strings.Cut(rest, `"`)
			for _, host := range []string{"127.0.0.1", "0.0.0.0", ""} {
				address = host + ":" + port
				code, stdout, stderr := program(t, "", []string{"HTTP_ADDR=" + address}, nil, "--health")
				if code != test.code || !strings.Contains(stdout, test.says) {
					t.Errorf("HTTP_ADDR=%s: exit code %d, want %d with %q: %s%s", address, code, test.code, test.says, stdout, stderr)
				}
			}
			_ = p.Signal(syscall.SIGTERM)
		})
		if code, _, stderr := program(t, "", []string{"HTTP_ADDR=" + address}, nil, "--health"); code != 1 || !strings.Contains(stderr, "refused") {
			t.Errorf("nobody listens: exit code %d, %s", code, stderr)
		}
	}
	if code, _, stderr := program(t, "", nil, nil, "--health"); code != 2 || !strings.Contains(stderr, "fixed port") {
		t.Errorf("port 0: exit code %d, %s", code, stderr)
	}
}

func TestMainExportsSpansWhenAnEndpointIsSet(t *testing.T) {
	t.Parallel()
	got := make(chan string, 10)
	collector, err := service.NewHTTP(service.HTTPConfig{Addr: "127.0.0.1:0", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	collector.Echo.POST("/v1/traces", func(c echo.Context) error {
		body, err := io.ReadAll(c.Request().Body)
		got <- string(body)
		return errors.Join(err, c.NoContent(http.StatusOK))
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := runAsync(ctx, patience, service.Component{Name: "collector", Run: collector.Run})
	code, _, stderr := program(t, "serve", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + collector.Addr(), "OTEL_RESOURCE_ATTRIBUTES=zone=z1"}, func(p *os.Process, line string) {
		if _, rest, ok := strings.Cut(line, `"addr":"`); ok {
			address, _, _ := strings.Cut(rest, `"`)
			answer, err := http.Get("http://" + address + "/unknown")
			if err != nil {
				t.Error(err)
			} else {
				answer.Body.Close()
			}
			_ = p.Signal(syscall.SIGTERM)
		}
	})
	if code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	select {
	case body := <-got:
		if !strings.Contains(body, "example") || !strings.Contains(body, "z1") {
			t.Errorf("the export names neither service nor zone: %q", body)
		}
	case <-time.After(patience):
		t.Error("no spans came")
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := result(t, done); err != nil {
		t.Error(err)
	}
}
