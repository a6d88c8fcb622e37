package retry_test

import (
	"testing"
	"time"

	"example.com/banking/pkg/retry"
)

// What a decision about a failed message costs; to be compared with benchstat.
func BenchmarkDecide(b *testing.B) {
	half := func() float64 { return 0.5 }
	b.ReportAllocs()
	for b.Loop() {
		if d := policy.Decide(retry.Failure{Class: retry.Unknown, Attempt: 2, Age: time.Minute}, half); d.Action != retry.Retry {
			b.Fatal(d)
		}
	}
}

func BenchmarkClassOf(b *testing.B) {
	err := retry.Errorf(retry.NotFound, "there is no transfer")
	b.ReportAllocs()
	for b.Loop() {
		if c := retry.ClassOf(err); c != retry.NotFound {
			b.Fatal(c)
		}
	}
}
