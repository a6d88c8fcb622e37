package e2e

import (
	"encoding/json"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/internal/testenv"
)

// bank load sends what it is told, sees every transfer end, and leaves the books in order.
func TestLoad(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	b := newBank(t, env, 1, nil)
	b.exclusiveQueue(env) // as another load has one: nobody else may even count what is in it
	out, err := b.command("load", "--rate", "50", "--duration", "2s", "--accounts", "10", "--hot", "0.8", "--drain", "1m", "--json")
	var result struct {
		Sent, Accepted, Failed, Open int
		Ended                        map[string]int
		EndMS                        struct{ P50, P99 float64 }
	}
	if err != nil || json.Unmarshal(out, &result) != nil {
		t.Fatalf("bank load: %v\n%s", err, out)
	}
	if result.Sent != 100 || result.Accepted != 100 || result.Failed != 0 || result.Open != 0 || result.Ended["COMPLETED"] != 100 {
		t.Errorf("100 transfers, all completed, are wanted: %s", out)
	}
	if result.EndMS.P50 <= 0 || result.EndMS.P99 < result.EndMS.P50 {
		t.Errorf("latencies that cannot be: %s", out)
	}
	b.verify()
}

// exclusiveQueue declares a queue that belongs to one connection, until the test ends.
func (b *bank) exclusiveQueue(env *testenv.Env) {
	b.t.Helper()
	conn, err := amqp.Dial(env.AMQPURL)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("", false, true, true, false, nil); err != nil {
		b.t.Fatal(err)
	}
}
