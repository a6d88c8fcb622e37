package quarantine

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestDiscardKeepsTheWholeMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	binary := amqp.Publishing{Body: []byte{0xff, 0, 1, 0x1b, '{'}, Headers: amqp.Table{"bytes": []byte{0, 1}, "nul": "a\x00b", "bad": "\xff"}, ReplyTo: "r"}
	b.park(parkedEvent("keep"), binary, amqp.Publishing{})
	garbage := b.list("").Items[1].Key
	r := decode[ran](b, b.call("POST", "/admin/quarantine/discard", order{"ids": []string{garbage}, "because": "not ours\u2026", "confirm": true},
		func(r *http.Request) { r.Header.Set("X-Operator", "eve") }))
	if r.Done != 1 || r.Items[0].Outcome != discarded {
		t.Errorf("answered %+v", r)
	}
	var body []byte
	var headers, properties, because, operator string
	if err := b.pool.QueryRow(t.Context(), `select body, headers::text, properties::text, because, operator from quarantine_audit`).
		Scan(&body, &headers, &properties, &because, &operator); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(body, binary.Body) || !strings.Contains(headers, `"nul":"a\u0000b"`) || !strings.Contains(properties, `"replyTo":"r"`) ||
		because != "not ours\u2026" || operator != "eve" {
		t.Errorf("the audit keeps %q %s %s %q %q", body, headers, properties, because, operator)
	}
	audit := decode[struct {
		Items []Entry `json:"items"`
	}](b, b.call("GET", "/admin/quarantine/audit", nil)).Items
	shown := decode[wholeEntry](b, b.call("GET", fmt.Sprintf("/admin/quarantine/audit/%d", audit[0].ID), nil))
	if shown.Body == nil || *shown.Body.Base64 != "/wABG3s=" || shown.Outcome != OutcomeDone {
		t.Errorf("the audit shows %+v", shown)
	}
	for _, id := range []string{"0", "x", "9223372036854775808"} {
		if a := b.call("GET", "/admin/quarantine/audit/"+id, nil); a.status != http.StatusNotFound {
			t.Errorf("entry %s: %d", id, a.status)
		}
	}
	if r := b.discard(order{"all": true, "because": "empty", "confirm": true}); r.Done != 2 { // an empty body is a body too
		t.Errorf("answered %+v", r)
	}
	b.hasDepth(lot, 0)
}

// Garbage has no id of its own; its digest names it, and it can be sent back all the same.
func TestGarbageIsReplayedByItsDigest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	garbage := parkedEvent("")
	garbage.Body = []byte{'{', 0xff}
	b.park(garbage, parkedEvent("a"))
	key := b.list("").Items[0].Key
	if len(key) != len(digestPrefix)+16 {
		t.Fatalf("its key is %q", key)
	}
	if r := b.replay(order{"ids": []string{key}, "confirm": true}); r.Done != 1 || r.Items[0].Forecast != WillBeInvalid {
		t.Errorf("answered %+v", r)
	}
	if d := b.contents(work0); !bytes.Equal(d[0].Body, garbage.Body) {
		t.Errorf("sent was %q", d[0].Body)
	}
}
