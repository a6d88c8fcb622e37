package service

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

// httpMetrics counts and times requests. Labels are routes as they were registered, never paths, so that clients cannot
// make new series.
type httpMetrics struct {
	duration *prometheus.HistogramVec
	running  prometheus.Gauge
}

func newHTTPMetrics(registry *prometheus.Registry) *httpMetrics {
	m := &httpMetrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "http_request_duration_seconds",
			Help:    "Time from a request's headers to the end of its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route", "method", "status"}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "http_requests_running",
			Help: "Requests that are being answered now.",
		}),
	}
	registry.MustRegister(m.duration, m.running)
	return m
}

func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// observe is the outermost: it sees every answer as the client does, gives each request a trace, and times it.
func (h *HTTP) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now()
		h.metrics.running.Inc()
		defer h.metrics.running.Dec()
		ctx := c.Request().Context()
		if span := trace.SpanFromContext(ctx); span.SpanContext().IsValid() {
			span.SetName(c.Request().Method + " " + c.Path())
		} else {
			ctx = WithTraceParent(ctx, c.Request().Header.Get("traceparent"))
			ctx = WithTraceParent(ctx, TraceParent(ctx)) // one of its own when the client sent none
			c.SetRequest(c.Request().WithContext(ctx))
		}

		if err := next(c); err != nil {
			c.Error(err)
		}

		route := c.Path()
		if route == "" {
			route = "unmatched"
		}
		took, status := time.Since(began), c.Response().Status
		h.metrics.duration.WithLabelValues(route, methodLabel(c.Request().Method), strconv.Itoa(status)).Observe(took.Seconds())
		h.cfg.Logger.DebugContext(ctx, "request", "method", c.Request().Method, "path", c.Request().URL.Path, "status", status, "took", took)
		return nil
	}
}

// recoverPanic answers 500 for a handler that panicked: one request's bug must not end the others.
func (h *HTTP) recoverPanic(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			reason := recover()
			if reason == nil {
				return
			}
			if reason == http.ErrAbortHandler { // asked for by the handler: cut the connection
				panic(reason)
			}
			h.cfg.Logger.ErrorContext(c.Request().Context(), "panic", "route", c.Path(), "reason", reason, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", reason)
		}()
		return next(c)
	}
}

// deadline ends the request's context early enough for an answer within ten seconds, or when stopping leaves no more time. The
// request gets its own context back afterwards, so that the error handler can tell a client that left from a time that ran out.
func (h *HTTP) deadline(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		whole := c.Request()
		ctx, cancel := context.WithTimeout(whole.Context(), requestTime)
		defer cancel()
		defer context.AfterFunc(h.hurried, cancel)()
		ctx = context.WithValue(ctx, unhurriedKey{}, unhurried{whole.Context(), h.stopping})
		c.SetRequest(whole.WithContext(ctx))
		defer c.SetRequest(whole)
		return next(c)
	}
}

// refuseCrossOrigin keeps the pages of other sites from making a browser on this network move money: a POST with a text body needs
// no preflight, and whether its answer can be read does not matter to who sent it. Browsers say where a request comes
// from; what says nothing (curl, another service) is no browser and passes. A demand for a JSON content type would stop the
// same pages, and everybody who calls curl -d.
func refuseCrossOrigin() echo.MiddlewareFunc {
	protection := http.NewCrossOriginProtection()
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if protection.Check(c.Request()) != nil {
				return Forbidden("A page of another site may not make this call.")
			}
			return next(c)
		}
	}
}

// awaitStart refuses calls while the service is still starting, e.g. because its tables are not there yet.
func (h *HTTP) awaitStart(next echo.HandlerFunc) echo.HandlerFunc {
	if h.cfg.Started == nil {
		return next
	}
	return func(c echo.Context) error {
		if !operational[c.Path()] {
			select {
			case <-h.cfg.Started:
			default:
				return Unavailable("The service is still starting; /readyz says what it waits for.", nil)
			}
		}
		return next(c)
	}
}
