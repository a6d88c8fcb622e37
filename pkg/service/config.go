package service

import (
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"example.com/banking/pkg/retry"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Config holds the variables of every service. A service embeds it in its own configuration struct, next to fields of its
// own. Each field carries the variable's name (tag env), its default (envDefault) and its meaning (desc) for --help; secret
// keeps its value out of messages.
type Config struct {
	HTTPAddr      string        `env:"HTTP_ADDR,required" desc:"listen address; port 0 takes a free one, which is logged"`
	AdminToken    string        `env:"ADMIN_TOKEN" secret:"true" desc:"bearer token of the calls under /admin; unset: they are refused"`
	LogLevel      slog.Level    `env:"LOG_LEVEL" envDefault:"info" desc:"debug, info, warn or error"`
	LogFormat     LogFormat     `env:"LOG_FORMAT" envDefault:"json" desc:"json, or text for people"`
	ShutdownGrace time.Duration `env:"SHUTDOWN_GRACE" envDefault:"15s" desc:"time to finish running work after SIGTERM or SIGINT"`
}

// Common gives Main what it needs of any configuration struct that embeds Config.
func (c Config) Common() Config { return c }

// Validate implements Validator.
func (c Config) Validate() (wrong []Invalid) {
	if !listenAddress(c.HTTPAddr) {
		wrong = append(wrong, Invalid{"HTTP_ADDR", "host:port with a port from 0 to 65535"})
	}
	if c.ShutdownGrace <= 0 {
		wrong = append(wrong, Invalid{"SHUTDOWN_GRACE", "a duration above 0"})
	}
	return wrong
}

func listenAddress(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// MessagingConfig holds the variables of a service with a database that takes messages. It is embedded beside Config.
type MessagingConfig struct {
	DatabaseURL    string        `env:"DATABASE_URL,required" secret:"true" desc:"PostgreSQL; several hosts as libpq writes them"`
	AMQPURLs       BrokerURLs    `env:"AMQP_URL,required" secret:"true" desc:"RabbitMQ; several URLs separated by commas are tried in turn"`
	Prefetch       int           `env:"CONSUMER_PREFETCH" envDefault:"256" desc:"deliveries a consumer holds unacknowledged, 1 to 65535"`
	Concurrency    int           `env:"CONSUMER_CONCURRENCY" envDefault:"1" desc:"batches a consumer handles at once, 1 to 64; more make smaller batches, which wait for each other's rows"`
	BatchSize      int           `env:"BATCH_SIZE" envDefault:"128" desc:"messages handled in one transaction, 1 to 65535; never more than CONSUMER_PREFETCH"`
	BatchWait      time.Duration `env:"BATCH_WAIT" envDefault:"0s" desc:"wait for more messages once there is one, up to 1s; 0s takes what is there"`
	RetryClassify  Switch        `env:"RETRY_CLASSIFY" envDefault:"on" desc:"off retries every failure alike: the anti-pattern, for comparison"`
	Breaker        Switch        `env:"BREAKER" envDefault:"on" desc:"off: a consumer whose messages all fail goes on spending their attempts"`
	RetryBudget    Switch        `env:"RETRY_BUDGET" envDefault:"on" desc:"off: retries may be any share of a consumer's work"`
	RateLimit      float64       `env:"CONSUMER_RATE_LIMIT" envDefault:"0" desc:"messages a consumer starts per second, fewer while they are RATE_LIMITED, and takes no more than a minute's of them; 0 is no limit"`
	MaxAge         time.Duration `env:"MAX_AGE" envDefault:"24h" desc:"a message that fails when older than this is given up"`
	NotFoundMaxAge time.Duration `env:"NOT_FOUND_MAX_AGE" envDefault:"5m" desc:"the same, when what it refers to is not there"`
	InboxRetention time.Duration `env:"INBOX_RETENTION" envDefault:"720h" desc:"how long handled message ids are remembered; must exceed MAX_AGE"`
	QueueType      string        `env:"QUEUE_TYPE" envDefault:"quorum" desc:"quorum or classic"`
	Faults         Switch        `env:"FAULTS" envDefault:"off" desc:"on lets the admin make this service fail, hang or exit (/admin/faults): for exercises and tests only"`
}

// maxRateLimit is beyond what any consumer does in a second, and below what is a slip.
const maxRateLimit = 1e6

// BreakerConfig is the breaker of each consumer, nil when it is off.
func (c MessagingConfig) BreakerConfig() *retry.BreakerConfig {
	if !c.Breaker {
		return nil
	}
	return &retry.BreakerConfig{}
}

// Validate implements Validator.
func (c MessagingConfig) Validate() (wrong []Invalid) {
	demand := func(ok bool, name, wanted string) {
		if !ok {
			wrong = append(wrong, Invalid{name, wanted})
		}
	}
	_, err := pgxpool.ParseConfig(c.DatabaseURL)
	demand(err == nil, "DATABASE_URL", "postgres://user:password@host:port/database, or the same as libpq keywords")
	demand(c.AMQPURLs.usable(), "AMQP_URL", "amqp://user:password@host:port/vhost or amqps://…, several separated by commas")
	demand(c.Prefetch >= 1 && c.Prefetch <= 65535, "CONSUMER_PREFETCH", "a whole number from 1 to 65535")
	demand(c.Concurrency >= 1 && c.Concurrency <= 64, "CONSUMER_CONCURRENCY", "a whole number from 1 to 64")
	demand(c.BatchSize >= 1 && c.BatchSize <= 65535, "BATCH_SIZE", "a whole number from 1 to 65535")
	demand(c.BatchWait >= 0 && c.BatchWait <= time.Second, "BATCH_WAIT", "a duration from 0s to 1s")
	demand(c.RateLimit >= 0 && c.RateLimit <= maxRateLimit, "CONSUMER_RATE_LIMIT", "a number from 0 to 1000000")
	demand(c.MaxAge > 0, "MAX_AGE", "a duration above 0")
	demand(c.NotFoundMaxAge > 0, "NOT_FOUND_MAX_AGE", "a duration above 0")
	demand(c.InboxRetention > c.MaxAge, "INBOX_RETENTION",
		"a duration above MAX_AGE: a forgotten id would let a late duplicate take effect again")
	demand(c.QueueType == "quorum" || c.QueueType == "classic", "QUEUE_TYPE", "quorum or classic")
	return wrong
}

// BrokerURLs are the addresses of a broker, written one after another with commas between them.
type BrokerURLs []string

// UnmarshalText implements encoding.TextUnmarshaler. Spaces around a URL do not belong to it.
func (u *BrokerURLs) UnmarshalText(text []byte) error {
	*u = nil
	for part := range strings.SplitSeq(string(text), ",") {
		*u = append(*u, strings.TrimSpace(part))
	}
	return nil
}

// usable says whether the client library will take every one of them; it is asked now because later its no would look like a
// broker that is away, and its yes to a port that does not exist as well.
func (u BrokerURLs) usable() bool {
	for _, text := range u {
		uri, err := amqp.ParseURI(text)
		if err != nil || uri.Port < 1 || uri.Port > 65535 {
			return false
		}
		if parsed, err := url.Parse(text); err != nil || parsed.Hostname() == "" { // the library would take localhost
			return false
		}
	}
	return len(u) > 0
}

// Switch is a variable that is written on or off.
type Switch bool

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Switch) UnmarshalText(text []byte) error {
	switch string(text) {
	case "on":
		*s = true
	case "off":
		*s = false
	default:
		return errors.New("must be on or off")
	}
	return nil
}

// String is on or off.
func (s Switch) String() string {
	if s {
		return "on"
	}
	return "off"
}

// LogFormat is json or text.
type LogFormat string

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *LogFormat) UnmarshalText(text []byte) error {
	if *f = LogFormat(text); *f != "json" && *f != "text" {
		return errors.New("must be json or text")
	}
	return nil
}
