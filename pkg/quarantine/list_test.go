package quarantine

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	amqp "github.com/rabbitmq/amqp091-go"
)

func TestLookingTakesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var ids []string
	for i := range 20 {
		ids = append(ids, fmt.Sprintf("m-%02d", i))
		b.park(parkedEvent(ids[i]))
	}
	for range 25 { // a quorum queue of a broker from 4.0 on would have deleted them by now, if it were declared without a limit
		if got := b.list("").keys(); !slices.Equal(got, ids) {
			t.Fatalf("listed %q, want %q", got, ids)
		}
		if got := decode[whole](b, b.call("GET", "/admin/quarantine/"+lot+"/m-07", nil)); got.Key != "m-07" || got.Copies != 1 {
			t.Fatalf("shown %+v", got)
		}
	}
	var after []string
	for _, d := range b.contents(lot) {
		after = append(after, d.MessageId)
		if d.Headers[messaging.HeaderParkReason] != retry.ReasonMaxAttempts {
			t.Errorf("headers are now %v", d.Headers)
		}
	}
	if !slices.Equal(after, ids) {
		t.Errorf("the queue holds %q now, want %q", after, ids)
	}
	if rows := b.audit(); len(rows) > 0 {
		t.Errorf("looking is in the audit: %q", rows)
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	set := func(name string, value any) func(amqp.Table) {
		return func(h amqp.Table) { h[name] = value }
	}
	garbage := amqp.Publishing{Body: []byte("{\"messageId\":\"cut")}
	b.park(parkedEvent("a"), parkedEvent("b", set(messaging.HeaderParkReason, "VALIDATION"), set(messaging.HeaderErrorClass, "VALIDATION")),
		parkedEvent("c", set(messaging.HeaderParkedAt, time.Now().UTC().Format(time.RFC3339))), garbage)
	other := parkedEvent("d")
	other.Body = []byte(strings.Replace(string(other.Body), "Debited", "Credited", 1))
	b.park(other)
	const g = "sha256:a0f5c0b1" // only its form is known here, see below
	all := b.list("").keys()
	if len(all) != 5 || !strings.HasPrefix(all[3], digestPrefix) || len(all[3]) != len(g)+8 {
		t.Fatalf("listed %q", all)
	}
	for query, want := range map[string]string{
		"?id=a&id=d":                                  "a d",
		"?id=" + url.QueryEscape(all[3]):              all[3],
		"?id=nobody":                                  "",
		"?queue=" + lot:                               strings.Join(all, " "),
		"?reason=VALIDATION":                          "b",
		"?reason=max_attempts&class=NOT_FOUND":        "a c d",
		"?class=NOT_FOUND&olderThan=30m":              "a d",
		"?olderThan=2h":                               "",
		"?type=Accounts.Account.Credited":             "d",
		"?limit=2":                                    "a b",
		"?reason=MAX_ATTEMPTS&limit=1":                "a",
		"?reason=MAX_ATTEMPTS&olderThan=1m&limit=100": "a d",
	} {
		if got := strings.Join(b.list(query).keys(), " "); got != want {
			t.Errorf("%s lists %q, want %q", query, got, want)
		}
	}
}

func TestListSaysWhichIDsNameNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.park(parkedEvent("a"), parkedEvent("b"))
	sum := sha256.Sum256([]byte(event("b")))
	digest := fmt.Sprintf("sha256:%X", sum[:8])
	for query, want := range map[string]string{
		"?id=a&id=nobody&id=" + digest: "nobody", "?id=a&id=b&class=TIMEOUT": "a b", "?id=nobody&id=a&id=b&limit=1": "", "?limit=1": "",
	} {
		if got := strings.Join(b.list(query).Missing, " "); got != want {
			t.Errorf("%s misses %q, want %q", query, got, want)
		}
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.park(parkedEvent("a"), parkedEvent("twin"), parkedEvent("twin"), parkedEvent("b"), parkedEvent("c"))
	var got []string
	query, last := "?limit=1", ""
	for {
		page := b.list(query)
		got = append(got, page.keys()...)
		if page.Next == nil {
			break
		}
		last = *page.Next
		query = "?limit=1&after=" + last
	}
	if want := []string{"a", "twin", "twin", "b", "c"}; !slices.Equal(got, want) {
		t.Fatalf("pages list %q, want %q", got, want)
	}
	// What is taken out before the cursor shifts nothing; the cursor's own message gone is said.
	b.discard(order{"ids": []string{"a"}, "because": "test", "confirm": true})
	if got := b.list("?after=" + last).keys(); !slices.Equal(got, []string{"c"}) {
		t.Errorf("the page after b is %q", got)
	}
	b.discard(order{"ids": []string{"b"}, "because": "test", "confirm": true})
	if a := b.call("GET", "/admin/quarantine?after="+last, nil); a.status != http.StatusConflict {
		t.Errorf("a page after a message that is gone: %d %s", a.status, a.body)
	}
}

// One look is enough to see several messages whole.
func TestListOfWholeMessages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.park(parkedEvent("a"), parkedEvent("twin"), amqp.Publishing{Body: []byte{0xff}, ReplyTo: "somewhere"}, parkedEvent("twin"))
	type wholes struct {
		Items []whole `json:"items"`
		Next  *string `json:"next"`
	}
	all := decode[wholes](b, b.call("GET", "/admin/quarantine?whole=true", nil)).Items
	if len(all) != 4 || all[0].Body == nil || *all[0].Body.Text != event("a") || all[0].Headers[messaging.HeaderOriginQueue] != work0 ||
		all[2].Body.Base64 == nil || all[2].Properties.ReplyTo != "somewhere" || all[3].Key != "twin" || all[3].Copies != 0 {
		t.Errorf("listed whole: %+v", all)
	}
	page := decode[wholes](b, b.call("GET", "/admin/quarantine?whole=true&id=twin&limit=1", nil))
	if len(page.Items) != 1 || page.Items[0].Key != "twin" || page.Next == nil {
		t.Errorf("the first page is %+v", page)
	}
	if bare := decode[wholes](b, b.call("GET", "/admin/quarantine?whole=false", nil)).Items; bare[0].Body != nil {
		t.Errorf("listed with a body: %+v", bare[0])
	}
}

func TestBadFiltersAreNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for query, field := range map[string]string{
		"?queue=nobody": "queue", "?class=TIMEOUTS": "class", "?reason=no+reason": "reason", "?olderThan=yesterday": "olderThan", "?olderThan=-1s": "olderThan",
		"?limit=0": "limit", "?limit=100001": "limit", "?limit=many": "limit", "?limit=": "limit", "?id=": "id", "?after=x": "after",
		"?ids=a": "ids", "?whole=yes": "whole", "?type=a&type=b": "type",
	} {
		b.refusesField(b.call("GET", "/admin/quarantine"+query, nil), query, field)
	}
	for field, o := range map[string]order{
		"queue": {"queue": "nobody"}, "ids": {"ids": []string{""}}, "to": {"to": "nowhere"}, "rate": {"rate": 0}, "canary": {"canary": -1},
		"limit": {"limit": 0}, "class": {"class": "x"}, "olderThan": {"olderThan": "1"}, "confrim": {"confrim": true}, "id": {"id": "a"},
		"confirm": {"confirm": "yes"}, "force": {"force": 1}, "ids.0": {"ids": []int{1}}, "type": {"type": 1},
	} {
		b.refusesField(b.call("POST", "/admin/quarantine/replay", o), fmt.Sprint(o), field)
	}
	for field, o := range map[string]order{
		"because": {"ids": []string{"a"}}, "queue": {"queue": "x", "because": "y"}, "force": {"force": true, "because": "y"},
	} {
		b.refusesField(b.call("POST", "/admin/quarantine/discard", o), fmt.Sprint(o), field)
	}
	b.refusesField(b.call("POST", "/admin/quarantine/discard", order{"because": " \t"}), "blank", "because")
	b.refusesField(b.call("POST", "/admin/quarantine/replay", order{"rate": 0.05}), "a slow rate", "rate")
	huge := b.call("POST", "/admin/quarantine/replay", order{"rate": jsontext.Value("1e999")})
	b.refusesField(huge, "a rate beyond any number", "rate")
	if !strings.Contains(string(huge.body), "must be a number") {
		t.Errorf("a rate beyond any number is refused with %s", huge.body)
	}
	// What a script sends whose variables are not set must not mean every message.
	for _, path := range []string{"/admin/quarantine/replay", "/admin/quarantine/discard"} {
		for _, name := range []string{"ids", "queue", "reason", "class", "type", "olderThan", "limit"} {
			for _, empty := range []any{"", []string{}, nil} {
				if _, list := empty.([]string); empty != nil && list != (name == "ids") || empty == "" && name == "limit" {
					continue // of a wrong type
				}
				o := order{name: empty, "confirm": true}
				if strings.HasSuffix(path, "discard") {
					o["because"] = "y"
				}
				b.refusesField(b.call("POST", path, o), fmt.Sprint(path, o), name)
			}
		}
	}
	for query, field := range map[string]string{"?limit=0": "limit", "?after=x": "after", "?run=x": "run", "?id=": "id"} {
		b.refusesField(b.call("GET", "/admin/quarantine/audit"+query, nil), query, field)
	}
}

func (b *bench) refusesField(a answer, what, field string) {
	b.Helper()
	var problem struct {
		Errors []struct {
			Field string `json:"field"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(a.body, &problem); err != nil || a.status != http.StatusBadRequest || len(problem.Errors) != 1 || problem.Errors[0].Field != field {
		b.Errorf("%s: %d %s, want a 400 that names %s", what, a.status, a.body, field)
	}
}

func TestNobodyWithoutTheToken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, call := range []string{
		"GET /admin/quarantine", "GET /admin/quarantine/" + lot + "/a", "POST /admin/quarantine/replay", "POST /admin/quarantine/discard",
		"GET /admin/quarantine/audit", "GET /admin/quarantine/audit/1",
	} {
		method, path, _ := strings.Cut(call, " ")
		for _, authorization := range []string{"", "Bearer wrong"} {
			if a := b.call(method, path, order{}, func(r *http.Request) { r.Header.Set("Authorization", authorization) }); a.status != http.StatusUnauthorized {
				t.Errorf("%s with %q: %d", call, authorization, a.status)
			}
		}
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	odd := amqp.Publishing{
		Headers: amqp.Table{"bytes": []byte{0xff, 0}, "text": "\xff\x1b[31m", "table": amqp.Table{"n": int64(1 << 60), "list": []any{nil, true, 1.5}},
			"at": time.Unix(1700000000, 0)},
		Body: []byte{0, 0xff, 0x1b}, ReplyTo: "somewhere", Priority: 3,
	}
	b.park(parkedEvent("a/b c?"), odd, parkedEvent("twin"), parkedEvent("twin"))
	items := b.list("").Items
	i := slices.IndexFunc(items, func(it Item) bool { return it.MessageID == "" })
	if i < 0 {
		t.Fatalf("listed are %+v", items)
	}
	garbage := items[i]
	if !strings.HasPrefix(garbage.Key, digestPrefix) {
		t.Fatalf("garbage is listed as %+v", garbage)
	}
	got := decode[whole](b, b.call("GET", "/admin/quarantine/"+lot+"/"+url.PathEscape("a/b c?"), nil))
	if got.MessageID != "a/b c?" || got.Body.Text == nil || *got.Body.Text != event("a/b c?") || got.TransferID != "t-a/b c?" {
		t.Errorf("shown %+v", got)
	}
	if got.Headers[messaging.HeaderOriginQueue] != work0 || got.Properties.AppID != "account" || got.Error == "" || got.Attempts != 3 {
		t.Errorf("shown %+v", got)
	}
	if got = decode[whole](b, b.call("GET", "/admin/quarantine/"+lot+"/twin", nil)); got.Copies != 2 {
		t.Errorf("%d copies", got.Copies)
	}
	got = decode[whole](b, b.call("GET", "/admin/quarantine/"+lot+"/"+garbage.Key, nil))
	if got.Body.Base64 == nil || *got.Body.Base64 != base64.StdEncoding.EncodeToString(odd.Body) || got.Properties.ReplyTo != "somewhere" {
		t.Errorf("shown %+v", got)
	}
	if table, ok := got.Headers["table"].(map[string]any); !ok || len(table["list"].([]any)) != 3 {
		t.Errorf("headers are shown as %v", got.Headers)
	}
	for _, path := range []string{lot + "/nobody", "nowhere/a", lot + "/sha256:0000000000000000"} {
		if a := b.call("GET", "/admin/quarantine/"+path, nil); a.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

// What the broker moved itself has none of our headers; its end is in x-death.
func TestMovedByTheBroker(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(contract.EventsExchange, "accounts.account.debited", amqp.Publishing{Body: []byte(event("late")), Expiration: "1"})
	b.hasDepth(lot, 1)
	item := b.list("?reason=EXPIRED").Items[0]
	if item.Key != "late" || item.OriginQueue != work0 || item.OriginExchange != contract.EventsExchange ||
		item.OriginRoutingKey != "accounts.account.debited" || item.ParkedAt == nil || time.Since(*item.ParkedAt) > time.Minute {
		t.Errorf("listed %+v", item)
	}
	if got := decode[whole](b, b.call("GET", "/admin/quarantine/"+lot+"/late", nil)); len(got.Deaths) != 1 || got.Deaths[0].Reason != "expired" {
		t.Errorf("shown %+v", got)
	}
	if r := b.replay(order{"ids": []string{"late"}, "confirm": true}); r.Done != 1 {
		t.Fatalf("replayed %+v", r)
	}
	d := b.contents(work0)[0]
	if d.Expiration != "" || d.Headers["x-death"] != nil || d.Headers[messaging.HeaderOriginQueue] != work0 ||
		d.Headers[messaging.HeaderOriginExchange] != contract.EventsExchange || d.Headers[messaging.HeaderReplayCount] != int64(1) {
		t.Errorf("replayed with %v, expiration %q", d.Headers, d.Expiration)
	}
	b.hasDepth(lot, 0)
}

// A list of ten thousand messages: its first row comes at once, all of it in seconds, and never is all of it in memory.
func TestTenThousandMessages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 10_000
	batch := make([]amqp.Publishing, 0, n)
	for i := range n {
		class := "NOT_FOUND"
		if i%10 == 0 {
			class = "VALIDATION"
		}
		batch = append(batch, parkedEvent(fmt.Sprintf("m-%05d", i), func(h amqp.Table) { h[messaging.HeaderErrorClass] = class }))
	}
	b.park(batch...)
	batch = nil
	b.transport = nil // to hold thousands of rows against the document takes longer than all the rest
	request, err := http.NewRequestWithContext(t.Context(), "GET", b.server+"/admin/quarantine?class=NOT_FOUND&olderThan=1m&limit=100000", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	runtime.GC()
	var before, peak runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	rows, first := 0, time.Duration(0)
	for lines.Scan() {
		if rows++; rows == 1 {
			first = time.Since(began)
		}
		if rows%1000 == 0 {
			var now runtime.MemStats
			if runtime.ReadMemStats(&now); now.HeapAlloc > peak.HeapAlloc {
				peak = now
			}
		}
	}
	took := time.Since(began)
	t.Logf("%d rows, the first after %s, all after %s; heap grew by %d MiB at most", rows-1, first, took, (int64(peak.HeapAlloc)-int64(before.HeapAlloc))>>20)
	if err := lines.Err(); err != nil || rows != n*9/10+1 {
		t.Errorf("%d rows, %v", rows, err)
	}
	// On a quiet machine it is a tenth of that; the race detector and the other tests have their share here.
	if first > 3*time.Second || took > 30*time.Second {
		t.Errorf("the first row took %s, all of them %s", first, took)
	}
	if r := b.replay(order{"class": "VALIDATION", "limit": 100000}); r.Matched != n/10 || r.Done != n/10 || !r.DryRun {
		t.Errorf("a dry run over all finds %d, would replay %d", r.Matched, r.Done)
	}
	got := b.list("?limit=100000").keys()
	if len(got) != n || !slices.IsSorted(got) {
		t.Errorf("afterwards there are %d, in their order: %v", len(got), slices.IsSorted(got))
	}
	b.hasDepth(lot, n)
}

// Bodies of the largest size are never in memory all at once, not even when only the first is asked for, here or at the broker.
func TestLargeBodiesAreNotInMemoryAtOnce(t *testing.T) {
	b := newBench(t)
	b.transport = nil
	const n, size = 96, 1 << 20
	for i := range n {
		b.park(largeEvent(fmt.Sprintf("m-%03d", i), size))
	}
	l, err := b.q.look(t.Context(), lot)
	if err != nil {
		t.Fatal(err)
	}
	var memory runtime.MemStats
	var peak uint64
	seen := 0
	if err := l.each(t.Context(), func(d *amqp.Delivery) (bool, error) {
		if seen++; seen%8 == 0 {
			runtime.GC() // what is left is what somebody holds
			runtime.ReadMemStats(&memory)
			peak = max(peak, memory.HeapAlloc)
		}
		return len(d.Body) == size, nil
	}); err != nil || seen != n {
		t.Fatalf("%d seen, %v", seen, err)
	}
	t.Logf("at most %d MiB of %d", peak>>20, n)
	if peak > n*size*2/3 {
		t.Errorf("%d MiB were held at once, of %d", peak>>20, n)
	}
	l.close()
	if l, err = b.q.look(t.Context(), lot); err != nil {
		t.Fatal(err)
	}
	if err := l.each(t.Context(), func(*amqp.Delivery) (bool, error) { return false, nil }); err != nil || l.taken > actable {
		t.Errorf("to see the first, %d were taken, %v", l.taken, err)
	}
	l.close()
	b.hasDepth(lot, n)
}

// largeEvent is a parked message with a body of so many bytes.
func largeEvent(id string, size int) amqp.Publishing {
	m := parkedEvent(id)
	m.Body = append(m.Body, bytes.Repeat([]byte(" "), size-len(m.Body))...)
	return m
}
