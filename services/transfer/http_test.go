package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/service"
	"example.com/banking/pkg/service/openapitest"
	"github.com/google/uuid"
)

// problemOf reads a problem document and checks what all of them have.
func (b *bank) problemOf(a answer, status int) service.Problem {
	b.t.Helper()
	var p service.Problem
	if a.StatusCode != status || a.Header.Get("Content-Type") != "application/problem+json" {
		b.t.Fatalf("%s %s: %d %s %s, want a problem with %d", a.Request.Method, a.Request.URL, a.StatusCode, a.Header.Get("Content-Type"), a.body, status)
	}
	b.decode(a.body, &p)
	if p.Status != status || p.Title == "" || p.Type == "" {
		b.t.Errorf("the problem is %+v", p)
	}
	return p
}

func (b *bank) fields(p service.Problem) string {
	var fields []string
	for _, e := range p.Errors {
		fields = append(fields, e.Field)
	}
	return strings.Join(fields, " ")
}

func TestCreateTransfer(t *testing.T) {
	t.Parallel()
	b := startBank(t)
	o := newOrder()
	a := b.call(http.MethodPost, "/transfers", strings.Replace(o.body(), "}", `,"reference":"rent <März> & \"more\""}`, 1))
	var got transferView
	b.decode(a.body, &got)
	if a.StatusCode != http.StatusAccepted || a.Header.Get("Location") != "/transfers/"+got.ID.String() || a.Header.Get("Idempotency-Replayed") != "" {
		t.Errorf("answer %d, Location %q, headers %v", a.StatusCode, a.Header.Get("Location"), a.Header)
	}
	if got.Status != "REQUESTED" || got.SourceAccountID != o.source || got.DestinationAccountID != o.destination ||
		got.AmountMinor != 2500 || got.Currency != "EUR" || pointee(got.Reference) != `rent <März> & "more"` || got.Reason != nil {
		t.Errorf("transfer is %s", a.body)
	}
	if again := b.call(http.MethodGet, a.Header.Get("Location"), ""); again.StatusCode != http.StatusOK || string(again.body) != string(a.body) {
		t.Errorf("GET answers %s, POST answered %s", again.body, a.body)
	}

	m := b.awaitSent(got.ID, 1)[0]
	if m.Type != contract.TransferRequested || m.MessageID != got.Timeline[0].MessageID || m.CausationID != "" || !m.OccurredAt.Equal(got.CreatedAt) {
		t.Errorf("sent %+v, the timeline is %+v", m, got.Timeline)
	}
	want := fmt.Sprintf(`{"transferId":%q,"sourceAccountId":%q,"destinationAccountId":%q,"amountMinor":2500,"currency":"EUR"}`, got.ID, o.source, o.destination)
	if string(m.Data) != want {
		t.Errorf("data is %s, want %s", m.Data, want)
	}
}

// The amount travels as it is, digit for digit, where a float would have lost the last ones.
func TestLargestAmountStaysExact(t *testing.T) {
	t.Parallel()
	b := startBank(t)
	const largest = "9223372036854775807"
	a := b.call(http.MethodPost, "/transfers", strings.Replace(newOrder().body(), "2500", largest, 1))
	var got transferView
	b.decode(a.body, &got)
	m := b.awaitSent(got.ID, 1)[0]
	for what, text := range map[string]string{"answer": string(a.body), "message": string(m.Data), "list": string(b.call(http.MethodGet, "/transfers", "").body)} {
		if !strings.Contains(text, `"amountMinor":`+largest) {
			t.Errorf("%s is %s", what, text)
		}
	}
}

func TestRefusedCalls(t *testing.T) {
	t.Parallel()
	b := startBank(t)
	id := b.request(newOrder()).ID
	good := newOrder().body()
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		fields             string
	}{
		"no body":               {http.MethodPost, "/transfers", "", nil, 400, ""},
		"no JSON":               {http.MethodPost, "/transfers", "hello", nil, 400, ""},
		"cut off":               {http.MethodPost, "/transfers", good[:len(good)-2], nil, 400, ""},
		"a list":                {http.MethodPost, "/transfers", "[" + good + "]", nil, 400, ""},
		"null":                  {http.MethodPost, "/transfers", "null", nil, 400, ""},
		"trailing data":         {http.MethodPost, "/transfers", good + "{}", nil, 400, ""},
		"invalid UTF-8":         {http.MethodPost, "/transfers", strings.Replace(good, "}", ",\"reference\":\"\xff\"}", 1), nil, 400, ""},
		"a member twice":        {http.MethodPost, "/transfers", strings.Replace(good, "{", `{"amountMinor":1,`, 1), nil, 400, "amountMinor"},
		"nothing in it":         {http.MethodPost, "/transfers", "{}", nil, 400, "sourceAccountId destinationAccountId amountMinor currency"},
		"two wrong members":     {http.MethodPost, "/transfers", members("amountMinor", "1.5", "currency", `"EURO"`), nil, 400, "amountMinor currency"},
		"too large":             {http.MethodPost, "/transfers", strings.Replace(good, "}", `,"x":"`+strings.Repeat("x", 1<<20)+`"}`, 1), nil, 413, ""},
		"another site's page":   {http.MethodPost, "/transfers", good, []string{"Origin: https://evil.example"}, 403, ""},
		"an empty key":          {http.MethodPost, "/transfers", good, []string{"Idempotency-Key: "}, 400, "Idempotency-Key"},
		"a key of 256":          {http.MethodPost, "/transfers", good, []string{"Idempotency-Key: " + strings.Repeat("k", 256)}, 400, "Idempotency-Key"},
		"two keys":              {http.MethodPost, "/transfers", good, []string{"Idempotency-Key: a", "Idempotency-Key: b"}, 400, "Idempotency-Key"},
		"an id that is none":    {http.MethodGet, "/transfers/not-a-real-id", "", nil, 404, ""},
		"an id of nothing":      {http.MethodGet, "/transfers/" + uuid.NewString(), "", nil, 404, ""},
		"an unknown route":      {http.MethodGet, "/transfer", "", nil, 404, ""},
		"below a transfer":      {http.MethodGet, "/transfers/" + id.String() + "/facts", "", nil, 404, ""},
		"a method that is none": {http.MethodDelete, "/transfers/" + id.String(), "", nil, 405, ""},
		"PUT on the list":       {http.MethodPut, "/transfers", good, nil, 405, ""},
		"an unknown status":     {http.MethodGet, "/transfers?status=LOST", "", nil, 400, "status"},
		"a status in lower":     {http.MethodGet, "/transfers?status=completed", "", nil, 400, "status"},
		"an empty status":       {http.MethodGet, "/transfers?status=", "", nil, 400, "status"},
		"a broken status":       {http.MethodGet, "/transfers?status=%zz", "", nil, 400, ""},
		"a status; a limit":     {http.MethodGet, "/transfers?status=DEBITED;limit=1", "", nil, 400, ""},
		"two statuses":          {http.MethodGet, "/transfers?status=DEBITED&status=REFUNDED", "", nil, 400, "status"},
		"limit 0":               {http.MethodGet, "/transfers?limit=0", "", nil, 400, "limit"},
		"limit 201":             {http.MethodGet, "/transfers?limit=201", "", nil, 400, "limit"},
		"limit of words":        {http.MethodGet, "/transfers?limit=ten", "", nil, 400, "limit"},
		"a cursor of words":     {http.MethodGet, "/transfers?after=ten", "", nil, 400, "after"},
	} {
		p := b.problemOf(b.call(c.method, c.path, c.body, c.headers...), c.status)
		if got := b.fields(p); got != c.fields {
			t.Errorf("%s: fields %q, want %q", name, got, c.fields)
		}
	}
	if n := b.count(`select count(*) from transfers`); n != 1 {
		t.Errorf("%d transfers are stored, want the 1 that was not refused", n)
	}
}

func TestIdempotencyKeyReplays(t *testing.T) {
	t.Parallel()
	b := startBank(t)
	o := newOrder()
	key := "Idempotency-Key: rent of März"
	// A refused request does not use up the key.
	b.problemOf(b.call(http.MethodPost, "/transfers", "{}", key), http.StatusBadRequest)
	first := b.call(http.MethodPost, "/transfers", o.body(), key)
	var accepted transferView
	b.decode(first.body, &accepted)
	if first.StatusCode != http.StatusAccepted || first.Header.Get("Idempotency-Replayed") != "" {
		t.Fatalf("first answer: %d %v", first.StatusCode, first.Header)
	}
	b.twice(tells(accepted, contract.AccountDebited))
	b.awaitStatus(accepted.ID, "DEBITED")

	// Spelled otherwise it is the same body; the answer is the transfer as it is by now.
	spelled := " \n" + strings.Replace(o.body(), o.source.String(), strings.ToUpper(o.source.String()), 1)
	again := b.call(http.MethodPost, "/transfers", spelled, key)
	var replayed transferView
	b.decode(again.body, &replayed)
	if again.StatusCode != http.StatusAccepted || again.Header.Get("Idempotency-Replayed") != "true" || again.Header.Get("Location") != first.Header.Get("Location") {
		t.Errorf("replay: %d %v", again.StatusCode, again.Header)
	}
	if replayed.ID != accepted.ID || replayed.Status != "DEBITED" || len(replayed.Timeline) != 2 {
		t.Errorf("replay shows %s", again.body)
	}
	b.problemOf(b.call(http.MethodPost, "/transfers", strings.Replace(o.body(), "2500", "2501", 1), key), http.StatusUnprocessableEntity)
	if n := b.count(`select count(*) from transfers`); n != 1 {
		t.Errorf("%d transfers, want 1", n)
	}
}

// Requests with one key that race, to two replicas, all get the one transfer; none is told of a conflict in the database.
func TestParallelRequestsWithOneKey(t *testing.T) {
	t.Parallel()
	b := startBank(t)
	urls := []string{b.url}
	b.url, _ = b.replica()
	b.awaitReady()
	urls = append(urls, b.url)
	for round := range 5 {
		body, key := newOrder().body(), fmt.Sprintf("Idempotency-Key: %d", round)
		answers := make([]answer, 10)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, urls[i%2]+"/transfers", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				name, value, _ := strings.Cut(key, ": ")
				request.Header.Set(name, value)
				request.Header.Set("Content-Type", "application/json")
				answers[i] = b.send(t, request)
			})
		}
		wg.Wait()
		ids, fresh := map[uuid.UUID]bool{}, 0
		for _, a := range answers {
			if a.StatusCode != http.StatusAccepted {
				t.Fatalf("answer %d %s", a.StatusCode, a.body)
			}
			if a.Header.Get("Idempotency-Replayed") == "" {
				fresh++
			}
			var transfer transferView
			b.decode(a.body, &transfer)
			ids[transfer.ID] = true
		}
		if len(ids) != 1 || fresh != 1 {
			t.Fatalf("%d transfers, %d of the answers not replayed; want 1 and 1", len(ids), fresh)
		}
		for id := range ids {
			if n := b.count(`select count(*) from transfers where id = $1`, id); n != 1 {
				t.Errorf("%d rows of transfer %s", n, id)
			}
			b.awaitSent(id, 1)
			b.eventually("the outbox is empty", func() bool { return b.count(`select count(*) from outbox`) == 0 })
			if types := b.sent.types(id); !slices.Equal(types, []string{contract.TransferRequested}) {
				t.Errorf("sent %v", types)
			}
		}
	}
	if n := b.count(`select count(*) from transfers`); n != 5 {
		t.Errorf("%d transfers, want 5", n)
	}
}

func TestListAndSummary(t *testing.T) {
	t.Parallel()
	b := startBank(t)
	if a := b.call(http.MethodGet, "/transfers", ""); string(a.body) != `{"items":[],"next":null}` {
		t.Errorf("the empty list is %s", a.body)
	}
	var all []uuid.UUID
	for range 7 {
		all = append(all, b.request(newOrder()).ID)
	}
	slices.Reverse(all)
	completed := b.get(all[3])
	b.twice(tells(completed, contract.AccountDebited), tells(completed, contract.AccountCredited))
	b.awaitStatus(completed.ID, "COMPLETED")

	list := func(query string) (ids []uuid.UUID) {
		for after := ""; ; {
			var page service.List[transferView]
			a := b.call(http.MethodGet, "/transfers?limit=3"+query+after, "")
			b.decode(a.body, &page)
			for _, item := range page.Items {
				ids = append(ids, item.ID)
			}
			if page.Next == nil {
				return ids
			}
			after = "&after=" + url.QueryEscape(*page.Next)
		}
	}
	if got := list(""); !slices.Equal(got, all) {
		t.Errorf("the list is %v, want %v", got, all)
	}
	if got := list("&status=COMPLETED"); !slices.Equal(got, all[3:4]) {
		t.Errorf("completed are %v, want %v", got, all[3:4])
	}
	if got, want := list("&status=REQUESTED"), slices.Delete(slices.Clone(all), 3, 4); !slices.Equal(got, want) {
		t.Errorf("requested are %v, want %v", got, want)
	}
	summary := map[string]int{}
	b.decode(b.call(http.MethodGet, "/transfers/summary", "").body, &summary)
	if want := map[string]int{"REQUESTED": 6, "DEBITED": 0, "COMPLETED": 1, "REJECTED": 0, "REFUNDING": 0, "REFUNDED": 0}; !maps.Equal(summary, want) {
		t.Errorf("summary is %v, want %v", summary, want)
	}
}

func TestOperationalRoutes(t *testing.T) {
	t.Parallel()
	b := startBank(t)
	for path, want := range map[string]string{
		"/healthz": "ok", "/readyz": "ok", "/metrics": "go_goroutines", "/openapi.yaml": "operationId: createTransfer",
	} {
		a := b.call(http.MethodGet, path, "")
		if a.StatusCode != http.StatusOK || !strings.Contains(string(a.body), want) {
			t.Errorf("%s answers %d %.200s", path, a.StatusCode, a.body)
		}
	}
}

// Each answer that the document promises is shown to be given. 503 and the answers of any operation ("default") have tests of their own.
func TestDocumentedAnswersExist(t *testing.T) {
	t.Parallel()
	b := startBank(t)
	checker := openapitest.New(t, openAPI, nil)
	b.client = &http.Client{Transport: checker}
	body := newOrder().body()
	id := b.request(newOrder()).ID.String()
	b.call(http.MethodPost, "/transfers", body, "Idempotency-Key: k")
	b.call(http.MethodPost, "/transfers", body, "Idempotency-Key: k")
	b.call(http.MethodPost, "/transfers", newOrder().body(), "Idempotency-Key: k")
	b.call(http.MethodPost, "/transfers", "{}")
	b.call(http.MethodPost, "/transfers", body, "Sec-Fetch-Site: cross-site")
	b.call(http.MethodPost, "/transfers", strings.Repeat(" ", 1<<20+1))
	b.call(http.MethodPost, "/transfers", body, "Host: rebound.example")
	b.call(http.MethodGet, "/transfers?limit=1&status=REQUESTED", "")
	b.call(http.MethodGet, "/transfers?limit=0", "")
	b.call(http.MethodGet, "/transfers/summary", "")
	b.call(http.MethodGet, "/transfers/"+id, "")
	b.call(http.MethodGet, "/transfers/"+uuid.NewString(), "")
	b.call(http.MethodGet, "/transfers/"+id+"/life", "")
	b.call(http.MethodGet, "/transfers/"+uuid.NewString()+"/life", "")
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.yaml"} {
		b.call(http.MethodGet, path, "")
		b.call(http.MethodGet, path, "", "Host: rebound.example")
	}
	for _, path := range []string{"", "/summary", "/" + id, "/" + id + "/life"} {
		b.call(http.MethodGet, "/transfers"+path, "", "Host: rebound.example")
	}
	for _, missing := range checker.Uncovered() {
		if !strings.HasSuffix(missing, " 503") && !strings.HasSuffix(missing, " default") {
			t.Errorf("no answer shows %s", missing)
		}
	}
}
