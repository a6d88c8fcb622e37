package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Waiting is a row that has not been sent yet, or was set aside.
type Waiting struct {
	MessageID  string
	Type       string
	OccurredAt time.Time
	Attempts   int    // publishings that failed
	Error      string // of the last one; "" for none
	SetAside   bool
}

// edge is how many rows are looked at, at each end of the table.
const edge = 5000

// There is no index on what a message is about: every message would pay for it. The table holds only what has not been sent, so it is nearly
// empty as a rule; where it is not, the broker is away, and the oldest rows and the newest are those that somebody asks for.
const listWaitingSQL = `
with oldest as materialized (
    select id, message_id, type, occurred_at, attempts, last_error, set_aside_at, correlation_id from outbox order by id limit $2
), newest as materialized (
    select id, message_id, type, occurred_at, attempts, last_error, set_aside_at, correlation_id from outbox order by id desc limit $2
)
select (select count(*) from oldest) < $2 as all_seen, w.message_id, w.type, w.occurred_at, w.attempts, w.last_error, w.set_aside_at is not null
from (select) as always
left join (
    select * from oldest where correlation_id = $1 union select * from newest where correlation_id = $1
) as w on true
order by w.id`

// ListWaiting lists what is in the outbox about a transfer, in the order in which it was written. It looks at a bounded number of rows; all
// is false when there are more, so that something may be waiting that is not listed.
func ListWaiting(ctx context.Context, db Database, correlationID string) (list []Waiting, all bool, err error) {
	rows, err := db.Query(ctx, listWaitingSQL, correlationID, edge)
	if err != nil {
		return nil, false, fmt.Errorf("list waiting messages: %w", err)
	}
	var id, messageType, lastError *string
	var at *time.Time
	var attempts *int
	var setAside bool
	_, err = pgx.ForEachRow(rows, []any{&all, &id, &messageType, &at, &attempts, &lastError, &setAside}, func() error {
		if id == nil {
			return nil // the row that says only whether all were seen
		}
		w := Waiting{MessageID: *id, Type: *messageType, OccurredAt: *at, Attempts: *attempts, SetAside: setAside}
		if lastError != nil {
			w.Error = *lastError
		}
		list = append(list, w)
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("list waiting messages: %w", err)
	}
	return list, all, nil
}
