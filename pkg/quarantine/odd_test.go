package quarantine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Anybody can put such messages into a quarantine. They are listed, shown, replayed and discarded like any other, and so are those behind them.
func TestOddMessagesStandInNobodysWay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	beyond := time.Unix(1764500000000, 0) // milliseconds where AMQP wants seconds: the year 57,885
	stamp := parkedEvent("stamp")
	stamp.Timestamp = beyond
	b.park(parkedEvent("before"), stamp,
		parkedEvent("death", func(h amqp.Table) {
			h["x-death"] = []any{amqp.Table{"queue": work0, "reason": "expired", "count": int64(1), "exchange": "", "routing-keys": []any{work0}, "time": beyond}}
		}),
		parkedEvent("names", func(h amqp.Table) { h["n\xff"], h["n\xfe"] = "1", "2" }),
		parkedEvent("late", func(h amqp.Table) { h["x-parked-at"] = "9999-12-31T23:59:59-01:00" }), // the year 10,000 in UTC
		parkedEvent("after"))
	keys := []string{"before", "stamp", "death", "names", "late", "after"}
	if l := b.list(""); !slices.Equal(l.keys(), keys) || l.Incomplete != "" || l.Items[2].ParkedAt != nil || l.Items[4].ParkedAt != nil || l.Items[1].ParkedAt == nil {
		t.Errorf("listed %+v", l)
	}
	if got := decode[whole](b, b.call("GET", "/admin/quarantine/"+lot+"/stamp", nil)).Properties.Timestamp; got != 1764500000000.0 {
		t.Errorf("the timestamp is shown as %v", got)
	}
	if got := decode[whole](b, b.call("GET", "/admin/quarantine/"+lot+"/names", nil)).Headers; got["base64:bv8="] != "1" || got["base64:bv4="] != "2" {
		t.Errorf("the headers are shown as %v", got)
	}
	got := decode[whole](b, b.call("GET", "/admin/quarantine/"+lot+"/death", nil))
	if got.Reason != "EXPIRED" || got.Deaths[0].FirstAt != nil || !strings.Contains(fmt.Sprint(got.Headers["x-death"]), "time:1.7645e+12") {
		t.Errorf("shown %+v", got)
	}
	if r := b.replay(order{"limit": 10}); r.Done != len(keys) || !r.DryRun || !r.All || r.Stopped != "" {
		t.Errorf("a dry run answers %+v", r)
	}
	if r := b.replay(order{"ids": []string{"death"}, "confirm": true}); r.Done != 1 || r.All {
		t.Errorf("a replay answers %+v", r)
	}
	if r := b.discard(order{"because": "test", "confirm": true}); r.Done != len(keys)-1 || !r.All {
		t.Errorf("a discard answers %+v", r)
	}
	b.hasDepth(lot, 0)
	for _, header := range []string{`{"base64:bv4=":"2","base64:bv8=":"1",%`, `%`} {
		var kept int
		if err := b.pool.QueryRow(t.Context(), `select count(*) from quarantine_audit where key in ('names', 'stamp') and headers::text like $1
			and (key = 'names' or properties->>'timestamp' = '1764500000000')`, header).Scan(&kept); err != nil || kept < 1 {
			t.Errorf("the audit has %d of them with %s: %v", kept, header, err)
		}
	}
}

// No message is known that cannot be written down. Should there be one, it alone stays.
func TestOneThatCannotBeWrittenDownFailsAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.park(parkedEvent("a"), parkedEvent("b"), parkedEvent("c"))
	l, err := b.q.look(t.Context(), lot)
	if err != nil {
		t.Fatal(err)
	}
	c, messages, err := l.take(t.Context(), l.depth)
	if err != nil {
		t.Fatal(err)
	}
	var tasks []*task
	for _, m := range messages {
		if m.MessageId == "b" {
			m.Headers["x"] = make(chan int)
		}
		tasks = append(tasks, &task{parked: read(lot, m)})
	}
	h, err := b.q.hold(t.Context(), []string{lot})
	if err != nil {
		t.Fatal(err)
	}
	defer h.release()
	d := &discarding{run: &run{action: ActionDiscard, because: "test"}, work: work{Quarantine: b.q, hold: h}}
	if err := d.remove(t.Context(), c, tasks); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{discarded, OutcomeFailed, discarded} {
		if tasks[i].Outcome != want || (want == OutcomeFailed) != strings.Contains(tasks[i].Detail, "the audit cannot hold it") {
			t.Errorf("%s: %s %s", tasks[i].Key, tasks[i].Outcome, tasks[i].Detail)
		}
	}
	l.close()
	if kept := b.contents(lot); len(kept) != 1 || kept[0].MessageId != "b" {
		t.Errorf("the queue holds %d", len(kept))
	}
}

// Headers that the client library cannot read would end every connection that looks into the queue, and hide all that waits there. The
// broker itself moves such a message as it is.
func TestHeadersThatCannotBeReadHideNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	deep := func(id string) amqp.Publishing {
		return parkedEvent(id, func(h amqp.Table) {
			var nested any = "x"
			for range 100 {
				nested = amqp.Table{"n": []any{nested}}
			}
			h["deep"], h["small"] = nested, "kept"
		})
	}
	b.park(parkedEvent("before"), deep("deep"), deep("deeper"), parkedEvent("after"))
	if l := b.list(""); !slices.Equal(l.keys(), []string{"before", "deep", "deeper", "after"}) || l.Incomplete != "" {
		t.Errorf("listed %+v", l)
	}
	got := decode[whole](b, b.call("GET", "/admin/quarantine/"+lot+"/deep", nil))
	if got.Headers["x-unreadable-headers"] != "deep" || got.Headers["deep"] != nil || got.Headers["small"] != "kept" {
		t.Errorf("shown with %v", got.Headers)
	}
	if r := b.replay(order{"ids": []string{"deep"}, "confirm": true}); r.Done != 1 || r.Stopped != "" {
		t.Errorf("a replay answers %+v", r)
	}
	if r := b.discard(order{"ids": []string{"deeper"}, "because": "test", "confirm": true}); r.Done != 1 || r.Stopped != "" {
		t.Errorf("a discard answers %+v", r)
	}
	sent := b.contents(work0)
	if len(sent) != 1 || sent[0].MessageId != "deep" || sent[0].Headers["x-dropped-headers"] != "deep" || sent[0].Headers["x-unreadable-headers"] != nil || sent[0].Headers["small"] != "kept" {
		t.Errorf("replayed %+v", sent)
	}
	if left := b.contents(lot); len(left) != 2 || left[0].MessageId != "before" || left[1].MessageId != "after" {
		t.Errorf("left are %d", len(left))
	}
}
