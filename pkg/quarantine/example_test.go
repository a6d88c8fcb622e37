package quarantine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/quarantine"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/service"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Whether a replayed message has come back can be told only after it has had the time to fail as often as it is tried.
func ExampleLongestRoad() {
	fmt.Println(quarantine.LongestRoad(retry.Policy{
		MaxAttempts: 4, Delays: []time.Duration{time.Second, 5 * time.Second, 25 * time.Second}, Classify: true,
	}))
	// Output:
	// 31s
}

// A service that owns a quarantine serves it under /admin: here somebody lists it, and asks what a replay would do. Nothing is changed as long
// as that is not confirmed.
func ExampleQuarantine_Register() {
	t, end := testenv.Example()
	defer end()
	env := testenv.New(t)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	pool, err := pgxpool.New(t.Context(), env.Database(t, "shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), quarantine.Schema+inbox.Schema); err != nil {
		fmt.Println(err)
		return
	}
	session := messaging.NewSession(messaging.SessionConfig{
		URLs: []string{env.AMQPURL}, Name: "shop", Logger: quiet,
		Topology: messaging.Topology{Queues: []messaging.Queue{
			messaging.NewQueue("shop.orders", messaging.Quorum), messaging.NewQueue("shop.orders_error", messaging.Quorum),
		}},
	})
	server, err := service.NewHTTP(service.HTTPConfig{Addr: "127.0.0.1:0", AdminToken: "secret", Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	quarantine.New(quarantine.Config{
		Session: session, Pool: pool, Logger: quiet,
		Queues: []string{"shop.orders_error"}, Targets: []string{"shop.orders"}, Consumed: []string{"shop.orders"},
	}).Register(server.Admin)

	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- session.Run(ctx) }()
	outcomes, err := session.Publish(ctx, []messaging.Publishing{{RoutingKey: "shop.orders_error", Mandatory: true, Publishing: amqp.Publishing{
		Body: []byte(`{"messageId":"m-1","type":"Shop.Order.Placed","data":{}}`), DeliveryMode: amqp.Persistent,
		Headers: amqp.Table{
			messaging.HeaderParkReason: "MAX_ATTEMPTS", messaging.HeaderParkedAt: "2026-11-30T10:15:00Z",
			messaging.HeaderOriginQueue: "shop.orders", messaging.HeaderAttempts: int64(3),
		},
	}}})
	fmt.Println(outcomes, err)

	call := func(method, path, body string, into any) {
		request := httptest.NewRequest(method, "http://"+server.Addr()+path, strings.NewReader(body))
		request.Header.Set("Authorization", "Bearer secret")
		request.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		server.Handler().ServeHTTP(answer, request)
		if err := json.Unmarshal(answer.Body.Bytes(), into); err != nil {
			fmt.Println(answer.Code, err)
		}
	}
	var list struct {
		Items []struct {
			MessageID, Reason, OriginQueue string
			Attempts                       int
		}
	}
	call("GET", "/admin/quarantine", "", &list)
	fmt.Printf("%+v\n", list.Items)
	var answer struct {
		DryRun  bool
		Matched int
		Items   []struct{ MessageID, Forecast string }
	}
	call("POST", "/admin/quarantine/replay", `{"ids":["m-1"]}`, &answer)
	fmt.Printf("%+v\n", answer)
	stop()
	fmt.Println(<-stopped)
	// Output:
	// [acked] <nil>
	// [{MessageID:m-1 Reason:MAX_ATTEMPTS OriginQueue:shop.orders Attempts:3}]
	// {DryRun:true Matched:1 Items:[{MessageID:m-1 Forecast:RUN}]}
	// <nil>
}

// The audit is asked by transfer. A message that names none is found by its id, which follows from the transfer.
func ExampleHistory() {
	t, end := testenv.Example()
	defer end()
	pool, err := pgxpool.New(t.Context(), testenv.New(t).Database(t, "shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	transfer := uuid.MustParse("01890000-0000-7000-8000-000000000001")
	if _, err := pool.Exec(t.Context(), quarantine.Schema); err != nil {
		fmt.Println(err)
		return
	}
	_, err = pool.Exec(t.Context(), `
		insert into quarantine_audit (run, action, outcome, queue, key, message_id, type, operator, because, target, transfer_id) values
		(gen_random_uuid(), 'REPLAY', 'DONE', 'shop.orders_error', 'm-1', 'm-1', 'Shop.Order.Placed', 'ada', '', 'shop.orders', $1),
		(gen_random_uuid(), 'REPLAY', 'DONE', 'shop.orders_error', 'm-2', 'm-2', '', 'grace', '', 'shop.orders', null),
		(gen_random_uuid(), 'REPLAY', 'DONE', 'shop.orders_error', 'm-3', 'm-3', '', 'grace', '', 'shop.orders', null)`, transfer)
	if err != nil {
		fmt.Println(err)
		return
	}
	entries, err := quarantine.History(t.Context(), pool, transfer, []string{"m-1", "m-2"})
	for _, e := range entries {
		fmt.Println(e.MessageID, e.Action, e.Outcome, "by", e.Operator)
	}
	fmt.Println(err)
	// Output:
	// m-1 REPLAY DONE by ada
	// m-2 REPLAY DONE by grace
	// <nil>
}
