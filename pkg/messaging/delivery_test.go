package messaging

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

func TestOnlyBodiesUpToTheLimitAreDecoded(t *testing.T) {
	t.Parallel()
	body := func(size int) []byte {
		const start, end = `{"messageId":"m","type":"T","data":"`, `"}`
		return []byte(start + strings.Repeat("x", size-len(start)-len(end)) + end)
	}
	largest := delivery{Delivery: amqp.Delivery{Body: body(MaxBody)}}
	largest.prepare(mainQueue)
	if largest.wrong != nil || largest.msg.MessageID != "m" {
		t.Errorf("the largest: %v", largest.wrong)
	}
	larger := delivery{Delivery: amqp.Delivery{Body: body(MaxBody + 1)}}
	larger.prepare(mainQueue)
	if retry.ClassOf(larger.wrong) != retry.Validation || larger.msg.Data != nil {
		t.Errorf("a larger one: %v", larger.wrong)
	}
	c := &Consumer{ConsumerConfig: ConsumerConfig{Queue: mainQueue, Road: InProcess("errors")}}
	exit := c.quarantined(&larger, burial{class: retry.Validation, err: larger.wrong, at: time.Now()})
	if !bytes.Equal(exit.Body, larger.Body) {
		t.Error("the body changed in quarantine")
	}
}
