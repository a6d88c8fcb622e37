package quarantine

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/banking/pkg/messaging"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Item is a quarantined message as a list shows it.
type Item struct {
	Queue            string     `json:"queue"`
	Key              string     `json:"key"` // names the message: its messageId, or "sha256:" and 16 hex digits of its body's digest
	MessageID        string     `json:"messageId"`
	Type             string     `json:"type"`
	TransferID       string     `json:"transferId"`
	Reason           string     `json:"reason"`
	Class            string     `json:"class"`
	Attempts         int64      `json:"attempts"`
	Error            string     `json:"error"`
	ParkedAt         *time.Time `json:"parkedAt"`
	FirstFailedAt    *time.Time `json:"firstFailedAt"`
	OriginQueue      string     `json:"originQueue"`
	OriginExchange   string     `json:"originExchange"`
	OriginRoutingKey string     `json:"originRoutingKey"`
	Service          string     `json:"service"`
	ReplayCount      int64      `json:"replayCount"`
}

// parked is one message in the hands of a look.
type parked struct {
	Item
	delivery *amqp.Delivery
	envelope messaging.Envelope
	invalid  error // why the body cannot be handled by anybody
	told     messaging.Parked
	digest   string // "sha256:…", once it was needed
}

func read(queue string, d *amqp.Delivery) *parked {
	p := &parked{delivery: d, told: messaging.ReadParked(d.Headers)}
	if len(d.Body) <= messaging.MaxBody {
		p.envelope, p.invalid = messaging.Decode(d.Body)
	} else {
		p.invalid = errTooLarge
	}
	told := &p.told
	p.Item = Item{
		Queue: queue, MessageID: p.envelope.MessageID, Type: p.envelope.Type, TransferID: p.envelope.TransferID(),
		Reason: told.Reason, Class: told.Class, Attempts: told.Attempts, Error: told.Error,
		ParkedAt: instant(told.ParkedAt), FirstFailedAt: instant(told.FirstFailedAt),
		OriginQueue: told.OriginQueue, OriginExchange: told.OriginExchange, OriginRoutingKey: told.OriginRoutingKey,
		Service: told.Service, ReplayCount: told.ReplayCount,
	}
	if p.Key = p.MessageID; !nameable(p.Key) {
		p.Key = p.digestKey()
	}
	return p
}

// nameable says whether a messageId can name a message: it is what a consumer would take for one.
func nameable(id string) bool {
	return id != "" && utf8.RuneCountInString(id) <= messaging.MaxMessageID && !strings.ContainsRune(id, 0)
}

const digestPrefix = "sha256:"

// digestKey names a message by its body.
func (p *parked) digestKey() string {
	if p.digest == "" {
		sum := sha256.Sum256(p.delivery.Body)
		p.digest = digestPrefix + hex.EncodeToString(sum[:8])
	}
	return p.digest
}

// named says whether a key of a client's means this message. Every message also answers to its digest.
func (p *parked) named(key string) bool {
	return p.Key == key || strings.HasPrefix(key, digestPrefix) && p.digestKey() == strings.ToLower(key)
}

// replayedSince says whether the message was replayed after an instant, as a run asks that would not meet its own messages again. A time
// that is yet to come was written by nobody here.
func (p *parked) replayedSince(began time.Time) bool {
	return !p.told.ReplayedAt.Before(began) && !p.told.ReplayedAt.After(time.Now())
}

// instant is a time as a client can read it; nil when there is none, or none that has a place in the calendar of RFC 3339.
func instant(at time.Time) *time.Time {
	if at.IsZero() || !inCalendar(at) {
		return nil
	}
	at = at.UTC()
	return &at
}

// stamped is a time that stands in a message. One outside of RFC 3339's calendar is written as AMQP has it, in seconds since 1970: milliseconds
// where seconds belong are a common slip, and lead into the year 57,885.
func stamped(at time.Time) any {
	if !inCalendar(at) {
		return at.Unix()
	}
	return at.UTC()
}

func inCalendar(at time.Time) bool {
	year := at.UTC().Year()
	return 0 <= year && year <= 9999
}
