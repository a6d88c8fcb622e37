package main

import (
	"fmt"

	"example.com/banking/services/account/ledger"
	"github.com/google/uuid"
)

// A set of rows travels to PostgreSQL as one array per column, which unnest turns into rows again: one statement and one round
// trip for any number of them.

// legRows holds legs as the columns that unnest takes.
type legRows struct {
	ids, sources, destinations  []uuid.UUID
	states, reasons, currencies []string
	amounts                     []int64
}

func (c *legRows) add(l ledger.Leg) {
	c.ids = append(c.ids, l.Transfer)
	c.states = append(c.states, string(l.State))
	c.reasons = append(c.reasons, l.Reason)
	c.sources = append(c.sources, l.Source)
	c.destinations = append(c.destinations, l.Destination)
	c.amounts = append(c.amounts, l.Money.Minor)
	c.currencies = append(c.currencies, l.Money.Currency)
}

// entryRows holds entries as the columns that unnest takes.
type entryRows struct {
	ids                          []uuid.UUID
	accounts, transfers          []uuid.NullUUID
	books, movements, currencies []string
	amounts                      []int64
}

// add appends entries under new ids that rise with time.
func (e *entryRows) add(entries []ledger.Entry) error {
	ids := make([]uuid.UUID, len(entries))
	for i := range ids {
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("make entry id: %w", err)
		}
		ids[i] = id
	}
	e.ids = append(e.ids, ids...)
	for _, entry := range entries {
		e.books = append(e.books, string(entry.Book))
		e.accounts = append(e.accounts, uuid.NullUUID{UUID: entry.Account, Valid: entry.Book == ledger.Customer})
		e.transfers = append(e.transfers, uuid.NullUUID{UUID: entry.Transfer, Valid: entry.Movement != ledger.Opening})
		e.movements = append(e.movements, string(entry.Movement))
		e.amounts = append(e.amounts, entry.Money.Minor)
		e.currencies = append(e.currencies, entry.Money.Currency)
	}
	return nil
}
