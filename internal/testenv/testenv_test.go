package testenv_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/internal/testenv"
)

func TestEnvsAreSeparate(t *testing.T) {
	t.Parallel()
	one, two := testenv.New(t), testenv.New(t)
	declare(t, dial(t, one.AMQPURL), "work", nil)
	if got := one.Queues(t); len(got) != 1 || got[0].Name != "work" {
		t.Errorf("queues of the first environment = %v, want work alone", got)
	}
	if got := two.Queues(t); len(got) != 0 {
		t.Errorf("queues of the second environment = %v, want none", got)
	}
	if a, b := one.Database(t, "bank"), two.Database(t, "bank"); a == b {
		t.Errorf("both environments got the database %s", a)
	}
}

func TestDatabaseIsEmptyAndKeepsItsPromises(t *testing.T) {
	t.Parallel()
	conn := connect(t, testenv.New(t).Database(t, "bank"))
	for setting, want := range map[string]string{"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"} {
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT current_setting($1)", setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", setting, got, err, want)
		}
	}
	var tables int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&tables); err != nil || tables != 0 {
		t.Errorf("tables = %d, %v; want 0", tables, err)
	}
}

func TestQueueDepthCountsReadyAndUnacked(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	channel := dial(t, env.AMQPURL)
	declare(t, channel, "work", amqp.Table{"x-queue-type": "quorum"})
	publish(t, channel, "work", 5)
	if _, ok, err := channel.Get("work", false); err != nil || !ok {
		t.Fatalf("get = %v, %v", ok, err)
	}
	waitFor(t, "4 ready and 1 unacked", func() bool {
		ready, unacked := env.QueueDepth(t, "work")
		return ready == 4 && unacked == 1
	})
}

func TestCloseConnectionsEndsThem(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	conn, err := amqp.Dial(env.AMQPURL)
	if err != nil {
		t.Fatal(err)
	}
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	if n := env.CloseConnections(t); n != 1 {
		t.Errorf("closed %d connections, want 1", n)
	}
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("the connection is still open")
	}
}

func TestOwnServersKeepDataAndPortsAcrossKills(t *testing.T) {
	t.Parallel()
	own := testenv.Own(t)
	env := own.Env(t)
	channel := dial(t, env.AMQPURL)
	declare(t, channel, "work", amqp.Table{"x-queue-type": "quorum"})
	publish(t, channel, "work", 3)
	database := env.Database(t, "bank")
	if _, err := connect(t, database).Exec(t.Context(), "CREATE TABLE kept (id int)"); err != nil {
		t.Fatal(err)
	}

	if err := own.KillBroker(); err != nil {
		t.Fatal(err)
	}
	if err := own.KillPostgres(); err != nil {
		t.Fatal(err)
	}
	if _, err := amqp.Dial(env.AMQPURL); err == nil {
		t.Error("the killed broker answers")
	}
	if _, err := pgx.Connect(t.Context(), database); err == nil {
		t.Error("the killed PostgreSQL answers")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := own.StartPostgres(ctx); err != nil {
		t.Fatal(err)
	}
	if err := own.StartBroker(ctx); err != nil {
		t.Fatal(err)
	}

	if _, err := connect(t, database).Exec(ctx, "SELECT id FROM kept"); err != nil {
		t.Errorf("table after the kill: %v", err)
	}
	waitFor(t, "the messages that were confirmed before the kill", func() bool {
		ready, _ := env.QueueDepth(t, "work")
		return ready == 3
	})
}

func dial(t *testing.T, url string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the broker may have been killed
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := channel.Confirm(false); err != nil {
		t.Fatal(err)
	}
	return channel
}

func declare(t *testing.T, channel *amqp.Channel, queue string, arguments amqp.Table) {
	t.Helper()
	if _, err := channel.QueueDeclare(queue, true, false, false, false, arguments); err != nil {
		t.Fatal(err)
	}
}

func publish(t *testing.T, channel *amqp.Channel, queue string, n int) {
	t.Helper()
	for range n {
		message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("{}")}
		confirm, err := channel.PublishWithDeferredConfirmWithContext(t.Context(), "", queue, true, false, message)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := confirm.WaitContext(t.Context()); err != nil || !ok {
			t.Fatalf("publish confirmed = %v, %v", ok, err)
		}
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // the server may have been killed
	return conn
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !condition() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
