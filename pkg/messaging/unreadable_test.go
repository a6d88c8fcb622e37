package messaging_test

import (
	"fmt"
	"strings"
	"testing"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	amqp "github.com/rabbitmq/amqp091-go"
)

// tooDeep are headers that every AMQP client may send and ours cannot read.
func tooDeep() amqp.Table {
	var inTables, inArrays any = int32(1), "x"
	for range 100 {
		inTables, inArrays = amqp.Table{"n": inTables}, []any{inArrays}
	}
	return amqp.Table{"tables": inTables, "arrays": inArrays, "many": make([]any, 9000), "small": "kept"}
}

// One such message used to end every connection that it was handed to, and thereby the service.
func TestHeadersThatCannotBeReadCostOnlyTheirOwnMessage(t *testing.T) {
	t.Parallel()
	for name, road := range roads() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := road.service()
			var log failureLines
			s.Logger = log.logger()
			f := start(t, s, c)
			deep := body("deep") + " \n"
			for i := range 3 {
				f.publishBody(road.key, body(fmt.Sprint("before ", i)))
				f.publish(contract.EventsExchange, road.key, amqp.Publishing{Body: []byte(deep), Headers: tooDeep(), MessageId: "deep", AppId: "stranger"})
				f.publishBody(road.key, body(fmt.Sprint("after ", i)))
			}
			for range 3 {
				d := f.take(road.quarantine)
				because, _ := d.Headers["x-last-error"].(string)
				if string(d.Body) != deep || d.MessageId != "deep" || d.AppId != "stranger" || d.Headers["x-park-reason"] != "VALIDATION" || d.Headers["small"] != "kept" ||
					d.Headers["x-attempts"] != int64(1) || !strings.Contains(because, "nested deeper than 32") || d.Headers["x-origin-queue"] != road.queue {
					t.Errorf("quarantined %q with %v", d.Body, d.Headers)
				}
				if names := fmt.Sprint(d.Headers["x-dropped-headers"]); len(names) != len("arrays, many, tables") || d.Headers["x-unreadable-headers"] != nil {
					t.Errorf("dropped %q, headers %v", names, d.Headers)
				}
				// Sent on its way again, it is a message like any other.
				f.replay(road.queue, d)
			}
			got := map[string]int{}
			for range 9 {
				got[strings.Fields(f.next().MessageID)[0]]++
			}
			if got["before"] != 3 || got["after"] != 3 || got["deep"] != 3 {
				t.Errorf("handled %v", got)
			}
			f.empty(road.queue, road.quarantine)
			for _, line := range log.take() {
				if line["msg"] == "broker session lost" {
					t.Errorf("the session was lost: %v", line)
				}
			}
		})
	}
}

// replay sends a quarantined message to the queue that failed.
func (f *fixture) replay(queue string, d amqp.Delivery) {
	f.Helper()
	f.publish("", queue, messaging.Replayed(&d, d.Timestamp))
}
