package service_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"example.com/banking/pkg/service"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
)

// ask makes a request of a server that does not run.
func ask(server *service.HTTP, path string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	server.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://"+server.Addr()+path, nil))
	return answer
}

// Problems are errors: a handler returns one, wrapped or not, and the server answers it. The cause is for the log alone.
func ExampleNewProblem() {
	for _, p := range []*service.Problem{
		service.Unauthorized("The token is missing."),
		service.Forbidden("Orders are not for guests."),
		service.NotFound("There is no such order."),
		service.Conflict("The order is on its way."),
		service.TooLarge("An order has up to 100 lines."),
		service.Unprocessable("The key was used for another order."),
		service.Unavailable("The warehouse is away.", errors.New("connection refused")),
		service.NewProblem(http.StatusPaymentRequired, "The last order is unpaid."),
	} {
		fmt.Println(p, p.RetryAfter)
	}
	// Output:
	// 401 Unauthorized: The token is missing. 0s
	// 403 Forbidden: Orders are not for guests. 0s
	// 404 Not Found: There is no such order. 0s
	// 409 Conflict: The order is on its way. 0s
	// 413 Request Entity Too Large: An order has up to 100 lines. 0s
	// 422 Unprocessable Entity: The key was used for another order. 0s
	// 503 Service Unavailable: The warehouse is away.: connection refused 2s
	// 402 Payment Required: The last order is unpaid. 0s
}

// A handler reads what it is asked with these, and returns their errors as they are.
func ExamplePathID() {
	server, err := service.NewHTTP(service.HTTPConfig{Addr: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	server.Echo.GET("/shops/:id/orders", func(c echo.Context) error {
		shop, err := service.PathID(c, "id")
		if err != nil {
			return err
		}
		status, given, err := service.QueryParam(c, "status")
		if err != nil {
			return err
		}
		page, err := service.PageOf(c)
		if err != nil {
			return err
		}
		return c.String(http.StatusOK, fmt.Sprintf("%d orders of %s, by status: %v %s", page.Limit, shop, given, status))
	})
	for _, path := range []string{
		"/shops/01890000-0000-7000-8000-000000000001/orders",
		"/shops/01890000-0000-7000-8000-000000000001/orders?status=OPEN&limit=10",
		"/shops/01890000-0000-7000-8000-000000000001/orders?status=OPEN&status=PAID",
		"/shops/01890000-0000-7000-8000-000000000001/orders?limit=1000",
		"/shops/best/orders",
	} {
		answer := ask(server, path)
		fmt.Println(answer.Code, strings.TrimSpace(answer.Body.String()))
	}
	// Output:
	// 200 50 orders of 01890000-0000-7000-8000-000000000001, by status: false
	// 200 10 orders of 01890000-0000-7000-8000-000000000001, by status: true OPEN
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"The query is not acceptable.","errors":[{"field":"status","message":"must be given once"}]}
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"The query is not acceptable.","errors":[{"field":"limit","message":"must be a whole number from 1 to 200"}]}
	// 404 {"type":"about:blank","title":"Not Found","status":404,"detail":"There is nothing with this id."}
}

// A long answer is sent item by item, and takes the time that it needs. It ends early, and says so, when the client goes or the service stops.
func ExampleNewStream() {
	server, err := service.NewHTTP(service.HTTPConfig{Addr: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	server.Echo.GET("/export", func(c echo.Context) error {
		ctx, cancel := service.Unhurried(c)
		defer cancel()
		stream := service.NewStream(c)
		for n := 1; n <= 3 && ctx.Err() == nil; n++ {
			if err := stream.Item(map[string]int{"order": n}); err != nil {
				return err
			}
		}
		return stream.End(map[string]bool{"complete": ctx.Err() == nil})
	})
	answer := ask(server, "/export")
	fmt.Println(answer.Code)
	fmt.Println(answer.Body)
	// Output:
	// 200
	// {"items":[{"order":1}
	// ,{"order":2}
	// ,{"order":3}
	// ],"complete":true}
}

// A service registers its metrics beside those of the process, and the server shows all of them.
func ExampleNewRegistry() {
	registry := service.NewRegistry()
	placed := prometheus.NewCounter(prometheus.CounterOpts{Name: "shop_orders_total", Help: "Orders placed."})
	registry.MustRegister(placed)
	server, err := service.NewHTTP(service.HTTPConfig{Addr: "127.0.0.1:0", Registry: registry, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	placed.Inc()
	for line := range strings.Lines(ask(server, "/metrics").Body.String()) {
		if strings.HasPrefix(line, "shop_") || strings.HasPrefix(line, "# TYPE go_goroutines") {
			fmt.Print(line)
		}
	}
	// Output:
	// # TYPE go_goroutines gauge
	// shop_orders_total 1
}
