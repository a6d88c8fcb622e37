package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
)

// transferCommand holds the verbs for transfers.
type transferCommand struct {
	Create transferCreate `cmd:"" help:"Ask for a transfer."`
	Show   transferShow   `cmd:"" help:"Show one transfer with its timeline."`
	List   transferList   `cmd:"" help:"List transfers, newest first."`
	Watch  transferWatch  `cmd:"" help:"Follow one transfer until it has ended."`
}

type transferCreate struct {
	From      string `required:"" help:"The account that pays."`
	To        string `required:"" help:"The account that receives."`
	Amount    int64  `required:"" help:"In minor units (cents)."`
	Currency  string `default:"EUR" help:"Three capital letters."`
	Reference string `help:"A text for the statement."`
	Key       string `help:"Idempotency key: the same key and the same transfer is one transfer. A random one when not given."`
	Watch     bool   `help:"Follow it until it has ended."`
}

func (c *transferCreate) Run(ctx context.Context, to *endpoints, out *output) error {
	if c.Key == "" {
		c.Key = uuid.NewString()
	}
	accepted, replayed, err := createTransfer(ctx, to.transfer(), *c)
	if err != nil {
		return err
	}
	if replayed && !out.json {
		fmt.Fprintln(out, "this key has asked for it before: the same transfer, not another one")
	}
	if c.Watch {
		if !out.json {
			fmt.Fprintln(out, "transfer", accepted.ID)
		}
		return (&transferWatch{ID: accepted.ID}).Run(ctx, to, out)
	}
	return printTransfer(out, accepted)
}

// createTransfer also says whether the answer was a replay of an earlier one with the same key.
func createTransfer(ctx context.Context, service *api, c transferCreate) (accepted transfer, replayed bool, err error) {
	body := map[string]any{"sourceAccountId": c.From, "destinationAccountId": c.To, "amountMinor": c.Amount, "currency": c.Currency}
	if c.Reference != "" {
		body["reference"] = c.Reference
	}
	headers, err := service.do(ctx, http.MethodPost, "/transfers", body, &accepted, "Idempotency-Key", c.Key)
	return accepted, headers.Get("Idempotency-Replayed") == "true", err
}

type transferShow struct {
	ID   string `arg:"" help:"The transfer."`
	Life bool   `help:"Everything that both services know of it: messages, failed attempts, quarantine, replays."`
}

func (c *transferShow) Run(ctx context.Context, to *endpoints, out *output) error {
	if c.Life {
		return showLife(ctx, to, c.ID, out)
	}
	shown, err := getTransfer(ctx, to.transfer(), c.ID)
	if err != nil {
		return err
	}
	return printTransfer(out, shown)
}

func getTransfer(ctx context.Context, service *api, id string) (transfer, error) {
	var got transfer
	_, err := service.do(ctx, http.MethodGet, "/transfers/"+url.PathEscape(id), nil, &got)
	return got, err
}

type transferList struct {
	Status string `help:"Only these: REQUESTED, DEBITED, REFUNDING, COMPLETED, REJECTED or REFUNDED."`
	Limit  int    `default:"100" help:"At most so many; 0 lists all."`
}

func (c *transferList) Run(ctx context.Context, to *endpoints, out *output) error {
	query := url.Values{}
	if c.Status != "" {
		query.Set("status", c.Status)
	}
	transfers := []transfer{}
	err := list(ctx, to.transfer(), "/transfers", query, c.Limit, func(t transfer) error {
		transfers = append(transfers, t)
		return nil
	})
	if err != nil {
		return err
	}
	if out.json {
		return out.document(transfers)
	}
	rows := make([][]string, 0, len(transfers))
	for _, t := range transfers {
		rows = append(rows, []string{t.ID, t.Status, amount(t.AmountMinor, t.Currency), t.Reason, t.CreatedAt.Format(time.RFC3339)})
	}
	return out.table([]string{"TRANSFER", "STATUS", "AMOUNT", "REASON", "CREATED"}, rows)
}

type transferWatch struct {
	ID      string        `arg:"" help:"The transfer."`
	Timeout time.Duration `default:"2m" help:"Give up after so long."`
}

func (c *transferWatch) Run(ctx context.Context, to *endpoints, out *output) error {
	if c.Timeout <= 0 {
		c.Timeout = 2 * time.Minute
	}
	told := 0
	ended, err := followTransfer(ctx, to.transfer(), c.ID, c.Timeout, func(t transfer) {
		for ; !out.json && told < len(t.Timeline); told++ {
			fmt.Fprintln(out, factLine(t.Timeline[told], t.CreatedAt))
		}
	})
	if err != nil {
		return err
	}
	if out.json {
		return out.document(ended)
	}
	fmt.Fprintln(out, verdict(out, ended))
	return nil
}

// followTransfer looks at a transfer until it has ended, calling seen for every look.
func followTransfer(ctx context.Context, service *api, id string, limit time.Duration, seen func(transfer)) (transfer, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	var last transfer
	for {
		got, err := getTransfer(ctx, service, id)
		if ctx.Err() != nil {
			return last, stillOpen(last, id, limit)
		}
		if err != nil {
			return last, err
		}
		last = got
		seen(got)
		if got.ended() {
			return got, nil
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return last, stillOpen(last, id, limit)
		}
	}
}

func stillOpen(t transfer, id string, limit time.Duration) error {
	return fmt.Errorf("transfer %s is still %s after %s; /readyz of both services and \"bank queues\" say where it hangs",
		id, cmp.Or(t.Status, "unknown"), limit)
}

func factLine(f fact, since time.Time) string {
	return fmt.Sprintf("  %8s  %-16s message %s", "+"+f.At.Sub(since).Round(time.Millisecond).String(), f.Fact, f.MessageID)
}

func verdict(out *output, t transfer) string {
	text := fmt.Sprintf("%s %s", amount(t.AmountMinor, t.Currency), t.Status)
	if t.Reason != "" {
		text += " (" + t.Reason + ")"
	}
	if t.Status == "COMPLETED" {
		return out.good(text)
	}
	return out.strong(text)
}

func printTransfer(out *output, t transfer) error {
	if out.json {
		return out.document(t)
	}
	fmt.Fprintf(out, "transfer %s  %s\n", t.ID, verdict(out, t))
	fmt.Fprintf(out, "  from %s\n  to   %s\n", t.SourceAccountID, t.DestinationAccountID)
	if t.Reference != "" {
		fmt.Fprintf(out, "  %q\n", t.Reference)
	}
	for _, f := range t.Timeline {
		fmt.Fprintln(out, factLine(f, t.CreatedAt))
	}
	return nil
}
