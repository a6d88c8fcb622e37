package messaging

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

func TestOnlyALapOnANewBrokerIsNoUnnotedStart(t *testing.T) {
	t.Parallel()
	lapped := own(amqp.Table{"x-death": []any{entry(mainQueue, "rejected", int64(2))}})
	copied := amqp.Table{headerAttempts: int64(2)} // published by us and expired: not flagged by any version
	for version, want := range map[string][3]int{
		"3.10.8": {1, 1, 1}, "3.13.7": {1, 1, 1}, "4.0.5": {1, 0, 1}, "4.2.0-rc.1": {1, 0, 1}, "10.0.0": {1, 0, 1}, "": {1, 1, 1}, "v4": {1, 1, 1},
	} {
		major := majorVersion(version)
		for i, headers := range []amqp.Table{nil, lapped, copied} {
			if got := startsUnnoted(major, readHistory(returned(headers), mainQueue)); got != want[i] {
				t.Errorf("version %q, headers %v: %d starts", version, headers, got)
			}
		}
	}
	if got := majorVersion(nil); got != 0 {
		t.Errorf("no version is %d", got)
	}
}

// flaky is a database that is away now and then, at the ends of starts.
type flaky struct {
	away    bool
	unknown bool // what became of a start is not answered
	ended   [][32]byte
	excused [][32]byte
	begun   int
}

func (f *flaky) Begin(context.Context, string, [32]byte, int) (int, error) {
	f.begun++
	if f.unknown {
		return 0, fmt.Errorf("no answer: %w", ErrPerhapsNoted)
	}
	return 1, nil
}

func (f *flaky) End(_ context.Context, _ string, keys ...[32]byte) error {
	if f.away {
		return errors.New("away")
	}
	f.ended = append(f.ended, keys...)
	return nil
}

func (f *flaky) Excuse(_ context.Context, _ string, begun, _ [][32]byte) error {
	if f.away {
		return errors.New("away")
	}
	f.excused = append(f.excused, begun...)
	return nil
}

// A start that may have been noted was not made: it is taken back before the next one, and at the latest when we stop.
func TestStartWithUnknownOutcomeIsTakenBack(t *testing.T) {
	t.Parallel()
	database := &flaky{unknown: true}
	n := notes{starts: database}
	if _, err := n.begin(t.Context(), [32]byte{1}, 1); err == nil {
		t.Fatal("it may run")
	}
	database.unknown, database.away = false, true
	if _, err := n.begin(t.Context(), [32]byte{1}, 1); err == nil || database.begun != 1 {
		t.Fatalf("a start was noted on top of one that was not made: %v", err)
	}
	database.away = false
	for range 2 {
		if _, err := n.begin(t.Context(), [32]byte{1}, 1); err != nil {
			t.Fatal(err)
		}
	}
	if want := [][32]byte{{1}}; !slices.Equal(database.excused, want) {
		t.Errorf("taken back %d times, want once", len(database.excused))
	}
	database.unknown = true
	if _, err := n.begin(t.Context(), [32]byte{2}, 1); err == nil {
		t.Fatal("it may run")
	}
	if err := n.excuse([]*delivery{{suspicion: unnoted}}, time.Second); err != nil {
		t.Fatal(err)
	}
	if want := [][32]byte{{1}, {2}}; !slices.Equal(database.excused, want) {
		t.Errorf("a stop leaves it: %d are taken back", len(database.excused))
	}
}

// An end that was not noted would make the next start look like the one after a crash.
func TestEndThatCouldNotBeNotedIsNotedBeforeTheNextStart(t *testing.T) {
	t.Parallel()
	database := &flaky{away: true}
	n := notes{starts: database}
	n.end([32]byte{1})
	n.end([32]byte{2})
	if _, err := n.begin(t.Context(), [32]byte{1}, 1); err == nil || database.begun != 0 {
		t.Fatalf("a start was noted before the end of the one before: %v", err)
	}
	database.away = false
	for range 2 {
		if _, err := n.begin(t.Context(), [32]byte{1}, 1); err != nil {
			t.Fatal(err)
		}
	}
	if want := [][32]byte{{1}, {2}}; !slices.Equal(database.ended, want) {
		t.Errorf("ended %d, want each once", len(database.ended))
	}
}

// The verdict on a message that ends its process stands, also when we are about to stop by then: it has run into nothing of ours.
func TestStopChangesNothingAboutACrashLoop(t *testing.T) {
	t.Parallel()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if class := (&Consumer{}).classOfAttempt(stopped, errCrashLoop); class != retry.Unknown {
		t.Errorf("its class is %q", class)
	}
}

// A message whose headers alone condemn it goes to the quarantine as a copy also when it is a suspect and no start can be noted: a
// rejection would have the broker add to headers that it must not touch.
func TestASuspectWithBadHeadersIsNeverRejected(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string]amqp.Table{
		"too large":  {"large": strings.Repeat("x", maxHeaders)},
		"unreadable": {HeaderUnreadable: "deep"},
	} {
		s := NewSession(SessionConfig{Name: "service", Logger: slog.New(slog.DiscardHandler)})
		c, err := s.NewConsumer(ConsumerConfig{
			Queue: mainQueue, Road: Lap("retry", "dlx"), Policy: retry.Policy{MaxAttempts: 3, Delays: []time.Duration{5 * time.Second}, Classify: true},
			Handler: func(context.Context, []*Message) ([]error, error) { return nil, errors.New("it runs") },
			Starts:  &flaky{unknown: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		judged := func(headers amqp.Table) *delivery {
			d := &delivery{Delivery: amqp.Delivery{Body: []byte("{}"), Headers: headers, Redelivered: true, MessageId: "m"}, suspicion: unnoted}
			c.runSuspect(t.Context(), d, 3)
			c.judge(t.Context(), []*delivery{d})
			return d
		}
		d := judged(headers)
		if d.verdict != quarantineNow || d.reason != retry.ReasonValidation || d.suspicion != unsuspected || d.copy.Headers[HeaderDropped] == nil || d.attempt != 1 {
			t.Errorf("%s: verdict %d for %q, suspicion %d, headers %d", name, d.verdict, d.reason, d.suspicion, len(d.copy.Headers))
		}
		if d = judged(amqp.Table{"small": "x"}); d.verdict != lapByReject { // whose start could not be noted either
			t.Errorf("with good headers: verdict %d for %v", d.verdict, d.err)
		}
	}
}
