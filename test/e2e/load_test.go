package e2e

import (
	"encoding/json"
	"testing"

	"example.com/banking/internal/testenv"
)

// bank load sends what it is told, sees every transfer end, and leaves the books in order.
func TestLoad(t *testing.T) {
	t.Parallel()
	b := newBank(t, testenv.New(t), 1, nil)
	out, err := b.command("load", "--rate", "50", "--duration", "2s", "--accounts", "10", "--hot", "0.8", "--drain", "1m", "--json")
	var result struct {
		Sent, Accepted, Failed, Open int
		Ended                        map[string]int
		EndMS                        struct{ P50, P99 float64 }
	}
	if err != nil || json.Unmarshal(out, &result) != nil {
		t.Fatalf("bank load: %v\n%s", err, out)
	}
	if result.Sent != 100 || result.Accepted != 100 || result.Failed != 0 || result.Open != 0 || result.Ended["COMPLETED"] != 100 {
		t.Errorf("100 transfers, all completed, are wanted: %s", out)
	}
	if result.EndMS.P50 <= 0 || result.EndMS.P99 < result.EndMS.P50 {
		t.Errorf("latencies that cannot be: %s", out)
	}
	b.verify()
}
