package quarantine

import (
	"testing"
	"time"

	"example.com/banking/pkg/messaging"
)

// The time of the last replay is a header, which a sender can write as well. One from the future would end a run that watches its canaries,
// for a message that never was among them.
func TestReplayedSinceBelievesNoTimeThatIsYetToCome(t *testing.T) {
	t.Parallel()
	began := time.Now().Add(-time.Minute)
	for at, want := range map[time.Time]bool{
		{}:                        false,
		began.Add(-time.Hour):     false,
		began:                     true,
		began.Add(time.Second):    true,
		time.Now().Add(time.Hour): false,
	} {
		if got := (&parked{told: messaging.Parked{ReplayedAt: at}}).replayedSince(began); got != want {
			t.Errorf("replayed at %v, since %v: %v", at, began, got)
		}
	}
}
