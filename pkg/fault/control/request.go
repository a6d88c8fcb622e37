package control

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/service"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// request is the body of POST /admin/faults.
type request struct {
	Point     *string `json:"point"`
	Action    *string `json:"action"`
	Class     *string `json:"class"`
	Delay     *string `json:"delay"`
	MessageID *string `json:"messageId"`
	Count     *int64  `json:"count"`
	// Members that are not known are refused here: with a slip in "messageId" the fault would meet every message.
	Unknown map[string]jsontext.Value `json:",embed"`
}

const (
	maxMessageID = 200 // characters, as of any message
	maxCount     = 1_000_000
)

// fault is what the request asks for. The error names every member that is wrong, and what it may be.
func (r request) fault() (fault.Fault, error) {
	var wrong service.FieldErrors
	f := fault.Fault{ID: uuid.Must(uuid.NewV7()), Remaining: r.Count}
	f.Point = oneOf(&wrong, "point", r.Point, fault.ParsePoint, fault.AllPoints())
	f.Action = oneOf(&wrong, "action", r.Action, fault.ParseAction, fault.AllActions())
	switch {
	case r.Class == nil && f.Action == fault.Error:
		f.Class = retry.Unknown // what an error without a class is anywhere
	case r.Class != nil && f.Action != "" && f.Action != fault.Error:
		wrong.Add("class", "belongs to the action error only")
	case r.Class != nil:
		f.Class = oneOf(&wrong, "class", r.Class, fault.ParseClass, fault.AllClasses())
	}
	switch {
	case r.Delay != nil && f.Action != "" && f.Action != fault.Delay:
		wrong.Add("delay", "belongs to the action delay only")
	case r.Delay != nil || f.Action == fault.Delay:
		f.Delay = r.delay(&wrong)
	}
	if r.MessageID != nil {
		f.MessageID = *r.MessageID
		if n := utf8.RuneCountInString(f.MessageID); n < 1 || n > maxMessageID || strings.ContainsRune(f.MessageID, 0) {
			wrong.Add("messageId", fmt.Sprintf("must have 1 to %d characters, without U+0000; leave it out for any message", maxMessageID))
		}
	}
	if r.Count != nil && (*r.Count < 1 || *r.Count > maxCount) {
		wrong.Add("count", fmt.Sprintf("must be a whole number from 1 to %d; leave it out for a fault that lasts until it is deleted", maxCount))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Unknown)) {
		wrong.Add(name, "is not known; there are point, action, class, delay, messageId and count")
	}
	return f, wrong.Err()
}

// oneOf reads a member that must be one of a few names.
func oneOf[T ~string](wrong *service.FieldErrors, member string, given *string, parse func(string) (T, bool), all []T) T {
	if given != nil {
		if value, ok := parse(*given); ok {
			return value
		}
	}
	names := make([]string, len(all))
	for i, name := range all {
		names[i] = string(name)
	}
	last := len(names) - 1
	wrong.Add(member, "must be one of "+strings.Join(names[:last], ", ")+" or "+names[last])
	return ""
}

func (r request) delay(wrong *service.FieldErrors) time.Duration {
	if r.Delay != nil {
		d, err := time.ParseDuration(strings.TrimSpace(*r.Delay))
		if err == nil && d >= time.Microsecond && d <= fault.MaxDelay { // the table keeps microseconds
			return d.Truncate(time.Microsecond)
		}
	}
	wrong.Add("delay", "must be a duration above 0 and up to 5m, such as 500ms, 2s or 1m30s")
	return 0
}
