package openapitest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"example.com/banking/pkg/service/openapitest"
)

const document = `
openapi: 3.0.3
info: {title: Example, version: "1"}
servers: [{url: "http://elsewhere.example:1234"}]
paths:
  /things/{id}:
    get:
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      responses:
        "200":
          description: the thing
          content: {application/json: {schema: {$ref: "#/components/schemas/Thing"}}}
        "404":
          description: no such thing
          content: {application/problem+json: {schema: {type: object, required: [status]}}}
  /things:
    post:
      requestBody:
        required: true
        content: {application/json: {schema: {type: object, required: [amountMinor], properties: {amountMinor: {type: integer, format: int64}}}}}
      responses:
        "201": {description: made}
components:
  schemas:
    Thing:
      type: object
      required: [id, amountMinor]
      properties:
        id: {type: string, format: uuid}
        amountMinor: {type: integer, format: int64}
`

// recorder stands in for a test, to see whether it would fail.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

const good = `{"id": "0190c2a8-51c1-7cc2-b2ae-3b0a3c4f3a11", "amountMinor": 9223372036854775807}`

func TestTransportHoldsAnswersAgainstTheDocument(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, method, path, body string
		status                   int
		contentType, answer      string
		complains                bool
	}{
		{name: "as described", method: "GET", path: "/things/1", status: 200, contentType: "application/json", answer: good},
		{name: "with HEAD", method: "HEAD", path: "/things/1", status: 200, contentType: "application/json"},
		{name: "another described status", method: "GET", path: "/things/1", status: 404, contentType: "application/problem+json", answer: `{"status": 404}`},
		{name: "undescribed status", method: "GET", path: "/things/1", status: 500, contentType: "application/json", answer: good, complains: true},
		{name: "other content type", method: "GET", path: "/things/1", status: 404, contentType: "application/json", answer: `{"status": 404}`, complains: true},
		{name: "missing member", method: "GET", path: "/things/1", status: 200, contentType: "application/json", answer: `{"id": "0190c2a8-51c1-7cc2-b2ae-3b0a3c4f3a11"}`, complains: true},
		{name: "wrong type", method: "GET", path: "/things/1", status: 200, contentType: "application/json", answer: strings.Replace(good, "9223372036854775807", `"1"`, 1), complains: true},
		{name: "an id that is no UUID", method: "GET", path: "/things/1", status: 200, contentType: "application/json", answer: `{"id": "1", "amountMinor": 1}`, complains: true},
		{name: "no JSON", method: "GET", path: "/things/1", status: 200, contentType: "application/json", answer: `{`, complains: true},
		{name: "unknown path", method: "GET", path: "/nothing", status: 404, contentType: "application/problem+json", answer: `{}`},
		{name: "unknown path that answers", method: "GET", path: "/nothing", status: 200, contentType: "application/json", answer: `{}`, complains: true},
		{name: "unknown path without a problem", method: "GET", path: "/nothing", status: 404, contentType: "text/plain", answer: "no", complains: true},
		{name: "unknown method", method: "PUT", path: "/things/1", status: 405, contentType: "application/problem+json", answer: `{}`},
		{name: "described request", method: "POST", path: "/things", body: `{"amountMinor": 5}`, status: 201},
		{name: "accepts what it should not", method: "POST", path: "/things", body: `{}`, status: 201, complains: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if got, _ := io.ReadAll(r.Body); string(got) != test.body {
					t.Errorf("the server got the body %q, want %q", got, test.body)
				}
				if test.contentType != "" {
					w.Header().Set("Content-Type", test.contentType)
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.answer)
			}))
			defer server.Close()
			fake := &recorder{TB: t}
			transport := openapitest.New(fake, []byte(document), server.Client().Transport)
			request, _ := http.NewRequest(test.method, server.URL+test.path, strings.NewReader(test.body))
			if test.body != "" {
				request.Header.Set("Content-Type", "application/json")
			}
			answer, err := (&http.Client{Transport: transport}).Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if got, _ := io.ReadAll(answer.Body); string(got) != test.answer {
				t.Errorf("the client got the body %q, want %q", got, test.answer)
			}
			if complained := len(fake.said) > 0; complained != test.complains {
				t.Errorf("complained: %v, want %v: %q", complained, test.complains, fake.said)
			}
		})
	}
}

func TestUncoveredListsWhatNoAnswerHasShown(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, good)
	}))
	defer server.Close()
	transport := openapitest.New(t, []byte(document), nil)
	answer, err := (&http.Client{Transport: transport}).Get(server.URL + "/things/1")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	want := []string{"GET /things/{id} 404", "POST /things 201"}
	if got := transport.Uncovered(); !slices.Equal(got, want) {
		t.Errorf("uncovered %q, want %q", got, want)
	}
}
