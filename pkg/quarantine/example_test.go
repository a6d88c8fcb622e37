package quarantine_test

import (
	"fmt"
	"time"

	"example.com/banking/pkg/quarantine"
	"example.com/banking/pkg/retry"
)

// Whether a replayed message has come back can be told only after it has had the time to fail as often as it is tried.
func ExampleLongestRoad() {
	fmt.Println(quarantine.LongestRoad(retry.Policy{
		MaxAttempts: 4, Delays: []time.Duration{time.Second, 5 * time.Second, 25 * time.Second}, Classify: true,
	}))
	// Output:
	// 31s
}
