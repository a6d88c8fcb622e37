package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// accountCommand holds the verbs for accounts.
type accountCommand struct {
	Create   accountCreate `cmd:"" help:"Open an account."`
	List     accountList   `cmd:"" help:"List accounts."`
	Show     accountShow   `cmd:"" help:"Show one account and its statement."`
	Freeze   accountFreeze `cmd:"" help:"Freeze an account: it refuses debits and credits; a refund still posts."`
	Unfreeze accountThaw   `cmd:"" help:"Unfreeze an account."`
	Close    accountClose  `cmd:"" help:"Close an account whose balance is zero."`
}

type accountCreate struct {
	Owner    string `required:"" help:"Who owns the account."`
	Currency string `default:"EUR" help:"Three capital letters."`
	Balance  int64  `default:"0" help:"Opening balance in minor units (cents)."`
	ID       string `help:"A UUID of your own: makes the command repeatable."`
}

func (c *accountCreate) Run(ctx context.Context, to *endpoints, out *output) error {
	body := map[string]any{"owner": c.Owner, "currency": c.Currency, "openingBalanceMinor": c.Balance}
	if c.ID != "" {
		body["id"] = c.ID
	}
	var opened account
	if _, err := to.account().do(ctx, http.MethodPost, "/accounts", body, &opened); err != nil {
		return err
	}
	return printAccounts(out, opened)
}

type accountList struct {
	Limit int    `default:"100" help:"At most so many; 0 lists all."`
	Owner string `help:"Only those whose owner's name contains this, in any letter case."`
	All   bool   `help:"Also the accounts that bank load has opened, which the table leaves out; JSON has them in any case."`
}

// errEnough ends a walk through a list.
var errEnough = errors.New("enough")

func (c *accountList) Run(ctx context.Context, to *endpoints, out *output) error {
	accounts := []account{}
	hidden := 0
	err := list(ctx, to.account(), "/accounts", url.Values{}, 0, func(a account) error {
		switch {
		case c.Limit > 0 && len(accounts) == c.Limit:
			return errEnough
		case !strings.Contains(strings.ToLower(a.Owner), strings.ToLower(c.Owner)):
		case !c.All && !out.json && c.Owner == "" && a.ofLoad():
			hidden++
		default:
			accounts = append(accounts, a)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if out.json {
		return out.document(accounts)
	}
	if err := printAccounts(out, accounts...); err != nil || hidden == 0 {
		return err
	}
	_, err = fmt.Fprintf(out, "\nand %d accounts of bank load, which --all shows\n", hidden)
	return err
}

type accountShow struct {
	ID string `arg:"" help:"The account."`
}

// entry is one line of a statement.
type entry struct {
	ID          string    `json:"id"`
	TransferID  string    `json:"transferId,omitzero"`
	Kind        string    `json:"kind"`
	AmountMinor int64     `json:"amountMinor"`
	PostedAt    time.Time `json:"postedAt"`
}

func (c *accountShow) Run(ctx context.Context, to *endpoints, out *output) error {
	service := to.account()
	var shown struct {
		account
		Entries []entry `json:"entries"`
	}
	path := "/accounts/" + url.PathEscape(c.ID)
	if _, err := service.do(ctx, http.MethodGet, path, nil, &shown.account); err != nil {
		return err
	}
	shown.Entries = []entry{}
	err := list(ctx, service, path+"/entries", url.Values{}, 100, func(e entry) error {
		shown.Entries = append(shown.Entries, e)
		return nil
	})
	if err != nil {
		return err
	}
	if out.json {
		return out.document(shown)
	}
	if err := printAccounts(out, shown.account); err != nil {
		return err
	}
	rows := make([][]string, 0, len(shown.Entries))
	for _, e := range shown.Entries {
		rows = append(rows, []string{e.PostedAt.Format(time.RFC3339), e.Kind, amount(e.AmountMinor, shown.Currency), e.TransferID})
	}
	return out.table([]string{"\nPOSTED", "KIND", "AMOUNT", "TRANSFER"}, rows)
}

type accountFreeze struct {
	ID string `arg:"" help:"The account."`
}

func (c *accountFreeze) Run(ctx context.Context, to *endpoints, out *output) error {
	return changeAccount(ctx, to, out, c.ID, "freeze")
}

type accountThaw struct {
	ID string `arg:"" help:"The account."`
}

func (c *accountThaw) Run(ctx context.Context, to *endpoints, out *output) error {
	return changeAccount(ctx, to, out, c.ID, "unfreeze")
}

type accountClose struct {
	ID string `arg:"" help:"The account."`
}

func (c *accountClose) Run(ctx context.Context, to *endpoints, out *output) error {
	return changeAccount(ctx, to, out, c.ID, "close")
}

func changeAccount(ctx context.Context, to *endpoints, out *output, id, verb string) error {
	var changed account
	if _, err := to.account().do(ctx, http.MethodPost, "/accounts/"+url.PathEscape(id)+"/"+verb, nil, &changed); err != nil {
		return err
	}
	return printAccounts(out, changed)
}

// printAccounts shows accounts in a table, or the only one as a document.
func printAccounts(out *output, accounts ...account) error {
	if out.json {
		return out.document(accounts[0])
	}
	rows := make([][]string, 0, len(accounts))
	for _, a := range accounts {
		rows = append(rows, []string{a.ID, foreign(a.Owner), a.Status, amount(a.BalanceMinor, a.Currency)})
	}
	return out.table([]string{"ACCOUNT", "OWNER", "STATUS", "BALANCE"}, rows)
}
