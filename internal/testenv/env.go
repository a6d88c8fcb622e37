package testenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/internal/management"
	"example.com/banking/internal/testenv/servers"
)

// callTimeout bounds each request to a server that a test makes through Env.
const callTimeout = time.Minute

// Env is a virtual host of a test, with databases on demand.
type Env struct {
	// AMQPURL is the address of the virtual host, with a user who may do everything in it.
	AMQPURL string
	// ManagementURL is the address of the broker's management API with an administrator's credentials.
	ManagementURL string
	// VHost is the virtual host's name.
	VHost string

	postgresURL string
	id          string
}

func newEnv(t testing.TB, addresses servers.Addresses) *Env {
	t.Helper()
	id := strings.ToLower(rand.Text()[:12])
	e := &Env{ManagementURL: addresses.ManagementURL, VHost: "test-" + id, postgresURL: addresses.PostgresURL, id: id}
	broker, err := url.Parse(addresses.AMQPURL)
	if err != nil {
		t.Fatalf("broker address: %v", err)
	}
	broker.Path, broker.RawPath = "/"+e.VHost, ""
	e.AMQPURL = broker.String()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	m := management.New(e.ManagementURL)
	if err := m.Put(ctx, "/api/vhosts/"+e.VHost, struct{}{}); err != nil {
		t.Fatalf("create virtual host: %v", err)
	}
	everything := servers.Grant{Configure: ".*", Write: ".*", Read: ".*"}
	if err := m.Put(ctx, "/api/permissions/"+e.VHost+"/"+url.PathEscape(broker.User.Username()), everything); err != nil {
		t.Fatalf("permissions on virtual host: %v", err)
	}
	return e
}

// Database creates an empty database and returns its address. The name only has to be unique within the test.
func (e *Env) Database(t testing.TB, name string) string {
	t.Helper()
	address, err := url.Parse(e.postgresURL)
	if err != nil {
		t.Fatalf("database address: %v", err)
	}
	database := "test_" + e.id + "_" + name
	if err := e.execute(t.Context(), "CREATE DATABASE "+pgx.Identifier{database}.Sanitize()); err != nil {
		t.Fatalf("create database: %v", err)
	}
	t.Cleanup(func() {
		drop := "DROP DATABASE IF EXISTS " + pgx.Identifier{database}.Sanitize() + " WITH (FORCE)"
		if err := e.execute(context.Background(), drop); err != nil {
			t.Logf("database %s is left behind: %v", database, err) // the test may have stopped its server
		}
	})
	address.Path = "/" + database
	return address.String()
}

func (e *Env) execute(ctx context.Context, sql string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, e.postgresURL)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// CloseConnections makes the broker close every connection of the virtual host and returns how many there were. It
// waits until there is at least one: the management API lists a new connection with a delay.
func (e *Env) CloseConnections(t testing.TB) int {
	t.Helper()
	m := management.New(e.ManagementURL)
	var connections []struct {
		Name string `json:"name"`
	}
	await(t, "a connection to close", func(ctx context.Context) (bool, error) {
		err := m.Get(ctx, "/api/vhosts/"+e.VHost+"/connections", &connections)
		return len(connections) > 0, err
	})
	for _, c := range connections {
		// A connection that does not answer in time is a 500 of the broker: asked again, it has gone.
		await(t, "connection "+c.Name+" to be closed", func(ctx context.Context) (bool, error) {
			err := m.Delete(ctx, "/api/connections/"+url.PathEscape(c.Name))
			return err == nil, err
		})
	}
	return len(connections)
}

// Queue is a queue as the management API describes it. The counts may be a second old; QueueDepth knows better.
type Queue struct {
	Name      string         `json:"name"`
	Type      string         `json:"type"`
	Durable   bool           `json:"durable"`
	Arguments map[string]any `json:"arguments"`
	Ready     int            `json:"messages_ready"`
	Unacked   int            `json:"messages_unacknowledged"`
	Consumers int            `json:"consumers"`
}

// Queues lists the queues of the virtual host by name.
func (e *Env) Queues(t testing.TB) []Queue {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	var queues []Queue
	path := "/api/queues/" + e.VHost + "?sort=name"
	if err := management.New(e.ManagementURL).Get(ctx, path, &queues); err != nil {
		t.Fatalf("list queues: %v", err)
	}
	return queues
}

// QueueDepth returns the messages that wait in a queue, which is exact, and those delivered but not acknowledged, whose
// number may be a second old (five on a broker that is not ours). A queue that does not exist fails the test.
func (e *Env) QueueDepth(t testing.TB, queue string) (ready, unacked int) {
	t.Helper()
	conn, err := amqp.Dial(e.AMQPURL)
	if err != nil {
		t.Fatalf("depth of %s: %v", queue, err)
	}
	defer func() { _ = conn.Close() }()
	channel, err := conn.Channel()
	if err != nil {
		t.Fatalf("depth of %s: %v", queue, err)
	}
	state, err := channel.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		t.Fatalf("depth of %s: %v", queue, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	var stats Queue
	path := "/api/queues/" + e.VHost + "/" + url.PathEscape(queue)
	if err := management.New(e.ManagementURL).Get(ctx, path, &stats); err != nil {
		t.Fatalf("depth of %s: %v", queue, err)
	}
	return state.Messages, stats.Unacked
}

// await asks again until the condition holds, and fails the test after callTimeout.
func await(t testing.TB, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := condition(ctx)
		if ok && err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(fmt.Errorf("waited for %s: %w", what, errors.Join(ctx.Err(), err)))
		case <-tick.C:
		}
	}
}
