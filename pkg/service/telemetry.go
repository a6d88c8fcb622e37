package service

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const tracerName = "example.com/banking/pkg/service"

// StartTracing exports spans by OTLP over HTTP when OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is
// set, configured by the standard OTEL_ variables; else nothing is recorded. Main calls it. The result sends what is
// left and stops. A collector that is away costs spans and a warning, never the service.
func StartTracing(ctx context.Context, name string, log *slog.Logger) (stop func(context.Context) error, err error) {
	if !TracingEnabled() {
		return func(context.Context) error { return nil }, nil
	}
	// The library's own log would write lines of another form to the same stream.
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("spans were not exported", "error", err) }))
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("make the span exporter: %w", err)
	}
	// What the environment says wins: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES.
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", name)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe the service to the collector: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	otel.SetTextMapPropagator(propagation.TraceContext{})
	otel.SetTracerProvider(provider)
	return provider.Shutdown, nil
}

// TracingEnabled says whether StartTracing exports anything in this process's environment.
func TracingEnabled() bool { return tracingEnabled(os.Getenv) }

func tracingEnabled(value func(name string) string) bool {
	if value("OTEL_SDK_DISABLED") == "true" || value("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return value("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// WithTraceParent continues the trace of a W3C traceparent; a malformed or empty one leaves ctx as it is.
func WithTraceParent(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
}

// TraceParent is the W3C traceparent to send on. Without a trace in ctx it starts a new one, so that what belongs together
// can be found in logs even when nothing is exported.
func TraceParent(ctx context.Context) string {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		span = newTrace()
	}
	return "00-" + span.TraceID().String() + "-" + span.SpanID().String() + "-" + (span.TraceFlags() & trace.FlagsSampled).String()
}

// newTrace marks the trace as sampled, so that a receiver that does export keeps its part of it.
func newTrace() trace.SpanContext {
	var traceID trace.TraceID
	var spanID trace.SpanID
	binary.NativeEndian.PutUint64(traceID[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(traceID[8:], rand.Uint64()|1) // all zeros would be invalid
	binary.NativeEndian.PutUint64(spanID[:], rand.Uint64()|1)
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, TraceFlags: trace.FlagsSampled})
}

// TraceID is the id of ctx's trace in hex, "" when there is none.
func TraceID(ctx context.Context) string {
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		return span.TraceID().String()
	}
	return ""
}

// StartSpan starts a span below the one in ctx; end records the error, if any, and ends it. When nothing is exported both
// cost next to nothing.
func StartSpan(
	ctx context.Context, name string, kind trace.SpanKind, attributes ...attribute.KeyValue,
) (_ context.Context, end func(error)) {
	ctx, span := otel.Tracer(tracerName).Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
	return ctx, func(err error) {
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}
