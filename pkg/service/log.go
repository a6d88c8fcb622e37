package service

import (
	"context"
	"io"
	"log/slog"
	"regexp"
	"strings"
)

// NewLogger makes the logger of a service. Every line carries the service's name and, when its context is that of a
// trace, the trace_id.
func NewLogger(w io.Writer, name string, level slog.Leveler, format LogFormat) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: readable}
	var handler slog.Handler = slog.NewJSONHandler(w, options)
	if format == "text" {
		handler = slog.NewTextHandler(w, options)
	}
	return slog.New(traced{handler}).With("service", name)
}

// readable writes a duration as people do ("5s", not 5000000000), and leaves out an id that is not known.
func readable(_ []string, a slog.Attr) slog.Attr {
	switch {
	case a.Value.Kind() == slog.KindDuration:
		a.Value = slog.StringValue(a.Value.Duration().String())
	case a.Value.Kind() == slog.KindString && a.Value.String() == "" && strings.HasSuffix(a.Key, "_id"):
		return slog.Attr{}
	}
	return a
}

// traced adds the trace_id, so that the lines of one request or message can be found together over all services.
type traced struct{ slog.Handler }

func (h traced) Handle(ctx context.Context, record slog.Record) error {
	if id := TraceID(ctx); id != "" {
		record.AddAttrs(slog.String("trace_id", id))
	}
	return h.Handler.Handle(ctx, record)
}

func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{h.Handler.WithAttrs(attrs)} }

func (h traced) WithGroup(name string) slog.Handler { return traced{h.Handler.WithGroup(name)} }

var (
	// The last @ counts, so that a password with an unescaped @ or / in it does not show either.
	urlPassword = regexp.MustCompile(`(://[^:/?#@]*):.*@`)
	// In a query, or a libpq keyword/value string where the value may be quoted.
	namedPassword = regexp.MustCompile(`(?i)((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'?|[^&\s]+)`)
)

// RedactURL gives a URL, or a libpq keyword/value string, without its passwords, fit for logs. When in doubt it takes away
// too much.
func RedactURL(url string) string {
	return namedPassword.ReplaceAllString(urlPassword.ReplaceAllString(url, "${1}:xxxxx@"), "${1}xxxxx")
}
