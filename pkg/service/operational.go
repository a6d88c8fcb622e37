package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// operational are the routes for those who run the service. They answer from the first moment on.
var operational = map[string]bool{"/healthz": true, "/readyz": true, "/metrics": true, "/openapi.yaml": true}

// readyTime bounds the checks behind /readyz; orchestrators ask every few seconds and wait no longer.
const readyTime = 3 * time.Second

// Check is one condition of readiness: nil from Ready, or the reason why not.
type Check struct {
	Name  string
	Ready func(ctx context.Context) error
}

// NewRegistry makes a registry with the collectors of the Go runtime and the process.
func NewRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

func (h *HTTP) addOperational() {
	h.Echo.GET("/healthz", func(c echo.Context) error {
		return c.JSON(http.StatusOK, map[string]string{"status": "ok"})
	})
	h.Echo.GET("/readyz", h.answerReady)
	h.Echo.GET("/metrics", echo.WrapHandler(promhttp.HandlerFor(h.cfg.Registry, promhttp.HandlerOpts{})))
	h.Echo.GET("/openapi.yaml", func(c echo.Context) error {
		if len(h.cfg.OpenAPI) == 0 {
			return NotFound("This service has no OpenAPI document.")
		}
		return c.Blob(http.StatusOK, "application/yaml", h.cfg.OpenAPI)
	})
}

// notReady is a problem that also has the form of the good answer, for those who read only that.
type notReady struct {
	Problem
	Ready  bool              `json:"ready"`
	Checks map[string]string `json:"checks"`
}

// answerReady answers 200 {"ready": true, "checks": {name: "ok"}}, or 503 with the reasons.
func (h *HTTP) answerReady(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyTime)
	defer cancel()
	results := make(map[string]chan error, len(h.cfg.Checks))
	for _, check := range h.cfg.Checks {
		result := make(chan error, 1) // room for an answer that comes too late
		results[check.Name] = result
		go func() { result <- runCheck(ctx, check) }()
	}
	said := make(map[string]string, len(results))
	ready := true
	for name, result := range results {
		said[name] = "ok"
		if err := outcome(ctx, result); err != nil {
			ready, said[name] = false, err.Error()
		}
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	if ready {
		return c.JSON(http.StatusOK, map[string]any{"ready": true, "checks": said})
	}
	c.Response().Header().Set(echo.HeaderContentType, "application/problem+json")
	c.Response().Header().Set("Retry-After", "2")
	problem := NewProblem(http.StatusServiceUnavailable, "The service is not ready; checks has the reasons.")
	writeJSON(c, problem.Status, notReady{Problem: *problem, Ready: false, Checks: said})
	return nil
}

// outcome waits for a check within its time. One that ended counts, even when another has used up all the time meanwhile.
func outcome(ctx context.Context, result <-chan error) error {
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-result:
		return err
	default:
		return errors.New("no answer within " + readyTime.String())
	}
}

func runCheck(ctx context.Context, check Check) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	return check.Ready(ctx)
}
