package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/banking/pkg/outbox"
)

// outboxCommand holds the verbs for outgoing messages that the broker refused for themselves until their service set them aside.
type outboxCommand struct {
	List  outboxList  `cmd:"" help:"List the messages that were set aside in the outboxes, with the broker's reason."`
	Retry outboxRetry `cmd:"" help:"Send messages that were set aside once more, when the reason is mended."`
}

type outboxList struct {
	Limit int `default:"100" help:"At most so many of each service."`
}

// setAside is one message that was set aside.
type setAside struct {
	Service    string    `json:"service"`
	MessageID  string    `json:"messageId"`
	Type       string    `json:"type"`
	TransferID string    `json:"transferId"`
	Attempts   int       `json:"attempts"`
	Error      string    `json:"error"`
	At         time.Time `json:"at"`
}

func (c *outboxList) Run(ctx context.Context, to *endpoints, out *output) error {
	found := []setAside{}
	err := eachOutbox(ctx, to, func(service string, db outbox.Database) error {
		rows, err := outbox.ListSetAside(ctx, db, c.Limit)
		for _, r := range rows {
			found = append(found, setAside{service, r.MessageID, r.Type, r.Transfer, r.Attempts, r.Error, r.At})
		}
		return err
	})
	if err != nil {
		return err
	}
	if out.json {
		return out.document(found)
	}
	rows := make([][]string, 0, len(found))
	for _, s := range found {
		rows = append(rows, []string{s.Service, foreign(s.MessageID), foreign(s.Type), foreign(s.TransferID), fmt.Sprint(s.Attempts), foreign(s.Error)})
	}
	return out.table([]string{"SERVICE", "MESSAGE", "TYPE", "TRANSFER", "ATTEMPTS", "ERROR"}, rows)
}

type outboxRetry struct {
	ID  []string `arg:"" optional:"" help:"The messages' ids."`
	All bool     `help:"All that were set aside."`
}

func (c *outboxRetry) Run(ctx context.Context, to *endpoints, out *output) error {
	if c.All == (len(c.ID) > 0) {
		return errors.New("name the messages to send again, or say --all")
	}
	var total int64
	err := eachOutbox(ctx, to, func(_ string, db outbox.Database) error {
		n, err := outbox.RetrySetAside(ctx, db, c.ID...)
		total += n
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d messages will be sent again within seconds\n", total)
	if total < int64(len(c.ID)) {
		return fmt.Errorf("%d of the messages named are not set aside", int64(len(c.ID))-total)
	}
	return nil
}

// eachOutbox calls visit with the database of each service.
func eachOutbox(ctx context.Context, to *endpoints, visit func(service string, db outbox.Database) error) error {
	if err := to.need("ACCOUNT_DATABASE_URL", "TRANSFER_DATABASE_URL"); err != nil {
		return err
	}
	for _, of := range []struct{ service, url string }{{"account", to.AccountDatabaseURL}, {"transfer", to.TransferDatabaseURL}} {
		conn, err := pgx.Connect(ctx, of.url)
		if err != nil {
			return fmt.Errorf("connect to the database of %s: %w", of.service, err)
		}
		err = visit(of.service, conn)
		if closed := conn.Close(ctx); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
	}
	return nil
}
