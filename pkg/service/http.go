package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
)

// Every answer is to be there within ten seconds; the rest is left for writing it and for a busy machine.
const requestTime = 8 * time.Second

// HTTPConfig says what an HTTP server serves beside its routes.
type HTTPConfig struct {
	Addr       string               // host:port; port 0 takes a free one
	AdminToken string               // "" refuses everything under /admin
	OpenAPI    []byte               // served as /openapi.yaml
	Checks     []Check              // behind /readyz
	Registry   *prometheus.Registry // behind /metrics; nil makes one with NewRegistry
	Started    <-chan struct{}      // until it is closed the routes answer 503, the operational ones do not; nil: at once
	Problem    func(error) *Problem // the service's own errors as answers; nil for errors that are not its own
	Grace      time.Duration        // the service's; two fifths of it are for running requests when stopping; 0 means 10s
	Logger     *slog.Logger
}

// HTTP is the HTTP server of a service. Routes are added to Echo and Admin before Run.
//
// Every error is answered as problem+json, be it a *Problem, an error that HTTPConfig.Problem knows, an unknown route,
// or a database that is away (503); anything else is a 500 whose reason is logged and not told. The context of a
// request ends early enough that every answer comes within ten seconds. Bodies over 1 MiB are refused with 413, calls that
// change something and come from another site's page in a browser with 403, and, on a loopback address, calls by any name but
// localhost or the address with 421. HEAD is answered wherever GET is.
type HTTP struct {
	Echo  *echo.Echo
	Admin *echo.Group // /admin, behind the bearer token

	cfg      HTTPConfig
	listener net.Listener
	loopback bool // it listens on this machine only
	server   *http.Server
	metrics  *httpMetrics
	hurried  context.Context // ends when requests that still run after the stop are to give up
	hurry    context.CancelFunc
	stopping context.Context // ends when the stop begins, for those that would not end by themselves
	stop     context.CancelFunc
}

// NewHTTP makes the server and takes the address, so that one in use is noticed at start. The address is given back
// when Run ends, or by Close.
func NewHTTP(cfg HTTPConfig) (*HTTP, error) {
	if cfg.Logger == nil {
		return nil, errors.New("http: a logger is required")
	}
	if cfg.Registry == nil {
		cfg.Registry = NewRegistry()
	}
	if cfg.Grace <= 0 {
		cfg.Grace = 10 * time.Second
	}
	h := &HTTP{Echo: echo.New(), cfg: cfg, metrics: newHTTPMetrics(cfg.Registry)}
	h.hurried, h.hurry = context.WithCancel(context.Background())
	h.stopping, h.stop = context.WithCancel(context.Background())
	h.Echo.HTTPErrorHandler = h.answerError
	h.Echo.JSONSerializer = strictJSON{}
	h.Echo.Use(h.observe, h.recoverPanic, h.deadline, h.refuseForeignHost, refuseCrossOrigin(), guardAdmin(cfg.AdminToken), limitBody, h.awaitStart)
	h.Admin = h.Echo.Group(adminPrefix)
	h.addOperational()

	listener, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("http: take the address %s: %w", cfg.Addr, err)
	}
	h.listener, h.loopback = listener, listensOnLoopback(listener.Addr())
	h.server = &http.Server{
		Handler:           h.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       requestTime,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug), // what broken clients do
	}
	var unused unusedConns
	h.server.ConnState = unused.track
	h.server.RegisterOnShutdown(unused.close)
	return h, nil
}

// Addr is the address it listens on, with the port that was chosen.
func (h *HTTP) Addr() string { return h.listener.Addr().String() }

// Close gives the address back when the server never ran. After Run it does nothing.
func (h *HTTP) Close() { _ = h.listener.Close() }

// Handler is the whole of it as an http.Handler.
func (h *HTTP) Handler() http.Handler {
	var handler http.Handler = headAsGet{h.Echo}
	if TracingEnabled() {
		handler = otelhttp.NewHandler(handler, "http", otelhttp.WithFilter(func(r *http.Request) bool { return !operational[r.URL.Path] }))
	}
	return handler
}

// Run serves until ctx ends, then takes no more requests and waits for the running ones. Those that are still at it after two
// fifths of the grace, because the database hangs for instance, have their contexts ended and answer 503; half of the grace
// is where the connections of those that do not heed that are cut, which is an error.
func (h *HTTP) Run(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- h.server.Serve(h.listener) }()
	h.cfg.Logger.Info("listening", "addr", h.Addr())
	select {
	case err := <-failed:
		return fmt.Errorf("http: serve: %w", err)
	case <-ctx.Done():
	}
	h.stop()
	err := h.shutdown(h.cfg.Grace * 2 / 5)
	if err != nil {
		h.hurry()
		err = h.shutdown(h.cfg.Grace / 10)
	}
	if err != nil {
		_ = h.server.Close()
		err = fmt.Errorf("http: requests were cut off when stopping: %w", err)
	}
	<-failed
	return err
}

func (h *HTTP) shutdown(wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return h.server.Shutdown(ctx)
}

// headAsGet lets GET routes answer HEAD. The server knows the method that was really asked and leaves the body out.
type headAsGet struct{ next http.Handler }

func (h headAsGet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		get := *r
		get.Method = http.MethodGet
		r = &get
	}
	h.next.ServeHTTP(w, r)
}

// unusedConns are connections on which no request came yet, as browsers and connection pools open them in advance.
// Shutdown would wait five seconds for each.
type unusedConns struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func (u *unusedConns) track(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if state != http.StateNew {
		delete(u.conns, c)
		return
	}
	if u.conns == nil {
		u.conns = make(map[net.Conn]struct{})
	}
	u.conns[c] = struct{}{}
}

func (u *unusedConns) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for c := range u.conns {
		_ = c.Close()
	}
}
