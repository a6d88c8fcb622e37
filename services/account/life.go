package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/life"
	"example.com/banking/pkg/service"
	"example.com/banking/services/account/ledger"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"
)

// life answers everything that is known here of one transfer's life: nothing, for one that account has not heard of.
func (a *api) life(c echo.Context) error {
	id, err := service.PathID(c, "transferId")
	if err != nil {
		return err
	}
	answer, err := a.store.life(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answer)
}

// posting is the customer's side of a movement.
type posting struct {
	Account  uuid.UUID
	Movement ledger.Movement
	Amount   int64 // signed
	Currency string
	At       time.Time
}

// Served by the index entries_once: two rows at most.
const selectPostings = `
select account_id, kind, amount_minor, currency, posted_at from entries
where ledger = 'CUSTOMER' and transfer_id = $1 order by id`

func (s *store) life(ctx context.Context, transfer uuid.UUID) (life.Life, error) {
	leg, updated, err := s.leg(ctx, transfer)
	if err != nil && !errors.Is(err, errNoLeg) {
		return life.Life{}, err
	}
	rows, err := s.pool.Query(ctx, selectPostings, transfer)
	if err != nil {
		return life.Life{}, fmt.Errorf("read entries: %w", err)
	}
	postings, err := pgx.CollectRows(rows, pgx.RowToStructByPos[posting])
	if err != nil {
		return life.Life{}, fmt.Errorf("read entries: %w", err)
	}
	return life.Read(ctx, s.pool, serviceName, transfer, tell(transfer, leg, updated, postings))
}

// answers is what account says when it has moved money.
var answers = map[ledger.Movement]string{
	ledger.Debit: contract.AccountDebited, ledger.Credit: contract.AccountCredited, ledger.Refund: contract.AccountRefunded,
}

// tell tells what leg and ledger know. The leg has only its last state, and the time of it.
func tell(transfer uuid.UUID, leg ledger.Leg, updated time.Time, postings []posting) (told life.Told) {
	told.Heard = []life.Heard{
		life.Hears(transfer, contract.TransferRequestedQueue, contract.TransferRequested),
		life.Hears(transfer, contract.CreditRequestedQueue, contract.TransferCreditRequested),
		life.Hears(transfer, contract.RefundRequestedQueue, contract.TransferRefundRequested),
	}
	for _, p := range postings {
		told.Events = append(told.Events, life.Event{
			At: p.At, Kind: life.Posted, Detail: fmt.Sprintf("%s, %s", p.Movement, p.Currency), AmountMinor: p.Amount, AccountID: &p.Account,
		})
		told.Said = append(told.Said, life.Said{At: p.At, Type: answers[p.Movement]})
	}
	if leg.State == ledger.None {
		return told
	}
	told.Events = append(told.Events, life.Event{At: updated, Kind: life.Fact, Detail: string(leg.State), Reason: leg.Reason})
	switch leg.State {
	case ledger.DebitRejected:
		told.Said = append(told.Said, life.Said{At: updated, Type: contract.AccountDebitRejected})
	case ledger.CreditRejected:
		told.Said = append(told.Said, life.Said{At: updated, Type: contract.AccountCreditRejected})
	case ledger.Refunded:
		if leg.Reason != "" { // it outlives the refund: the credit was refused before, as an answer to the request for it
			told.Said = append(told.Said, life.Said{Type: contract.AccountCreditRejected, Answers: inbox.Key{
				Consumer: contract.CreditRequestedQueue, MessageID: life.MessageID(transfer, contract.TransferCreditRequested),
			}})
		}
	}
	return told
}
