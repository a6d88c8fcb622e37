package service

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestLoggerNamesServiceAndTrace(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := NewLogger(&out, "account", slog.LevelInfo, "json").With("queue", "q")
	ctx := WithTraceParent(context.Background(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	log.DebugContext(ctx, "not this one")
	log.InfoContext(ctx, "handled", "n", 1)
	var line map[string]any
	if err := json.Unmarshal([]byte(out.String()), &line); err != nil {
		t.Fatalf("%v in %q", err, out.String())
	}
	for name, want := range map[string]any{
		"msg": "handled", "service": "account", "queue": "q", "n": 1.0, "trace_id": "0af7651916cd43dd8448eb211c80319c",
	} {
		if line[name] != want {
			t.Errorf("%s is %v, want %v", name, line[name], want)
		}
	}
}

func TestLoggerWritesTextForPeople(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	NewLogger(&out, "account", slog.LevelWarn, "text").Warn("slow", "took", "3s")
	if !strings.HasSuffix(out.String(), "level=WARN msg=slow service=account took=3s\n") {
		t.Errorf("got %q", out.String())
	}
}

func TestLoggerWritesDurationsReadablyAndNoEmptyIDs(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	NewLogger(&out, "account", slog.LevelInfo, "json").Info("failed", "next_delay", 5*time.Second, "transfer_id", "", "message_id", "m")
	line := out.String()
	if !strings.Contains(line, `"next_delay":"5s"`) || !strings.Contains(line, `"message_id":"m"`) || strings.Contains(line, "transfer_id") {
		t.Errorf("got %q", line)
	}
}

func TestRedactURLHidesPasswords(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"amqp://guest:s3cret@h:5672/v":                          "amqp://guest:xxxxx@h:5672/v",
		"postgres://u:s3cret@h1:5432,h2:5433/db":                "postgres://u:xxxxx@h1:5432,h2:5433/db",
		"postgres://u:s3cr@t/x@h/db":                            "postgres://u:xxxxx@h/db",
		"postgres://h/db?user=u&password=s3cret&sslmode=x":      "postgres://h/db?user=u&password=xxxxx&sslmode=x",
		"postgres://u@h/db":                                     "postgres://u@h/db",
		"postgres://h:5432/db":                                  "postgres://h:5432/db",
		"host=h user=u password=s3cret dbname=d":                "host=h user=u password=xxxxx dbname=d",
		`host=h password = 's3c\'ret x' dbname=d`:               `host=h password = xxxxx dbname=d`,
		"host=h password='s3cret":                               "host=h password=xxxxx",
		"postgres://u:s3cret@h/db?sslpassword=s3cret&sslkey=/k": "postgres://u:xxxxx@h/db?sslpassword=xxxxx&sslkey=/k",
		"amqp://:s3cret@h":                                      "amqp://:xxxxx@h",
		"":                                                      "",
	} {
		if got := RedactURL(url); got != want {
			t.Errorf("%s: got %s, want %s", url, got, want)
		}
	}
}
