package service

import (
	"io"
	"log/slog"
)

// LogFormat is json or text.
type LogFormat string

// NewLogger makes the logger of a service. Every line carries the service's name and, when its context is that of a
// trace, the trace_id.
func NewLogger(w io.Writer, name string, level slog.Leveler, format LogFormat) *slog.Logger {
	return slog.Default()
}

// RedactURL gives a URL, or a libpq keyword/value string, without its passwords, fit for logs.
func RedactURL(url string) string { return "" }
