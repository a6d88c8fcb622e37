package messaging

import (
	"context"
	"errors"
	"slices"
	"testing"

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
			if got := startsUnnoted(major, readHistory(headers, mainQueue)); got != want[i] {
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
	away  bool
	ended [][32]byte
	begun int
}

func (f *flaky) Begin(context.Context, string, [32]byte, int) (int, error) {
	f.begun++
	return 1, nil
}

func (f *flaky) End(_ context.Context, _ string, keys ...[32]byte) error {
	if f.away {
		return errors.New("away")
	}
	f.ended = append(f.ended, keys...)
	return nil
}

func (f *flaky) Excuse(context.Context, string, [][32]byte, [][32]byte) error { return nil }

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
