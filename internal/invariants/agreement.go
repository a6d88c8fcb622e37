package invariants

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// stream reads (id, state) pairs in the order of id, one at a time: a million transfers must not be held in memory.
type stream struct {
	rows  pgx.Rows
	id    uuid.UUID
	state string
	ok    bool
}

func open(ctx context.Context, tx pgx.Tx, query string) (*stream, error) {
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	s := &stream{rows: rows}
	return s, s.next()
}

func (s *stream) next() error {
	if s.ok = s.rows.Next(); !s.ok {
		return s.rows.Err()
	}
	return s.rows.Scan(&s.id, &s.state)
}

// compare walks transfers and legs side by side. settled: every transfer has ended, and the two services agree on how. lost:
// nobody waits for a message that is nowhere. A transfer that waits for a message in a quarantine, or set aside in an outbox, is neither: it ends when
// that message is sent again, or by its timeout, and until then the agreement cannot be judged.
func compare(ctx context.Context, account, transfer pgx.Tx, parked map[string]bool) (settled, lost Check, err error) {
	settled = Check{Name: "agreement", Promise: "every transfer has ended and both services agree how; nothing is in transit", Verdict: Held}
	lost = Check{Name: "messages", Promise: "published = processed + waiting + quarantined", Verdict: Held, Detail: "nothing is missing"}

	legs, err := open(ctx, account, `select id, state from legs order by id`)
	if err != nil {
		return settled, lost, err
	}
	defer legs.rows.Close()
	transfers, err := open(ctx, transfer, `select id, status from transfers order by id`)
	if err != nil {
		return settled, lost, err
	}
	defer transfers.rows.Close()

	var agreed, foreign int64
	var heldUp []string
	for transfers.ok || legs.ok {
		order := orderOf(transfers, legs)
		switch {
		case order > 0: // account answered a request that was published by hand, without a transfer behind it
			foreign++
		case order == 0 && statusOf(legs.state) == transfers.state:
			agreed++
		case !terminal(transfers.state) && parked[transfers.id.String()]:
			heldUp = append(heldUp, fmt.Sprintf("transfer %s is %s and waits for a message that was given up", transfers.id, transfers.state))
		default:
			known := "no leg"
			if order == 0 {
				known = "leg " + legs.state
			}
			settled.offend("transfer %s is %s, account has %s", transfers.id, transfers.state, known)
			if !terminal(transfers.state) {
				lost.offend("transfer %s is %s and waits for a message that is in no inbox, outbox, queue or quarantine",
					transfers.id, transfers.state)
			}
		}
		if order <= 0 {
			err = transfers.next()
		}
		if order >= 0 && err == nil {
			err = legs.next()
		}
		if err != nil {
			return settled, lost, err
		}
	}
	settled.Detail = fmt.Sprintf("%d transfers agree", agreed)
	if len(heldUp) > 0 {
		settled.Detail += fmt.Sprintf("; %d wait for a message that was given up", len(heldUp))
		if settled.Verdict == Held {
			settled.Verdict, settled.Offenders = NotJudged, heldUp[:min(len(heldUp), maxOffenders)]
		}
	}
	if foreign > 0 {
		settled.Detail += fmt.Sprintf("; %d legs answer requests that no transfer sent", foreign)
	}
	return settled, lost, nil
}

// orderOf says whose row comes first: below 0 the transfer's, above 0 the leg's, 0 for two rows of one transfer.
func orderOf(transfers, legs *stream) int {
	switch {
	case !transfers.ok:
		return 1
	case !legs.ok:
		return -1
	}
	return bytes.Compare(transfers.id[:], legs.id[:])
}

// statusOf is the status a transfer must have in the end for the state its leg ended in; "" for a state that is no end.
func statusOf(leg string) string {
	switch leg {
	case "CREDITED":
		return "COMPLETED"
	case "DEBIT_REJECTED":
		return "REJECTED"
	case "REFUNDED":
		return "REFUNDED"
	}
	return ""
}
