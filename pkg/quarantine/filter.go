package quarantine

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/service"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

const (
	standardLimit = 100
	largestLimit  = 100_000
)

// filter is which messages are meant. The zero value of a field means every one.
type filter struct {
	IDs       []string
	Queue     string
	Reason    string
	Class     string
	Type      string
	OlderThan string // a Go duration, e.g. "1h30m"
	Limit     *int

	age   time.Duration
	limit int
}

// fields are the names that a filter has in a query.
var fields = []string{"id", "queue", "reason", "class", "type", "olderThan", "limit", "after", "whole"}

// filterOf reads a filter from the query.
func (q *Quarantine) filterOf(c echo.Context) (filter, service.FieldErrors, error) {
	query, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return filter{}, nil, service.BadRequest("The query cannot be read: a percent sign must be followed by two hexadecimal digits, and parameters are separated by &.")
	}
	var wrong service.FieldErrors
	for name, values := range query {
		switch {
		case !slices.Contains(fields, name): // a slip in a filter must not give an answer to another question
			wrong.Add(name, "is not a filter; there are "+strings.Join(fields, ", "))
		case len(values) > 1 && name != "id":
			wrong.Add(name, "must be given once")
		case values[0] == "" && name != "id":
			wrong.Add(name, "must not be empty")
		}
	}
	f := filter{IDs: query["id"], Queue: query.Get("queue"), Reason: query.Get("reason"), Class: query.Get("class"),
		Type: query.Get("type"), OlderThan: query.Get("olderThan")}
	if text := query.Get("limit"); text != "" {
		limit, err := strconv.Atoi(text)
		if err != nil {
			limit = 0 // which is none
		}
		f.Limit = &limit
	}
	return f, append(wrong, q.check(&f, "id")...), nil
}

var reasonForm = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

var classes = []string{string(retry.Validation), string(retry.Invariant), string(retry.NotFound), string(retry.Conflict),
	string(retry.Timeout), string(retry.RateLimited), string(retry.Unknown)}

// check makes a filter usable, or says what is wrong with it. ids is how the client calls the member of that name.
func (q *Quarantine) check(f *filter, ids string) (wrong service.FieldErrors) {
	if slices.Contains(f.IDs, "") {
		wrong.Add(ids, "must not be empty")
	}
	if f.Queue != "" && !slices.Contains(q.Queues, f.Queue) {
		wrong.Add("queue", "is not a quarantine queue of this service; there are "+strings.Join(q.Queues, ", "))
	}
	if f.Reason = strings.ToUpper(f.Reason); f.Reason != "" && !reasonForm.MatchString(f.Reason) {
		wrong.Add("reason", "must be a reason such as MAX_ATTEMPTS or EXPIRED")
	}
	if f.Class = strings.ToUpper(f.Class); f.Class != "" && !slices.Contains(classes, f.Class) {
		wrong.Add("class", "must be one of "+strings.Join(classes, ", "))
	}
	if f.OlderThan != "" {
		age, err := time.ParseDuration(f.OlderThan)
		if err != nil || age < 0 {
			wrong.Add("olderThan", "must be a duration such as 90s, 5m or 1h30m")
		}
		f.age = age
	}
	f.limit = standardLimit
	if f.Limit != nil {
		if f.limit = *f.Limit; f.limit < 1 || f.limit > largestLimit {
			wrong.Add("limit", fmt.Sprintf("must be a whole number from 1 to %d", largestLimit))
		}
	}
	return wrong
}

// narrow says whether the filter leaves anything out, the limit aside.
func (f *filter) narrow() bool {
	return len(f.IDs) > 0 || f.Queue != "" || f.Reason != "" || f.Class != "" || f.Type != "" || f.age > 0
}

// queues are those that the filter can find something in.
func (q *Quarantine) queuesOf(f filter) []string {
	if f.Queue != "" {
		return []string{f.Queue}
	}
	return q.Queues
}

// matches says whether a message is meant. One that does not say when it was parked is older than nothing.
func (f *filter) matches(p *parked, now time.Time) bool {
	switch {
	case f.Reason != "" && f.Reason != p.Reason,
		f.Class != "" && f.Class != p.Class,
		f.Type != "" && f.Type != p.Type,
		f.age > 0 && (p.ParkedAt == nil || now.Sub(*p.ParkedAt) <= f.age):
		return false
	}
	return len(f.IDs) == 0 || slices.ContainsFunc(f.IDs, p.named)
}

// unknownMembers demands that a body has no members but those of its struct: a misspelt filter would mean every message.
func unknownMembers(wrong *service.FieldErrors, others map[string]jsontext.Value) {
	for name := range others {
		wrong.Add(name, "is not known here")
	}
}
