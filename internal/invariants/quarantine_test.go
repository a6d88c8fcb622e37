package invariants

import (
	"context"
	"testing"

	"example.com/banking/pkg/contract"
)

// full is a broker whose parking lot holds these.
type full []Parked

func (f full) Queues(context.Context) ([]Queue, error) {
	return []Queue{{contract.ParkingLot, int64(len(f))}, {contract.AccountEventsQueue, 1}}, nil
}

func (f full) Parked(_ context.Context, _ string, visit func(Parked)) error {
	for _, p := range f {
		visit(p)
	}
	return nil
}

func TestQuarantineCountsWhatHasNoReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		holds   full
		verdict Verdict
		detail  string
	}{
		{nil, Held, "the quarantines are empty"},
		{full{{Reason: "VALIDATION"}}, Held, "banking.dead-letters VALIDATION: 1"},
		{full{{}, {}, {}}, Broken, "banking.dead-letters without a reason: 3"},
		{full{{}, {Reason: "VALIDATION"}}, Broken, "banking.dead-letters VALIDATION: 1, banking.dead-letters without a reason: 1"},
	} {
		queues, _ := c.holds.Queues(t.Context())
		var report Report
		_, check := explained(t.Context(), c.holds, queues, &report)
		if report.Unread != nil || check.Verdict != c.verdict || check.Detail != c.detail || int(report.Counts.Quarantined) != len(c.holds) {
			t.Errorf("%+v: %+v, %d counted, %v", c.holds, check, report.Counts.Quarantined, report.Unread)
		}
	}
}
