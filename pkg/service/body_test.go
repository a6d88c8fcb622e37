package service_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/service"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

type opening struct {
	ID      uuid.UUID       `json:"id"`
	Owner   string          `json:"owner"`
	Opening int64           `json:"openingBalanceMinor"`
	Active  *bool           `json:"active"`
	Amount  contract.Amount `json:"amountMinor"`
	Text    contract.Text   `json:"text"`
	Inner   struct {
		Tags []string `json:"tags"`
	} `json:"inner"`
}

func serveOpenings(t *testing.T) string {
	return serve(t, service.HTTPConfig{}, func(h *service.HTTP) {
		h.Echo.POST("/accounts", func(c echo.Context) error {
			var body opening
			if err := service.DecodeJSON(c, &body); err != nil {
				return err
			}
			return c.JSON(http.StatusOK, body.Owner)
		})
		h.Echo.POST("/accounts/:id/close", func(c echo.Context) error {
			id, err := service.PathID(c, "id")
			if err != nil {
				return err
			}
			return c.JSON(http.StatusOK, id)
		})
	})
}

func TestDecodeJSONIsStrict(t *testing.T) {
	t.Parallel()
	url := serveOpenings(t) + "/accounts"
	for _, test := range []struct{ name, body, field, says string }{
		{name: "nothing", body: "", says: "missing"},
		{name: "white space", body: " \n", says: "missing"},
		{name: "null", body: "null", says: "JSON object"},
		{name: "an array", body: "[]", says: "JSON object"},
		{name: "no JSON", body: "owner=a", says: "JSON object"},
		{name: "cut off", body: `{"owner":"a"`, says: "not one JSON object"},
		{name: "trailing data", body: `{"owner":"a"}{}`, says: "not one JSON object"},
		{name: "trailing comma", body: `{"owner":"a",}`, says: "not one JSON object"},
		{name: "invalid UTF-8", body: "{\"owner\":\"\xff\"}", says: "not one JSON object"},
		{name: "lone surrogate", body: `{"owner":"\ud800"}`, says: "not one JSON object"},
		{name: "a member twice", body: `{"owner":"a","owner":"a"}`, field: "owner", says: "is given twice"},
		{name: "an unknown member twice", body: `{"x":1,"x":1}`, field: "x", says: "is given twice"},
		{name: "number for text", body: `{"owner":1}`, field: "owner", says: "must be a text"},
		{name: "text for number", body: `{"openingBalanceMinor":"1"}`, field: "openingBalanceMinor", says: "must be an integer within 64 bits"},
		{name: "fraction", body: `{"openingBalanceMinor":1.5}`, field: "openingBalanceMinor", says: "must be an integer within 64 bits"},
		{name: "fraction of zero", body: `{"openingBalanceMinor":1.0}`, field: "openingBalanceMinor", says: "must be an integer within 64 bits"},
		{name: "exponent", body: `{"openingBalanceMinor":1e3}`, field: "openingBalanceMinor", says: "must be an integer within 64 bits"},
		{name: "too large", body: `{"openingBalanceMinor":9223372036854775808}`, field: "openingBalanceMinor", says: "must be an integer within 64 bits"},
		{name: "no boolean", body: `{"active":"yes"}`, field: "active", says: "must be true or false"},
		{name: "no UUID", body: `{"id":"1"}`, field: "id", says: "must be a UUID"},
		{name: "number for UUID", body: `{"id":1}`, field: "id", says: "must be a UUID"},
		{name: "inner member", body: `{"inner":{"tags":["a",2]}}`, field: "inner.tags.1", says: "must be a text"},
		{name: "no object", body: `{"inner":[]}`, field: "inner", says: "must be an object"},
		{name: "no array", body: `{"inner":{"tags":{}}}`, field: "inner.tags", says: "must be an array"},
		{name: "a strict amount", body: `{"amountMinor":"5"}`, field: "amountMinor", says: "must be an integer, not a text"},
		{name: "a strict text", body: `{"text":null}`, field: "text", says: "must be a text, not null"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			problem := wantProblem(t, call(t, "POST", url, strings.NewReader(test.body)), 400)
			said := problem.Detail
			if test.field != "" {
				if len(problem.Errors) != 1 || problem.Errors[0].Field != test.field {
					t.Fatalf("field errors are %v, want %s", problem.Errors, test.field)
				}
				said = problem.Errors[0].Message
			}
			if !strings.Contains(said, test.says) || strings.Contains(said, "Go ") {
				t.Errorf("got %q, want %q", said, test.says)
			}
		})
	}
	for _, body := range []string{`{"owner":"a"}`, ` {"unknown":[1,{}],"OWNER":7,"owner":"a"} ` + "\n", `{"owner":"a","openingBalanceMinor":9223372036854775807}`} {
		if got := call(t, "POST", url, strings.NewReader(body)); got.status != 200 || got.body != `"a"` {
			t.Errorf("%s: got %d %s", body, got.status, got.body)
		}
	}
}

// unsized hides the length of a body, so that it is sent in chunks.
type unsized struct{ io.Reader }

func TestBodiesOverOneMiBAreRefused(t *testing.T) {
	t.Parallel()
	url := serveOpenings(t)
	padded := func(size int) string {
		const frame = `{"owner":"a","x":""}`
		return `{"owner":"a","x":"` + strings.Repeat("x", size-len(frame)) + `"}`
	}
	fits, larger := padded(1<<20), padded(1<<20+1)
	id := uuid.NewString()
	for _, path := range []string{"/accounts", "/accounts/" + id + "/close"} { // one reads its body, one does not
		for _, test := range []struct {
			name   string
			body   io.Reader
			status int
		}{
			{"fits", strings.NewReader(fits), 200},
			{"fits, chunked", unsized{strings.NewReader(fits)}, 200},
			{"too large", strings.NewReader(larger), 413},
			{"too large, chunked", unsized{strings.NewReader(larger)}, 413},
			{"far too large, chunked", unsized{strings.NewReader(strings.Repeat("x", 2<<20))}, 413},
		} {
			got := call(t, "POST", url+path, test.body)
			if test.status == 413 {
				wantProblem(t, got, 413)
			} else if got.status != test.status {
				t.Errorf("%s %s: got %d %s", path, test.name, got.status, got.body)
			}
		}
	}
}

func TestBodyThatEndsEarlyIsTheClientsFault(t *testing.T) {
	t.Parallel()
	address := strings.TrimPrefix(serveOpenings(t), "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST /accounts HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 400 {
		t.Errorf("got %d", response.StatusCode)
	}
}

func TestPathIDIsAUUIDOrNothing(t *testing.T) {
	t.Parallel()
	url := serveOpenings(t)
	for _, id := range []string{"1", "%20", "0190c2a851c17cc2b2ae3b0a3c4f3a11", "{0190c2a8-51c1-7cc2-b2ae-3b0a3c4f3a11}", "0190c2a8-51c1-7cc2-b2ae-3b0a3c4f3a1g"} {
		wantProblem(t, call(t, "POST", url+"/accounts/"+id+"/close", nil), 404)
	}
	if got := call(t, "POST", url+"/accounts/0190C2A8-51c1-7cc2-b2ae-3b0a3c4f3a11/close", nil); got.body != `"0190c2a8-51c1-7cc2-b2ae-3b0a3c4f3a11"` {
		t.Errorf("got %+v", got)
	}
}
