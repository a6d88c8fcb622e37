package testenv

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// goroutineTime is how long a goroutine may take to end by itself: pgx says good-bye on a connection that was cut off for up to 15 s.
const goroutineTime = 30 * time.Second

// NoneLeft demands that no goroutine runs but those of goleak.IgnoreCurrent, or that they end soon.
func NoneLeft(t testing.TB, before goleak.Option) {
	t.Helper()
	for began := time.Now(); ; {
		err := goleak.Find(before) // waits for a second or two itself
		if err == nil {
			return
		}
		if time.Since(began) > goroutineTime {
			t.Fatal(err)
		}
	}
}
