package inbox

import (
	"testing"
	"time"
)

func TestReceived(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	before := time.Now().Add(-time.Second)
	b.handle(t, message("seen", `{"tally":"a","amount":1}`))
	seen := Key{"tallies", "seen"}
	got, err := Received(t.Context(), b.pool, []Key{seen, {"tallies", "unseen"}, {"others", "seen"}, seen})
	if err != nil || len(got) != 1 || got[seen].Before(before) || got[seen].After(time.Now().Add(time.Second)) {
		t.Errorf("received are %v (%v)", got, err)
	}
	if got, err = Received(t.Context(), b.pool, nil); err != nil || len(got) != 0 {
		t.Errorf("of nothing, %v (%v)", got, err)
	}
}
