package main

import (
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/service"
	"example.com/banking/services/account/ledger"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

// api is the HTTP side of account. openapi.yaml describes it, and the tests hold every answer against that.
type api struct {
	store *store
	clock func() time.Time
}

func (a *api) routes(e *echo.Echo) {
	e.POST("/accounts", a.openAccount)
	e.GET("/accounts", a.listAccounts)
	e.GET("/accounts/:id", a.getAccount)
	e.GET("/accounts/:id/entries", a.listEntries)
	e.POST("/accounts/:id/freeze", a.change((*ledger.Account).Freeze))
	e.POST("/accounts/:id/unfreeze", a.change((*ledger.Account).Unfreeze))
	e.POST("/accounts/:id/close", a.change((*ledger.Account).Close))
	e.GET("/ledger", a.getLedger)
	e.GET("/legs/:transferId", a.getLeg)
	e.GET("/legs/:transferId/life", a.life)
}

// problem turns the errors of store and ledger into answers. It is the only place where an error becomes a status.
func problem(err error) *service.Problem {
	switch {
	case errors.Is(err, errNoAccount):
		return service.NotFound("There is no such account.")
	case errors.Is(err, errNoLeg):
		return service.NotFound("This transfer is not known here, or not yet.")
	case errors.Is(err, errOtherAccount):
		return service.Conflict("The id belongs to an account that was opened with another owner, currency or opening balance.")
	case errors.Is(err, ledger.ErrClosed):
		return service.Conflict("The account is closed.")
	case errors.Is(err, ledger.ErrNotEmpty):
		return service.Conflict("The account's balance is not zero.")
	}
	return nil
}

type openAccountBody struct {
	ID                  contract.Text  `json:"id"`
	Owner               contract.Text  `json:"owner"`
	Currency            contract.Text  `json:"currency"`
	OpeningBalanceMinor openingBalance `json:"openingBalanceMinor"`
}

// openingBalance is an amount in minor units that may be zero, as JSON digits.
type openingBalance struct {
	minor   int64
	present bool
}

// UnmarshalJSONFrom reads the digits as text, so that no amount passes through a float.
func (o *openingBalance) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	o.present = true
	if string(raw) == "0" {
		return nil
	}
	if raw.Kind() != '0' {
		return errors.New("must be an integer written with digits only")
	}
	o.minor, err = contract.ParseAmount(raw)
	return err
}

const longestOwner = 200 // characters

// check answers the id to open the account under, a new one if none is given, or everything that is wrong.
func (b openAccountBody) check() (uuid.UUID, error) {
	var wrong service.FieldErrors
	id := uuid.New()
	if b.ID.Present {
		var ok bool
		if id, ok = contract.ParseID(b.ID.Value); !ok {
			wrong.Add("id", "must be a UUID")
		}
	}
	switch length := utf8.RuneCountInString(b.Owner.Value); {
	case length == 0:
		wrong.Add("owner", "is missing")
	case length > longestOwner:
		wrong.Add("owner", fmt.Sprintf("must have at most %d characters", longestOwner))
	case strings.ContainsRune(b.Owner.Value, 0):
		wrong.Add("owner", "must not contain NUL")
	}
	if !contract.ValidCurrency(b.Currency.Value) {
		wrong.Add("currency", "must be three capital letters")
	}
	if !b.OpeningBalanceMinor.present {
		wrong.Add("openingBalanceMinor", "is missing")
	}
	return id, wrong.Err()
}

func (a *api) openAccount(c echo.Context) error {
	var body openAccountBody
	if err := service.DecodeJSON(c, &body); err != nil {
		return err
	}
	id, err := body.check()
	if err != nil {
		return err
	}
	account, isNew, err := a.store.openAccount(c.Request().Context(), id,
		body.Owner.Value, body.Currency.Value, body.OpeningBalanceMinor.minor, a.clock())
	if err != nil {
		if body.ID.Present {
			err = service.Repeatable(err)
		}
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, "/accounts/"+id.String())
	status := http.StatusOK
	if isNew {
		status = http.StatusCreated
	}
	return c.JSON(status, accountAnswer(account))
}

type accountJSON struct {
	ID           uuid.UUID     `json:"id"`
	Owner        string        `json:"owner"`
	Currency     string        `json:"currency"`
	Status       ledger.Status `json:"status"`
	BalanceMinor int64         `json:"balanceMinor"`
	CreatedAt    time.Time     `json:"createdAt"`
}

func accountAnswer(a storedAccount) accountJSON {
	return accountJSON{a.ID, a.Owner, a.Currency, a.Status, a.Balance, a.CreatedAt.UTC()}
}

func (a *api) getAccount(c echo.Context) error {
	id, err := service.PathID(c, "id")
	if err != nil {
		return err
	}
	account, err := a.store.account(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, accountAnswer(account))
}

func (a *api) listAccounts(c echo.Context) error {
	page, err := service.PageOf(c)
	if err != nil {
		return err
	}
	accounts, err := a.store.accounts(c.Request().Context(), page)
	if err != nil {
		return err
	}
	answers := make([]accountJSON, len(accounts))
	for i, account := range accounts {
		answers[i] = accountAnswer(account)
	}
	return c.JSON(http.StatusOK, service.ListOf(page, answers, func(a accountJSON) service.Cursor {
		return service.Cursor{Time: a.CreatedAt, ID: a.ID}
	}))
}

// change makes the handler that applies a rule of the ledger to an account.
func (a *api) change(rule func(*ledger.Account) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := service.PathID(c, "id")
		if err != nil {
			return err
		}
		account, err := a.store.change(c.Request().Context(), id, rule)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, accountAnswer(account))
	}
}

type entryJSON struct {
	ID          uuid.UUID       `json:"id"`
	TransferID  uuid.NullUUID   `json:"transferId"` // null for an opening
	Kind        ledger.Movement `json:"kind"`
	AmountMinor int64           `json:"amountMinor"`
	PostedAt    time.Time       `json:"postedAt"`
}

func (a *api) listEntries(c echo.Context) error {
	id, err := service.PathID(c, "id")
	if err != nil {
		return err
	}
	page, err := service.PageOf(c)
	if err != nil {
		return err
	}
	entries, err := a.store.statement(c.Request().Context(), id, page)
	if err != nil {
		return err
	}
	answers := make([]entryJSON, len(entries))
	for i, e := range entries {
		answers[i] = entryJSON{e.ID, e.TransferID, e.Kind, e.Amount, e.PostedAt.UTC()}
	}
	return c.JSON(http.StatusOK, service.ListOf(page, answers, func(e entryJSON) service.Cursor {
		return service.Cursor{Time: e.PostedAt, ID: e.ID}
	}))
}

// The sums are big integers: only a single balance is bounded by 64 bits.
type ledgerJSON struct {
	OK         bool           `json:"ok"` // every sum is zero
	Currencies []currencyJSON `json:"currencies"`
}

type currencyJSON struct {
	Currency       string   `json:"currency"`
	CustomersMinor *big.Int `json:"customersMinor"`
	InTransitMinor *big.Int `json:"inTransitMinor"`
	FundingMinor   *big.Int `json:"fundingMinor"`
	SumMinor       *big.Int `json:"sumMinor"`
}

func (a *api) getLedger(c echo.Context) error {
	sums, err := a.store.ledger(c.Request().Context())
	if err != nil {
		return err
	}
	answer := ledgerJSON{OK: true, Currencies: make([]currencyJSON, len(sums))}
	for i, s := range sums {
		answer.OK = answer.OK && s.Sum.Sign() == 0
		answer.Currencies[i] = currencyJSON{s.Currency, s.Customers, s.InTransit, s.Funding, s.Sum}
	}
	return c.JSON(http.StatusOK, answer)
}

type legJSON struct {
	TransferID           uuid.UUID    `json:"transferId"`
	State                ledger.State `json:"state"`
	Reason               string       `json:"reason,omitempty"`
	SourceAccountID      uuid.UUID    `json:"sourceAccountId"`
	DestinationAccountID uuid.UUID    `json:"destinationAccountId"`
	AmountMinor          int64        `json:"amountMinor"`
	Currency             string       `json:"currency"`
	UpdatedAt            time.Time    `json:"updatedAt"`
}

func (a *api) getLeg(c echo.Context) error {
	id, err := service.PathID(c, "transferId")
	if err != nil {
		return err
	}
	l, updated, err := a.store.leg(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, legJSON{l.Transfer, l.State, l.Reason, l.Source, l.Destination, l.Money.Minor, l.Money.Currency, updated.UTC()})
}
