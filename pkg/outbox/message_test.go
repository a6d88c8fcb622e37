package outbox

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
)

func TestNewMessage(t *testing.T) {
	t.Parallel()
	d := draft("")
	d.OccurredAt = time.Date(2026, 11, 30, 11, 15, 0, 123_456_789, time.FixedZone("CET", 3600))
	m, err := NewMessage(d)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := uuid.Parse(m.ID); err != nil || id.Version() != 7 {
		t.Errorf("id %q: %v", m.ID, err)
	}
	e, err := messaging.Decode(m.Body)
	if err != nil {
		t.Fatal(err)
	}
	if e.MessageID != m.ID || e.Type != contract.AccountDebited || e.CorrelationID != d.CorrelationID || e.CausationID != "cause" ||
		string(e.Data) != `{"amountMinor":2500}` || !e.OccurredAt.Equal(m.OccurredAt) {
		t.Errorf("envelope: %+v", e)
	}
	if !strings.Contains(string(m.Body), `"2026-11-30T10:15:00.123Z"`) {
		t.Errorf("body: %s", m.Body)
	}
	if m.RoutingKey != "accounts.account.debited" || !m.Mandatory {
		t.Errorf("routing key %q, mandatory %t", m.RoutingKey, m.Mandatory)
	}
	d.Type = contract.TransferCompleted
	if m, err := NewMessage(d); err != nil || m.Mandatory {
		t.Errorf("%s must not need a reader: %v", d.Type, err)
	}
	d.ID = "derived"
	if m, err := NewMessage(d); err != nil || m.ID != "derived" {
		t.Errorf("id %q: %v", m.ID, err)
	}
}

func TestNewMessageRefusesWhatNobodyCanSend(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Draft){
		"no type":            func(d *Draft) { d.Type = "" },
		"no time":            func(d *Draft) { d.OccurredAt = time.Time{} },
		"no data":            func(d *Draft) { d.Data = nil },
		"data not an object": func(d *Draft) { d.Data = []byte(`[]`) },
		"data cut off":       func(d *Draft) { d.Data = []byte(`{"amountMinor":`) },
		"member twice":       func(d *Draft) { d.Data = []byte(`{"a":1,"a":2}`) },
		"long id":            func(d *Draft) { d.ID = strings.Repeat("é", 201) },
		"long routing key":   func(d *Draft) { d.Type = strings.Repeat("A", 200) },
		"NUL":                func(d *Draft) { d.CorrelationID = "a\x00b" },
		"not UTF-8":          func(d *Draft) { d.TraceParent = "\xff" },
	} {
		d := draft("id")
		change(&d)
		if m, err := NewMessage(d); err == nil {
			t.Errorf("%s: accepted as %s", name, m.Body)
		}
	}
}

func TestPropertiesOnTheWire(t *testing.T) {
	t.Parallel()
	m := newMessage(t, "id")
	p := m.publishing("banking.events", "account")
	want := amqp.Publishing{
		MessageId: "id", Type: "Accounts.Account.Debited", CorrelationId: m.CorrelationID, AppId: "account", Timestamp: m.OccurredAt,
		DeliveryMode: 2, ContentType: "application/json",
	}
	got := p.Publishing
	if got.Headers["traceparent"] != m.TraceParent || string(got.Body) != string(m.Body) {
		t.Errorf("headers %v, body %s", got.Headers, got.Body)
	}
	got.Headers, got.Body = nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if p.Exchange != "banking.events" || p.RoutingKey != "accounts.account.debited" || !p.Mandatory {
		t.Errorf("%+v", p)
	}
	m.TraceParent = ""
	if headers := m.publishing("x", "y").Headers; headers != nil {
		t.Errorf("headers without a trace: %v", headers)
	}
}
