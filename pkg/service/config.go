package service

import (
	"log/slog"
	"time"
)

// Config holds the variables of every service. A service embeds it in its own configuration struct, next to fields of its
// own. Each field carries the variable's name (tag env), its default (envDefault) and its meaning (desc) for --help.
type Config struct {
	HTTPAddr      string        `env:"HTTP_ADDR" desc:"listen address; port 0 takes a free one, which is logged"`
	AdminToken    string        `env:"ADMIN_TOKEN" secret:"true" desc:"bearer token of the calls under /admin; unset: they are refused"`
	LogLevel      slog.Level    `env:"LOG_LEVEL" envDefault:"info" desc:"debug, info, warn or error"`
	LogFormat     LogFormat     `env:"LOG_FORMAT" envDefault:"json" desc:"json, or text for people"`
	ShutdownGrace time.Duration `env:"SHUTDOWN_GRACE" envDefault:"15s" desc:"time to finish running work after SIGTERM or SIGINT"`
}

// Common gives Main what it needs of any configuration struct that embeds Config.
func (c Config) Common() Config { return c }

// MessagingConfig holds the variables of a service with a database that takes messages. It is embedded beside Config.
type MessagingConfig struct {
	DatabaseURL    string        `env:"DATABASE_URL,required" secret:"true" desc:"PostgreSQL; several hosts as libpq writes them"`
	AMQPURLs       []string      `env:"AMQP_URL,required" secret:"true" desc:"RabbitMQ; several URLs separated by commas are tried in turn"`
	Prefetch       int           `env:"CONSUMER_PREFETCH" envDefault:"256" desc:"deliveries a consumer holds unacknowledged, 1 to 65535"`
	Concurrency    int           `env:"CONSUMER_CONCURRENCY" envDefault:"2" desc:"batches a consumer handles at once, 1 to 64"`
	BatchSize      int           `env:"BATCH_SIZE" envDefault:"64" desc:"messages handled in one transaction, 1 up to CONSUMER_PREFETCH"`
	BatchWait      time.Duration `env:"BATCH_WAIT" envDefault:"1ms" desc:"wait for more messages once there is one, up to 1s"`
	RetryClassify  Switch        `env:"RETRY_CLASSIFY" envDefault:"on" desc:"off retries every failure alike: the anti-pattern, for comparison"`
	MaxAge         time.Duration `env:"MAX_AGE" envDefault:"24h" desc:"a message that fails when older than this is given up"`
	NotFoundMaxAge time.Duration `env:"NOT_FOUND_MAX_AGE" envDefault:"5m" desc:"the same, when what it refers to is not there"`
	InboxRetention time.Duration `env:"INBOX_RETENTION" envDefault:"720h" desc:"how long handled message ids are remembered; must exceed MAX_AGE"`
	QueueType      string        `env:"QUEUE_TYPE" envDefault:"quorum" desc:"quorum or classic"`
}

// Switch is a variable that is written on or off.
type Switch bool

// Configuration is a service's configuration struct: it embeds Config.
type Configuration interface{ Common() Config }

// Defaults are a service's own defaults by variable name, e.g. HTTP_ADDR; they win over the envDefault tag.
type Defaults map[string]string

// Invalid is one wrong value: the variable's name and what is wanted instead. The value itself is added by Load, which knows
// the secret ones.
type Invalid struct{ Name, Wanted string }

// Validator is implemented by a configuration struct, or one embedded in it, that has rules beyond its fields' types. The
// rules of all of them are reported together.
type Validator interface{ Validate() []Invalid }

// ConfigError lists every wrong variable at once. Its exit code is 2.
type ConfigError struct{ Lines []string }

// Load reads a configuration struct from an environment of "NAME=value" lines. An empty value counts as unset, as compose
// files write it. The error is a *ConfigError.
func Load[C Configuration](environ []string, defaults Defaults) (C, error) {
	var cfg C
	return cfg, nil
}
