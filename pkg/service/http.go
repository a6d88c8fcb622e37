package service

import (
	"context"
	"log/slog"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
)

// HTTPConfig says what an HTTP server serves beside its routes.
type HTTPConfig struct {
	Addr       string               // host:port; port 0 takes a free one
	AdminToken string               // "" refuses everything under /admin
	OpenAPI    []byte               // served as /openapi.yaml
	Checks     []Check              // behind /readyz
	Registry   *prometheus.Registry // behind /metrics, see NewRegistry
	Started    <-chan struct{}      // until it is closed the routes answer 503, the operational ones do not; nil: at once
	Problem    func(error) *Problem // the service's own errors as answers; nil for errors that are not its own
	Grace      time.Duration        // bounds the wait for running requests when stopping
	Logger     *slog.Logger
}

// Check is one condition of readiness: nil from Ready, or the reason why not.
type Check struct {
	Name  string
	Ready func(ctx context.Context) error
}

// HTTP is the HTTP server of a service. Routes are added to Echo before Run.
//
// Every error is answered as problem+json, be it a *Problem, an error that HTTPConfig.Problem knows, an unknown route, or a
// database that is away (503); anything else is a 500 whose reason is logged and not told. The context of a
// request ends early enough that every answer comes within ten seconds. Bodies over 1 MiB are refused with 413. HEAD is answered wherever GET is.
type HTTP struct {
	Echo  *echo.Echo
	Admin *echo.Group // /admin, behind the bearer token
}

// NewHTTP makes the server and takes the address, so that one in use is noticed at start.
func NewHTTP(cfg HTTPConfig) (*HTTP, error) { return nil, nil }

// Addr is the address it listens on, with the port that was chosen.
func (h *HTTP) Addr() string { return "" }

// Run serves until ctx ends, then takes no more requests and waits for the running ones.
func (h *HTTP) Run(ctx context.Context) error { return nil }

// NewRegistry makes a registry with the collectors of the Go runtime and the process.
func NewRegistry() *prometheus.Registry { return prometheus.NewRegistry() }
