package main

import (
	"errors"
	"net/http"
	"time"

	"example.com/banking/pkg/service"
	"example.com/banking/services/transfer/lifecycle"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"
)

// api answers the calls about transfers.
type api struct {
	store  *store
	intake *intake
}

func (a *api) register(e *echo.Echo) {
	e.POST("/transfers", a.create)
	e.GET("/transfers", a.list)
	e.GET("/transfers/summary", a.summary)
	e.GET("/transfers/:id", a.show)
	e.GET("/transfers/:id/life", a.life)
}

// problem translates the store's errors; nil leaves them to the server's general rules.
func problem(err error) *service.Problem {
	switch {
	case errors.Is(err, errKeyReused):
		return service.Unprocessable("This Idempotency-Key was used for another transfer. Use a new key, or repeat the same body.")
	case errors.Is(err, pgx.ErrNoRows):
		return service.NotFound("There is no such transfer.")
	}
	return nil
}

func (a *api) create(c echo.Context) error {
	var body newTransferBody
	if err := service.DecodeJSON(c, &body); err != nil {
		return err
	}
	asked, err := body.parse()
	if err != nil {
		return err
	}
	key, err := parseIdempotencyKey(c.Request().Header.Values("Idempotency-Key"))
	if err != nil {
		return err
	}

	ctx := c.Request().Context()
	request, err := newAccepted(ctx, asked, key)
	if err != nil {
		return err
	}
	t, replayed, err := a.intake.accept(ctx, request)
	if err != nil {
		if key != nil {
			err = service.Repeatable(err)
		}
		return err
	}
	if replayed {
		c.Response().Header().Set("Idempotency-Replayed", "true")
	}
	c.Response().Header().Set(echo.HeaderLocation, "/transfers/"+t.ID.String())
	return c.JSON(http.StatusAccepted, viewOf(t))
}

func (a *api) show(c echo.Context) error {
	id, err := service.PathID(c, "id")
	if err != nil {
		return err
	}
	t, err := a.store.find(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, viewOf(t))
}

func (a *api) list(c echo.Context) error {
	page, err := service.PageOf(c)
	if err != nil {
		return err
	}
	status, err := statusFilter(c)
	if err != nil {
		return err
	}
	before := lastID
	if page.After != nil {
		before = page.After.ID
	}
	transfers, err := a.store.list(c.Request().Context(), status, before, page.Limit+1)
	if err != nil {
		return err
	}
	views := make([]transferView, len(transfers))
	for i, t := range transfers {
		views[i] = viewOf(t)
	}
	return c.JSON(http.StatusOK, service.ListOf(page, views, func(v transferView) service.Cursor {
		return service.Cursor{Time: v.CreatedAt, ID: v.ID}
	}))
}

func statusFilter(c echo.Context) (lifecycle.Status, error) {
	value, given, err := service.QueryParam(c, "status")
	if err != nil || !given {
		return "", err
	}
	status, ok := lifecycle.ParseStatus(value)
	if !ok {
		return "", service.BadRequest("The query is not acceptable.",
			service.FieldError{Field: "status", Message: "must be REQUESTED, DEBITED, REFUNDING, COMPLETED, REJECTED or REFUNDED"})
	}
	return status, nil
}

func (a *api) summary(c echo.Context) error {
	counts, err := a.store.summary(c.Request().Context())
	if err != nil {
		return err
	}
	all := map[lifecycle.Status]int64{}
	for _, status := range lifecycle.Statuses() {
		all[status] = counts[status]
	}
	return c.JSON(http.StatusOK, all)
}

// transferView is a transfer in JSON.
type transferView struct {
	ID                   uuid.UUID        `json:"id"`
	Status               lifecycle.Status `json:"status"`
	SourceAccountID      uuid.UUID        `json:"sourceAccountId"`
	DestinationAccountID uuid.UUID        `json:"destinationAccountId"`
	AmountMinor          int64            `json:"amountMinor"`
	Currency             string           `json:"currency"`
	Reference            *string          `json:"reference,omitempty"`
	Reason               *string          `json:"reason,omitempty"`
	CreatedAt            time.Time        `json:"createdAt"`
	UpdatedAt            time.Time        `json:"updatedAt"`
	Timeline             []entryView      `json:"timeline"`
}

type entryView struct {
	Fact      string    `json:"fact"`
	At        time.Time `json:"at"`
	MessageID string    `json:"messageId"`
}

func viewOf(t transfer) transferView {
	timeline := make([]entryView, len(t.Timeline))
	for i, e := range t.Timeline {
		timeline[i] = entryView{Fact: e.Fact.String(), At: e.At.UTC(), MessageID: e.MessageID}
	}
	return transferView{
		ID: t.ID, Status: t.Status,
		SourceAccountID: t.Source, DestinationAccountID: t.Destination,
		AmountMinor: t.Money.Minor, Currency: t.Money.Currency,
		Reference: t.Reference, Reason: t.Reason,
		CreatedAt: t.CreatedAt.UTC(), UpdatedAt: t.UpdatedAt.UTC(),
		Timeline: timeline,
	}
}
