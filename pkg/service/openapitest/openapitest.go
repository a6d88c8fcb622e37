// Package openapitest checks in tests that a service answers as its OpenAPI document says. Documents rot when nothing
// reads them; here every answer that a test gets is held against the document: status, content type and body.
package openapitest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sort"
	"strconv"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// Transport is an http.RoundTripper that fails the test when an answer does not match the document. A JSON request is held
// against it too when the answer is a success: what the service accepts must be what the document says it accepts.
type Transport struct {
	t        testing.TB
	base     http.RoundTripper
	document *openapi3.T
	router   routers.Router

	mu   sync.Mutex
	seen map[string]bool
}

// New reads the document, which must be valid itself. Answers come from base, nil for a transport of its own that is
// closed when the test ends.
func New(t testing.TB, document []byte, base http.RoundTripper) *Transport {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err == nil {
		err = doc.Validate(context.Background())
	}
	if err != nil {
		t.Fatalf("OpenAPI document: %v", err)
	}
	doc.Servers = nil // the paths count, wherever the test's server listens
	doc.SetStringFormatValidator("uuid", openapi3.NewRegexpFormatValidator(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`))
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatalf("OpenAPI document: %v", err)
	}
	if base == nil {
		own := &http.Transport{}
		t.Cleanup(own.CloseIdleConnections)
		base = own
	}
	return &Transport{t: t, base: base, document: doc, router: router, seen: map[string]bool{}}
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	asked, err := drain(&r.Body)
	if err != nil {
		return nil, err
	}
	answer, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	said, err := drain(&answer.Body)
	if err != nil {
		return nil, err
	}
	if err := t.check(r, asked, answer, said); err != nil {
		t.t.Errorf("%s %s answered %d, which the OpenAPI document does not allow: %v\nbody: %.2000s",
			r.Method, r.URL.Path, answer.StatusCode, err, said)
	}
	return answer, nil
}

// drain reads a body to its end and puts a fresh one in its place.
func drain(body *io.ReadCloser) ([]byte, error) {
	if *body == nil || *body == http.NoBody {
		return nil, nil
	}
	content, err := io.ReadAll(*body)
	if err = errors.Join(err, (*body).Close()); err != nil {
		return nil, err
	}
	*body = io.NopCloser(bytes.NewReader(content))
	return content, nil
}

func (t *Transport) check(r *http.Request, asked []byte, answer *http.Response, said []byte) error {
	looked := r.Clone(r.Context())
	looked.Body = io.NopCloser(bytes.NewReader(asked))
	if r.Method == http.MethodHead {
		looked.Method = http.MethodGet
	}
	route, parameters, err := t.router.FindRoute(looked)
	if err != nil {
		return unknownRoute(err, answer)
	}
	t.note(route, answer.StatusCode)
	if r.Method == http.MethodHead {
		return nil // no body to look at; that it has one of GET's statuses is checked by GET
	}
	options := &openapi3filter.Options{
		IncludeResponseStatus: true, MultiError: true,
		AuthenticationFunc:      openapi3filter.NoopAuthenticationFunc,
		SchemaValidationOptions: append(t.document.GetSchemaValidationOptions(), openapi3.EnableFormatValidation()),
	}
	request := &openapi3filter.RequestValidationInput{Request: looked, PathParams: parameters, Route: route, Options: options}
	if answer.StatusCode < 300 && isJSON(r.Header) {
		if err := openapi3filter.ValidateRequest(r.Context(), request); err != nil {
			return fmt.Errorf("the request: %w", err)
		}
	}
	response := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: request, Status: answer.StatusCode, Header: answer.Header, Options: options,
	}
	response.SetBodyBytes(said)
	return openapi3filter.ValidateResponse(r.Context(), response)
}

func isJSON(header http.Header) bool {
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && media == "application/json"
}

// unknownRoute demands the usual errors where the document has nothing to say.
func unknownRoute(err error, answer *http.Response) error {
	wanted := http.StatusNotFound
	if errors.Is(err, routers.ErrMethodNotAllowed) {
		wanted = http.StatusMethodNotAllowed
	}
	if answer.StatusCode != wanted || answer.Header.Get("Content-Type") != "application/problem+json" {
		return fmt.Errorf("%w, so it should be %d with application/problem+json", err, wanted)
	}
	return nil
}

func (t *Transport) note(route *routers.Route, status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[fmt.Sprintf("%s %s %d", route.Method, route.Path, status)] = true
}

// Uncovered lists operations and statuses of the document that no answer has shown yet, as "GET /accounts 200", sorted.
// Ranges such as 4XX and default are left out.
func (t *Transport) Uncovered() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var missing []string
	for path, item := range t.document.Paths.Map() {
		for method, operation := range item.Operations() {
			for status := range operation.Responses.Map() {
				name := method + " " + path + " " + status
				if _, err := strconv.Atoi(status); err == nil && !t.seen[name] {
					missing = append(missing, name)
				}
			}
		}
	}
	sort.Strings(missing)
	return missing
}
