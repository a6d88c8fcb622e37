package quarantine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
)

func TestHistoryOfOneTransfer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	transfer := uuid.New()
	about := func(id string, transfer uuid.UUID) amqp.Publishing {
		p := parkedEvent(id)
		p.Body = fmt.Appendf(nil, `{"messageId":%q,"type":"T","data":{"transferId":%q}}`, id, strings.ToUpper(transfer.String()))
		return p
	}
	b.park(about("named", transfer), parkedEvent("by-id"), about("other", uuid.New()), parkedEvent("stranger"), about("gone", transfer))
	if r := b.replay(order{"ids": []string{"named", "by-id", "other", "stranger"}, "confirm": true}); r.Done != 4 {
		t.Fatalf("answered %+v", r)
	}
	if r := b.discard(order{"ids": []string{"gone"}, "because": "no use", "confirm": true}); r.Done != 1 {
		t.Fatalf("answered %+v", r)
	}
	entries, err := History(t.Context(), b.pool, transfer, []string{"by-id", "named", "nobody"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.MessageID+" "+e.Action+" "+e.Outcome)
	}
	if want := "named REPLAY DONE, by-id REPLAY DONE, gone DISCARD DONE"; strings.Join(got, ", ") != want {
		t.Errorf("the history is %q, want %q", got, want)
	}
}

// Both ways into the audit have their index.
func TestHistoryReadsNoWholeTable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	conn, err := b.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `set plan_cache_mode = force_generic_plan; prepare history as `+historySQL); err != nil {
		t.Fatal(err)
	}
	rows, _ := conn.Query(t.Context(), `explain execute history (null, null, 10)`)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(plan, "\n")
	if strings.Contains(text, "Seq Scan") || !strings.Contains(text, "quarantine_audit_by_transfer") || !strings.Contains(text, "quarantine_audit_by_message") {
		t.Errorf("the plan is\n%s", text)
	}
}
