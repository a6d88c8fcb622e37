package messaging_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/fault/faulttest"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"github.com/prometheus/client_golang/prometheus"
)

// The ack that cannot be sent: the link is given up, and the message comes again over the next one.
func TestFaultBeforeTheAckBringsTheMessageAgain(t *testing.T) {
	t.Parallel()
	s, c := transfer(succeed)
	c.Faults = faulttest.Once(fault.Fault{Point: fault.BeforeAck, Action: fault.Error, Class: retry.Timeout, MessageID: "m-1"})
	f := start(t, s, c)
	f.publishBody(debited, body("m-2"))
	if m := f.next(); m.MessageID != "m-2" {
		t.Errorf("handled %s", m.MessageID)
	}
	f.publishBody(debited, body("m-1"))
	for _, again := range []bool{false, true} {
		if m := f.next(); m.MessageID != "m-1" || m.Redelivered != again || m.Attempt != 1 {
			t.Errorf("handled %s, redelivered %v, attempt %d", m.MessageID, m.Redelivered, m.Attempt)
		}
	}
	f.empty(contract.AccountEventsQueue)
	f.notHandled()
}

// After the ack nothing comes again, whatever happens to the link.
func TestFaultAfterTheAckBringsNothingAgain(t *testing.T) {
	t.Parallel()
	s, c := transfer(succeed)
	c.Faults = faulttest.Once(fault.Fault{Point: fault.AfterAck, Action: fault.Error, Class: retry.Timeout})
	s.Metrics = messaging.NewMetrics()
	f := start(t, s, c)
	f.publishBody(debited, body("m-1"))
	f.next()
	f.eventually("a second session", func() error {
		if n := sessions(t, s.Metrics); n < 2 {
			return fmt.Errorf("%v so far", n)
		}
		return nil
	})
	f.becomesReady()
	f.empty(contract.AccountEventsQueue)
	f.notHandled()
}

// A quarantined message is acked too, after its copy is confirmed: between the two a fault leaves a copy more, never one less.
func TestFaultBeforeTheAckOfAQuarantinedMessage(t *testing.T) {
	t.Parallel()
	s, c := account(func(context.Context, *messaging.Message) error { return retry.Errorf(retry.Validation, "never") })
	c.Faults = faulttest.Once(fault.Fault{Point: fault.BeforeAck, Action: fault.Error, Class: retry.Timeout})
	f := start(t, s, c)
	f.publishBody(requested, body("m-1"))
	for range 2 {
		if d := f.take(errorQueue); !strings.Contains(string(d.Body), `"m-1"`) {
			t.Errorf("quarantined %s", d.Body)
		}
	}
	f.empty(requestQueue, errorQueue)
}

// An ack that hangs does not keep the service from stopping: its grace ends the pause, and the message stays with the broker.
func TestDelayBeforeTheAckEndsWithTheGrace(t *testing.T) {
	t.Parallel()
	s, c := transfer(succeed)
	c.Faults = faulttest.Once(fault.Fault{Point: fault.BeforeAck, Action: fault.Delay, Delay: fault.MaxDelay})
	c.Grace = 100 * time.Millisecond
	f := start(t, s, c)
	f.publishBody(debited, body("m-1"))
	f.next()
	began := time.Now()
	f.stop()
	if took := time.Since(began); took > patience {
		t.Errorf("stopped after %s", took)
	}
	if d := f.take(contract.AccountEventsQueue); !d.Redelivered {
		t.Error("the message that is left was never handed out")
	}
}

// sessions is how many sessions there have been.
func sessions(t *testing.T, m *messaging.Metrics) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "messaging_sessions_total" {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatal("sessions are not counted")
	return 0
}
