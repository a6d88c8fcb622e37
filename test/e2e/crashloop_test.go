package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// crowd is how many messages lie in a queue, one of which ends the process that handles it; they fill one prefetch, and one batch.
const crowd = 20

// crashing are the settings under which the whole crowd is in the hands of the process when it dies.
func crashing() map[string]string {
	return faulty(map[string]string{"CONSUMER_PREFETCH": fmt.Sprint(crowd), "BATCH_WAIT": "100ms"})
}

// A request that kills account whenever it is handled: three starts, then its queue's error queue. The nineteen beside it are done.
func TestCrashLoopOfARequest(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	b := newBank(t, env, 1, crashing())
	customers := b.open(2, 1_000_000)
	l := newLine(t, env.AMQPURL)
	const queue, key = "account.transfer-requested", "transfers.transfer.requested"
	firstCopy := l.overhear(key)
	b.accounts[0].stop()
	b.sendMany(customers, crowd, 4, 0)
	eventually(t, time.Minute, func() bool { return l.depth(queue) == crowd }, func() string { return "the requests do not arrive" })
	b.expectCrashLoop(l, b.accounts[0], firstCopy(), queue, queue+"_error")
}

// The same for an event that kills transfer, which has a parking lot.
func TestCrashLoopOfAnEvent(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	b := newBank(t, env, 1, crashing())
	customers := b.open(2, 1_000_000)
	l := newLine(t, env.AMQPURL)
	const queue = "transfer.account-events"
	firstCopy := l.overhear("accounts.account.debited")
	b.accounts[0].stop()
	b.sendMany(customers, crowd, 4, 0)
	eventually(t, time.Minute, func() bool { return l.depth("account.transfer-requested") == crowd }, func() string { return "the requests do not arrive" })
	b.transfers[0].stop()
	b.accounts[0].restart()
	eventually(t, time.Minute, func() bool { return l.depth(queue) == crowd }, func() string { return "the events do not arrive" })
	b.expectCrashLoop(l, b.transfers[0], firstCopy(), queue, "banking.dead-letters")
}

// expectCrashLoop orders the death of a stopped service at one message of its full queue, and starts it as often as it dies.
func (b *bank) expectCrashLoop(l *line, victim *replica, killer amqp.Delivery, queue, quarantine string) {
	b.t.Helper()
	id := idOf(b.t, killer.Body)
	b.armWithoutBroker(victim, map[string]any{"point": "handler", "action": "exit", "messageId": id})
	for start := 1; start <= 3; start++ {
		if err := victim.start(); err != nil {
			b.t.Fatal(err)
		}
		if code := victim.ended(); code != 137 {
			b.t.Fatalf("start %d ended with exit code %d, want 137\n%s", start, code, victim.log)
		}
	}
	victim.restart()
	d := l.take(quarantine)
	if string(d.Body) != string(killer.Body) {
		b.t.Errorf("quarantined %s, want %s", d.Body, killer.Body)
	}
	expectHeaders(b.t, d, map[string]any{"x-park-reason": "CRASH_LOOP", "x-error-class": "UNKNOWN", "x-attempts": int64(3), "x-origin-queue": queue})
	if n := l.depth(quarantine); n != 0 {
		b.t.Errorf("%d neighbours are quarantined too", n)
	}
	// Back into the quarantine: without it, its transfer would wait for a message that is nowhere.
	if err := l.channel.PublishWithContext(b.t.Context(), "", quarantine, true, false,
		amqp.Publishing{Headers: d.Headers, DeliveryMode: amqp.Persistent, Body: d.Body}); err != nil {
		b.t.Fatal(err)
	}
	var counts map[string]int
	eventually(b.t, time.Minute, func() bool {
		counts = b.summary()
		return counts["COMPLETED"] == crowd-1
	}, func() string { return fmt.Sprintf("its neighbours are not done: %v", counts) })
	b.verifyWith(1)
	if fired := victim.disarm(); fired != 3 {
		b.t.Errorf("it died %d times, want 3", fired)
	}
}

// armWithoutBroker orders a fault for a service that does not run, through a replica that cannot take messages.
func (b *bank) armWithoutBroker(victim *replica, fault map[string]any) {
	b.t.Helper()
	deaf := &replica{t: b.t, name: victim.name + "-deaf", path: victim.path, log: &tail{}}
	deaf.env = append(append(deaf.env, victim.env...), "HTTP_ADDR=127.0.0.1:0", "AMQP_URL=amqp://127.0.0.1:1")
	if err := deaf.start(); err != nil {
		b.t.Fatal(err)
	}
	defer deaf.kill()
	eventually(b.t, time.Minute, func() bool {
		status, _ := call(http.MethodGet, deaf.url+"/admin/faults", nil, "Authorization", "Bearer "+adminToken)
		return status == http.StatusOK
	}, func() string { return "the replica without a broker does not serve:\n" + deaf.log.String() })
	deaf.arm(fault)
}

// expectHeaders compares headers; a value that is a func says itself whether it likes what is there.
func expectHeaders(t *testing.T, d amqp.Delivery, want map[string]any) {
	t.Helper()
	for name, value := range want {
		got, there := d.Headers[name]
		if likes, ok := value.(func(any) bool); ok {
			if !likes(got) {
				t.Errorf("%s is %v", name, got)
			}
			continue
		}
		if value == nil && there || value != nil && got != value {
			t.Errorf("%s is %v, want %v", name, got, value)
		}
	}
}
