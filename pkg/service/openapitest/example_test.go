package openapitest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/banking/pkg/service/openapitest"
)

const shopDocument = `
openapi: 3.0.3
info: { title: shop, version: "1" }
paths:
  /orders:
    get:
      responses:
        "200": { description: All of them., content: { application/json: { schema: { type: array, items: { type: string } } } } }
        "503": { description: The shop is closed. }
`

// failures stands for a *testing.T, which an example does not have: it prints what would fail the test.
type failures struct{ testing.TB }

func (failures) Helper()        {}
func (failures) Cleanup(func()) {}
func (failures) Errorf(format string, args ...any) {
	first, _, _ := strings.Cut(fmt.Sprintf(format, args...), ":")
	fmt.Println("the test fails:", first)
}

// A test calls its service through the transport. Each answer is held against the document, and what no answer has shown is known at the end.
func ExampleNew() {
	orders := `["o-1"]`
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, orders)
	}))
	defer shop.Close()
	transport := openapitest.New(failures{}, []byte(shopDocument), nil)
	client := &http.Client{Transport: transport}
	get := func() {
		answer, err := client.Get(shop.URL + "/orders")
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = answer.Body.Close()
	}

	get()
	orders = `{"o-1": "tea"}`
	get()
	fmt.Println("never seen:", transport.Uncovered())
	// Output:
	// the test fails: GET /orders answered 200, which the OpenAPI document does not allow
	// never seen: [GET /orders 503]
}
