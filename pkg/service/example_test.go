package service_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"example.com/banking/pkg/service"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

// shop is the configuration of a service: what all have, and one variable of its own with a rule.
type shop struct {
	service.Config

	OpensAt time.Duration `env:"OPENS_AT" envDefault:"8h" desc:"time of day at which it opens"`
}

func (s shop) Validate() []service.Invalid {
	if s.OpensAt < 0 || s.OpensAt >= 24*time.Hour {
		return []service.Invalid{{Name: "OPENS_AT", Wanted: "0s to 23h59m59s"}}
	}
	return nil
}

// Everything that is wrong is said at once, so that nobody starts a service five times to find five mistakes.
func ExampleLoad() {
	defaults := service.Defaults{"HTTP_ADDR": "127.0.0.1:8090"}
	cfg, err := service.Load[shop]([]string{"OPENS_AT=9h30m"}, defaults)
	fmt.Println(cfg.HTTPAddr, cfg.OpensAt, cfg.ShutdownGrace, err)

	_, err = service.Load[shop]([]string{"OPENS_AT=30h", "LOG_LEVEL=loud", "HTTP_ADDR=nowhere"}, defaults)
	fmt.Println(err)
	// Output:
	// 127.0.0.1:8090 9h30m0s 15s <nil>
	// wrong configuration:
	//   HTTP_ADDR="nowhere": wanted host:port with a port from 0 to 65535
	//   LOG_LEVEL="loud": wanted debug, info, warn or error
	//   OPENS_AT="30h": wanted 0s to 23h59m59s
}

// Parts start in order and stop in the reverse one: what takes in work first, what carries its results away last.
func ExampleRun() {
	ctx, stop := context.WithCancel(context.Background())
	part := func(name string, then func()) service.Component {
		return service.Component{Name: name, Run: func(ctx context.Context) error {
			then()
			<-ctx.Done()
			fmt.Println(name, "stops")
			return nil
		}}
	}
	err := service.Run(ctx, time.Minute, slog.New(slog.NewTextHandler(io.Discard, nil)),
		part("relay", func() {}), part("consumer", func() {}), part("http", stop))
	fmt.Println(err)
	// Output:
	// http stops
	// consumer stops
	// relay stops
	// <nil>
}

// Handlers return errors, and the server answers them: a problem as it is, one of the service's own by its translation, a broken body with
// the member that is wrong.
func ExampleNewHTTP() {
	server, err := service.NewHTTP(service.HTTPConfig{Addr: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	server.Echo.POST("/orders", func(c echo.Context) error {
		var body struct {
			Pieces int64 `json:"pieces"`
		}
		if err := service.DecodeJSON(c, &body); err != nil {
			return err
		}
		if body.Pieces < 1 {
			return service.BadRequest("The body is not acceptable.", service.FieldError{Field: "pieces", Message: "must be 1 or more"})
		}
		return c.JSON(http.StatusCreated, body)
	})
	for _, call := range []struct{ method, path, body string }{
		{http.MethodPost, "/orders", `{"pieces":3}`}, {http.MethodPost, "/orders", `{"pieces":0}`}, {http.MethodPost, "/orders", `{"pieces":"3"}`},
		{http.MethodGet, "/orders", ""}, {http.MethodGet, "/admin/anything", ""},
	} {
		request := httptest.NewRequest(call.method, call.path, strings.NewReader(call.body))
		request.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		server.Handler().ServeHTTP(answer, request)
		fmt.Println(answer.Code, strings.TrimSpace(answer.Body.String()))
	}
	// Output:
	// 201 {"pieces":3}
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"The body is not acceptable.","errors":[{"field":"pieces","message":"must be 1 or more"}]}
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"A member of the body has a wrong type or value.","errors":[{"field":"pieces","message":"must be an integer within 64 bits"}]}
	// 405 {"type":"about:blank","title":"Method Not Allowed","status":405,"detail":"GET is not possible here; the Allow header says what is."}
	// 403 {"type":"about:blank","title":"Forbidden","status":403,"detail":"Administration is switched off: ADMIN_TOKEN is not set."}
}

// A list takes one row more than the page has, which tells that there is a next page without counting.
func ExampleListOf() {
	type row struct {
		ID uuid.UUID `json:"id"`
	}
	page := service.Page{Limit: 2}
	rows := []row{{uuid.UUID{15: 3}}, {uuid.UUID{15: 2}}, {uuid.UUID{15: 1}}}
	list := service.ListOf(page, rows, func(r row) service.Cursor { return service.Cursor{Time: time.Unix(0, 0).UTC(), ID: r.ID} })
	after, err := service.ParseCursor(*list.Next)
	fmt.Println(len(list.Items), "and the next page begins after", after.ID, err)
	// Output:
	// 2 and the next page begins after 00000000-0000-0000-0000-000000000002 <nil>
}

// What is served by a package in every service is described beside the package, and merged into each service's document.
func ExampleMergeOpenAPI() {
	document, err := service.MergeOpenAPI(
		[]byte("openapi: 3.0.3\npaths:\n  /orders: { get: { operationId: listOrders } }\n"),
		[]byte("paths:\n  /admin/orders: { get: { operationId: auditOrders } }\n"))
	fmt.Print(string(document), err, "\n")
	_, err = service.MergeOpenAPI(document, []byte("paths:\n  /orders: { get: { operationId: listAgain } }\n"))
	fmt.Println(err)
	// Output:
	// openapi: 3.0.3
	// paths:
	//   /orders: {get: {operationId: listOrders}}
	//   /admin/orders: {get: {operationId: auditOrders}}
	// <nil>
	// merge OpenAPI: fragment 1: paths: /orders is there already
}

// Addresses in logs have no passwords.
func ExampleRedactURL() {
	fmt.Println(service.RedactURL("postgres://account:secret@db:5432/account?sslmode=disable"))
	fmt.Println(service.RedactURL("host=db user=account password=secret"))
	// Output:
	// postgres://account:xxxxx@db:5432/account?sslmode=disable
	// host=db user=account password=xxxxx
}
