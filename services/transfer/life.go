package main

import (
	"context"
	"fmt"
	"net/http"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/life"
	"example.com/banking/pkg/service"
	"example.com/banking/services/transfer/lifecycle"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

// accountEvents are the messages that transfer hears.
var accountEvents = []string{
	contract.AccountDebited, contract.AccountDebitRejected, contract.AccountCredited, contract.AccountCreditRejected, contract.AccountRefunded,
}

// life answers everything that is known here of one transfer's life.
func (a *api) life(c echo.Context) error {
	id, err := service.PathID(c, "id")
	if err != nil {
		return err
	}
	answer, err := a.store.life(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answer)
}

func (s *store) life(ctx context.Context, id uuid.UUID) (life.Life, error) {
	t, err := s.find(ctx, id)
	if err != nil {
		return life.Life{}, err
	}
	return life.Read(ctx, s.pool, serviceName, id, tell(t))
}

// tell tells what the transfer itself knows. What it has said is not stored, it follows from what it was told: so it is told again, fact by
// fact, and says the same.
func tell(t transfer) life.Told {
	saga, request := lifecycle.Request(t.ID, t.Source, t.Destination, t.Money)
	told := life.Told{
		Events: []life.Event{{
			At: t.CreatedAt, Kind: life.Accepted, AmountMinor: t.Money.Minor,
			Detail: fmt.Sprintf("%s from %s to %s", t.Money.Currency, t.Source, t.Destination),
		}},
		Said: []life.Said{{At: t.CreatedAt, Type: request.Type}},
	}
	messageTypes := map[lifecycle.Fact]string{}
	for _, messageType := range accountEvents {
		if fact, ok := lifecycle.FactOf(messageType); ok {
			messageTypes[fact] = messageType
		}
		told.Heard = append(told.Heard, life.Hears(t.ID, contract.AccountEventsQueue, messageType))
	}
	for _, e := range t.Timeline {
		if e.Fact == lifecycle.Requested {
			continue // that it was accepted says it
		}
		messageType := messageTypes[e.Fact]
		event := life.Event{At: e.At, Kind: life.Fact, MessageID: e.MessageID, Type: messageType, Detail: e.Fact.String()}
		before := saga.Reason
		step, err := saga.Learn(e.Fact, reasonOf(t, e.Fact))
		if err == nil && step.Message != nil {
			told.Said = append(told.Said, life.Said{At: e.At, Type: step.Message.Type})
		}
		if before == "" {
			event.Reason = saga.Reason // the first fact that turned it back gave it
		}
		told.Events = append(told.Events, event)
		if messageType != "" { // told by somebody, maybe under an id of their own
			told.Heard = append(told.Heard, life.Heard{Key: inbox.Key{Consumer: contract.AccountEventsQueue, MessageID: e.MessageID}, Type: messageType})
		}
	}
	return told
}

// reasonOf is the reason that a fact came with, as far as that is known: the transfer keeps the first one only.
func reasonOf(t transfer, fact lifecycle.Fact) string {
	switch {
	case fact == lifecycle.TimedOut:
		return contract.TimedOut
	case t.Reason != nil:
		return *t.Reason
	}
	return ""
}
