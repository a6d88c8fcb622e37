package service

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
)

type exampleConfig struct {
	Config
	MessagingConfig
	Intervals []time.Duration `env:"RETRY_INTERVALS" envDefault:"1s,5s,25s" desc:"in-process waits"`
}

func (c exampleConfig) Validate() []Invalid {
	if slices.ContainsFunc(c.Intervals, func(d time.Duration) bool { return d <= 0 }) {
		return []Invalid{{"RETRY_INTERVALS", "durations above 0"}}
	}
	return nil
}

var exampleDefaults = Defaults{"HTTP_ADDR": "127.0.0.1:8081"}

var complete = []string{"DATABASE_URL=postgres://u:secret1@h/db", "AMQP_URL=amqp://u:secret2@h1,amqps://u:secret2@h2:5671/v"}

func TestLoadFillsDefaultsAndOwnVariables(t *testing.T) {
	t.Parallel()
	cfg, err := Load[exampleConfig](append(complete, "LOG_LEVEL=", "RETRY_CLASSIFY=off", "MAX_AGE=1h30m", "LOG_FORMAT=text"), exampleDefaults)
	if err != nil {
		t.Fatal(err)
	}
	want := exampleConfig{
		Config: Config{HTTPAddr: "127.0.0.1:8081", LogLevel: slog.LevelInfo, LogFormat: "text", ShutdownGrace: 15 * time.Second},
		MessagingConfig: MessagingConfig{
			DatabaseURL: "postgres://u:secret1@h/db", AMQPURLs: BrokerURLs{"amqp://u:secret2@h1", "amqps://u:secret2@h2:5671/v"},
			Prefetch: 256, Concurrency: 1, BatchSize: 128, Breaker: true, RetryBudget: true,
			RetryClassify: false, MaxAge: 90 * time.Minute, NotFoundMaxAge: 5 * time.Minute,
			InboxRetention: 720 * time.Hour, QueueType: "quorum",
		},
		Intervals: []time.Duration{time.Second, 5 * time.Second, 25 * time.Second},
	}
	if got, wanted := line(cfg), line(want); got != wanted {
		t.Errorf("got  %s\nwant %s", got, wanted)
	}
}

func line(v any) string {
	var b strings.Builder
	slog.New(slog.NewTextHandler(&b, nil)).Info("", "v", v)
	_, text, _ := strings.Cut(b.String(), "v=")
	return text
}

func TestLoadReportsEveryWrongValueAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Load[exampleConfig]([]string{
		"HTTP_ADDR=nonsense", "DATABASE_URL=postgres://u:topsecret@h:port/db", "LOG_LEVEL=loud", "LOG_FORMAT=xml",
		"SHUTDOWN_GRACE=-1s", "CONSUMER_PREFETCH=many", "BATCH_SIZE=0", "BATCH_WAIT=5", "RETRY_CLASSIFY=maybe", "MAX_AGE=800h",
		"QUEUE_TYPE=stream", "RETRY_INTERVALS=1s,0s",
	}, exampleDefaults)
	var wrong *ConfigError
	if !errors.As(err, &wrong) || wrong.ExitCode() != 2 {
		t.Fatalf("got %v, want a ConfigError with exit code 2", err)
	}
	want := []string{
		`HTTP_ADDR="nonsense": wanted host:port with a port from 0 to 65535`,
		`LOG_LEVEL="loud": wanted debug, info, warn or error`,
		`LOG_FORMAT="xml": wanted json or text`,
		`SHUTDOWN_GRACE="-1s": wanted a duration above 0`,
		`DATABASE_URL (value not shown): wanted postgres://user:password@host:port/database, or the same as libpq keywords`,
		`AMQP_URL is not set: wanted a value: there is no default`,
		`CONSUMER_PREFETCH="many": wanted a whole number`,
		`BATCH_SIZE="0": wanted a whole number from 1 to 65535`,
		`BATCH_WAIT="5": wanted a duration such as 500ms, 5s or 24h`,
		`RETRY_CLASSIFY="maybe": wanted on or off`,
		`INBOX_RETENTION="720h" (the default): wanted a duration above MAX_AGE: a forgotten id would let a late duplicate take effect again`,
		`QUEUE_TYPE="stream": wanted quorum or classic`,
		`RETRY_INTERVALS="1s,0s": wanted durations above 0`,
	}
	if !slices.Equal(wrong.Lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(wrong.Lines, "\n"), strings.Join(want, "\n"))
	}
	if strings.Contains(err.Error(), "topsecret") {
		t.Error("the message shows a password")
	}
}

// The span exporter would go on with defaults and say so in a form of its own. So its variables are checked with all the others.
func TestLoadReportsWrongTracingVariables(t *testing.T) {
	t.Parallel()
	required := []string{"DATABASE_URL=postgres://h/db", "AMQP_URL=amqp://h"}
	_, err := Load[exampleConfig](append(required, "LOG_LEVEL=loud", "OTEL_EXPORTER_OTLP_ENDPOINT=::bad", "OTEL_TRACES_SAMPLER=nonsense",
		"OTEL_EXPORTER_OTLP_PROTOCOL=pigeon", "OTEL_EXPORTER_OTLP_HEADERS=topsecret", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=ftp://u:topsecret@h"), exampleDefaults)
	var wrong *ConfigError
	if !errors.As(err, &wrong) || wrong.ExitCode() != 2 {
		t.Fatalf("got %v, want a ConfigError with exit code 2", err)
	}
	want := []string{
		`LOG_LEVEL="loud": wanted debug, info, warn or error`,
		`OTEL_EXPORTER_OTLP_ENDPOINT="::bad": wanted http://host:port or https://host:port`,
		`OTEL_EXPORTER_OTLP_HEADERS (value not shown): wanted name=value pairs separated by commas`,
		`OTEL_EXPORTER_OTLP_PROTOCOL="pigeon": wanted http/protobuf, the only one that is spoken here`,
		`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT (value not shown): wanted http://host:port or https://host:port`,
		`OTEL_TRACES_SAMPLER="nonsense": wanted always_on, always_off, traceidratio, or one of them with parentbased_ before it`,
	}
	if !slices.Equal(wrong.Lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(wrong.Lines, "\n"), strings.Join(want, "\n"))
	}
	const exports = "OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4318"
	for _, assignments := range [][]string{
		{exports, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, {exports, "OTEL_TRACES_EXPORTER=zipkin"}, {exports, "OTEL_TRACES_SAMPLER_ARG=2"},
		{exports, "OTEL_EXPORTER_OTLP_TIMEOUT=10s"}, {exports, "OTEL_EXPORTER_OTLP_COMPRESSION=zip"}, {exports, "OTEL_EXPORTER_OTLP_CERTIFICATE=/no/such/file"},
		{exports, "OTEL_BSP_MAX_QUEUE_SIZE=many"}, {exports, "OTEL_SPAN_EVENT_COUNT_LIMIT=-2"}, {exports, "OTEL_RESOURCE_ATTRIBUTES=zone"},
		{exports, "OTEL_EXPORTER_OTLP_HEADERS=a=%zz"}, {"OTEL_TRACES_SAMPLER=nonsense"}, {"OTEL_EXPORTER_OTLP_ENDPOINT=h:4318"}, {"OTEL_SDK_DISABLED=yes"},
	} {
		name, _, _ := strings.Cut(assignments[len(assignments)-1], "=")
		if _, err := Load[exampleConfig](append(required, assignments...), exampleDefaults); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", assignments, err)
		}
	}
	for _, assignments := range [][]string{
		{exports, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_TRACES_SAMPLER=ParentBased_TraceIdRatio", "OTEL_TRACES_SAMPLER_ARG=0.1",
			"OTEL_EXPORTER_OTLP_HEADERS=api-key=a%20b,x=", "OTEL_RESOURCE_ATTRIBUTES=zone=z1", "OTEL_EXPORTER_OTLP_TIMEOUT=5000"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_TRACES_EXPORTER=console"}, // nothing is exported
		{"OTEL_SDK_DISABLED=true", "OTEL_EXPORTER_OTLP_ENDPOINT=::bad"},
		{"OTEL_METRICS_EXPORTER=prometheus", "OTEL_PROPAGATORS=b3"}, // not ours to read
	} {
		if _, err := Load[exampleConfig](append(required, assignments...), exampleDefaults); err != nil {
			t.Errorf("%q: %v", assignments, err)
		}
	}
}

func TestLoadRefusesSingleValues(t *testing.T) {
	t.Parallel()
	for _, assignment := range []string{
		"HTTP_ADDR=localhost", "HTTP_ADDR=:65536", "HTTP_ADDR=:http", "SHUTDOWN_GRACE=0s", "SHUTDOWN_GRACE=15",
		"DATABASE_URL=mysql://h/db", "AMQP_URL=http://h", "AMQP_URL=amqp://", "AMQP_URL=amqp://h,", "AMQP_URL= ",
		"AMQP_URL=amqp://u:topsecret@h/?heartbeat=abc", "AMQP_URL=amqp://h/?channel_max=-1x", "AMQP_URL=amqp://u:topsecret@h:99999/",
		"AMQP_URL=amqp://h:0/", "AMQP_URL=amqp://h1,amqp://u:topsecret@h2:65536", "AMQP_URL=amqp://u:topsecret@h h/",
		"CONSUMER_PREFETCH=0", "CONSUMER_PREFETCH=65536", "CONSUMER_CONCURRENCY=0", "CONSUMER_CONCURRENCY=65", "BATCH_SIZE=65536",
		"BATCH_SIZE=1.5", "BATCH_WAIT=-1ms", "BATCH_WAIT=2s", "RETRY_CLASSIFY=ON", "BREAKER=yes", "RETRY_BUDGET=1", "CONSUMER_RATE_LIMIT=-1",
		"CONSUMER_RATE_LIMIT=1e9", "CONSUMER_RATE_LIMIT=NaN", "CONSUMER_RATE_LIMIT=fast", "MAX_AGE=0s", "MAX_AGE=720h", "NOT_FOUND_MAX_AGE=0s",
		"INBOX_RETENTION=24h", "QUEUE_TYPE=Quorum", "RETRY_INTERVALS=1s,x",
	} {
		name, _, _ := strings.Cut(assignment, "=")
		if assignment == "MAX_AGE=720h" {
			name = "INBOX_RETENTION" // that is the one to be raised
		}
		_, err := Load[exampleConfig](append(slices.Clone(complete), assignment), exampleDefaults)
		var wrong *ConfigError
		if !errors.As(err, &wrong) || len(wrong.Lines) != 1 || !strings.HasPrefix(wrong.Lines[0], name) {
			t.Errorf("%s: got %v, want one line about %s", assignment, err, name)
		}
		if err != nil && strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%s: the message shows the password: %v", assignment, err)
		}
	}
}

func TestLoadAcceptsTheirForms(t *testing.T) {
	t.Parallel()
	for _, assignment := range []string{
		"HTTP_ADDR=:0", "HTTP_ADDR=[::1]:8081", "HTTP_ADDR=0.0.0.0:80", "BATCH_WAIT=0s", "BATCH_SIZE=512", "CONSUMER_PREFETCH=1",
		"DATABASE_URL=postgres://u:p@h1:5432,h2:5433/db?target_session_attrs=any", "DATABASE_URL=host=h1,h2 port=5432,5433 user=u dbname=db",
		"AMQP_URL=amqp://u:p%40@h:5672/%2Fv",
		"AMQP_URL=amqp://h:65535/?heartbeat=30", "AMQP_URL=amqp://[::1]", "LOG_LEVEL=DEBUG", "QUEUE_TYPE=classic",
		"BREAKER=off", "RETRY_BUDGET=off", "CONSUMER_RATE_LIMIT=0.5",
	} {
		if _, err := Load[exampleConfig](append(slices.Clone(complete), assignment), exampleDefaults); err != nil {
			t.Errorf("%s: %v", assignment, err)
		}
	}
}

func TestSpacesAroundBrokerURLsDoNotCount(t *testing.T) {
	t.Parallel()
	cfg, err := Load[exampleConfig](append(slices.Clone(complete), "AMQP_URL= amqp://h1 , amqps://h2:5671/v\t"), exampleDefaults)
	if want := (BrokerURLs{"amqp://h1", "amqps://h2:5671/v"}); err != nil || !slices.Equal(cfg.AMQPURLs, want) {
		t.Errorf("got %q, %v", cfg.AMQPURLs, err)
	}
}

func TestHelpShowsEveryVariable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	writeHelp[exampleConfig](&out, "example", exampleDefaults)
	for _, want := range []string{
		"HTTP_ADDR             127.0.0.1:8081  listen address; port 0 takes a free one, which is logged",
		"DATABASE_URL          (required)      PostgreSQL",
		"ADMIN_TOKEN           -               bearer token",
		"RETRY_INTERVALS       1s,5s,25s       in-process waits",
		"OTEL_EXPORTER_OTLP_ENDPOINT",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
