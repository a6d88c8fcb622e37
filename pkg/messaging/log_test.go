package messaging

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// logged is the line that a consumer logs when the handling of a body fails.
func logged(t *testing.T, body string, err error) map[string]any {
	t.Helper()
	var out bytes.Buffer
	s := NewSession(SessionConfig{Name: "service", Logger: slog.New(slog.NewJSONHandler(&out, nil))})
	c := &Consumer{ConsumerConfig: ConsumerConfig{Queue: mainQueue, Road: InProcess("errors"), Policy: retry.Policy{MaxAttempts: 1}}, session: s, metrics: s.Metrics.of(mainQueue)}
	c.now = time.Now
	d := &delivery{Delivery: amqp.Delivery{Body: []byte(body)}}
	d.prepare(mainQueue)
	d.err, d.class = err, c.classOf(err)
	c.decide(d, c.now())
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%q: %v", out.String(), err)
	}
	return line
}

func TestFailureNamesTheTransfer(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"messageId":"m","type":"T","correlationId":"c","data":{"transferId":"d"}}`: "d",
		`{"messageId":"m","type":"T","correlationId":"c","data":{"transferId":7}}`:   "c",
		`{"messageId":"m","type":"T","data":{"transferId":"d","amountMinor":1}}`:     "d",
		`{"data":{"transferId":"d"},"messageId":7}`:                                  "d",
		`{"messageId":"m","type":"T","data":{"transferId":"d"},"x":`:                 "d",
		`{"messageId":"m","type":"T","correlationId":null,"data":{"transferId":7}}`:  "",
		`{"messageId":"m","type":"T","data":["transferId"]}`:                         "",
		`{"messageId":"m","type":"T"}`:                                               "",
		`garbage`:                                                                    "",
	} {
		if got := logged(t, body, errors.New("no"))["transfer_id"]; got != want {
			t.Errorf("%s: transfer_id %v, want %q", body, got, want)
		}
	}
}

func TestFailureIsLoggedInBounds(t *testing.T) {
	t.Parallel()
	body := `{"messageId":"` + strings.Repeat("m", 100<<10) + `","type":"T","correlationId":"` + strings.Repeat("c", 100<<10) + `"}`
	line := logged(t, body, errors.New(strings.Repeat("é\n", 100<<10)))
	for name, limit := range map[string]int{"error": 4 << 10, "message_id": 1 << 10, "transfer_id": 1 << 10} {
		if text, _ := line[name].(string); len(text) > limit || len(text) < limit-3 || strings.Contains(text, "\n") {
			t.Errorf("%s has %d bytes, want %d", name, len(text), limit)
		}
	}
}
