package quarantine

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"example.com/banking/pkg/service"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

const (
	toQueue    = "queue"
	toExchange = "exchange"

	standardRate = 50.0   // messages a second
	largestRate  = 1000.0 // more than that is no longer a limit
	smallestRate = 0.1    // less, and a chunk would be held for longer than a broker bears
	longBecause  = 1000   // characters
)

// replayOrder is the body of a replay.
type replayOrder struct {
	filter  `json:",embed"`
	To      string                    `json:"to"`
	Canary  int                       `json:"canary"`
	Rate    float64                   `json:"rate"`
	Force   bool                      `json:"force"`
	Confirm bool                      `json:"confirm"`
	Others  map[string]jsontext.Value `json:",embed"`
}

func (q *Quarantine) replayOrderOf(c echo.Context) (*replayOrder, error) {
	order := &replayOrder{To: toQueue, Rate: standardRate}
	if err := service.DecodeJSON(c, order); err != nil {
		return nil, err
	}
	wrong := q.check(&order.filter, "ids")
	unknownMembers(&wrong, order.Others)
	if order.To != toQueue && order.To != toExchange {
		wrong.Add("to", "must be queue or exchange")
	}
	if order.Canary < 0 || order.Canary > order.limit {
		wrong.Add("canary", "must be a whole number from 0 to the limit")
	}
	if !(order.Rate >= smallestRate && order.Rate <= largestRate) {
		wrong.Add("rate", fmt.Sprintf("must be a number of messages a second, from %g to %g", smallestRate, largestRate))
	}
	return order, wrong.Err()
}

// discardOrder is the body of a discard.
type discardOrder struct {
	filter  `json:",embed"`
	Because string                    `json:"because"`
	Confirm bool                      `json:"confirm"`
	Others  map[string]jsontext.Value `json:",embed"`
}

func (q *Quarantine) discardOrderOf(c echo.Context) (*discardOrder, error) {
	order := &discardOrder{}
	if err := service.DecodeJSON(c, order); err != nil {
		return nil, err
	}
	wrong := q.check(&order.filter, "ids")
	unknownMembers(&wrong, order.Others)
	switch {
	case strings.TrimSpace(order.Because) == "":
		wrong.Add("because", "is missing: say why these messages may be thrown away")
	case utf8.RuneCountInString(order.Because) > longBecause:
		wrong.Add("because", fmt.Sprintf("must have at most %d characters", longBecause))
	case strings.ContainsRune(order.Because, 0):
		wrong.Add("because", "must not contain NUL")
	}
	return order, wrong.Err()
}
