package main

import (
	"net/http"
	"strings"
	"testing"

	"example.com/banking/pkg/contract"
)

const authorization = "Authorization: Bearer secret"

// Fault points are off unless FAULTS says otherwise. Whoever has no token does not even learn that.
func TestFaultsAreOffUnlessAskedFor(t *testing.T) {
	t.Parallel()
	b := startBank(t, "ADMIN_TOKEN=secret")
	a := b.call(http.MethodPost, "/admin/faults", `{"point":"handler","action":"exit"}`, authorization)
	if a.StatusCode != http.StatusNotFound || !strings.Contains(string(a.body), "FAULTS=on") {
		t.Errorf("answer %d %s", a.StatusCode, a.body)
	}
	if a := b.call(http.MethodGet, "/admin/faults", ""); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the token: %d", a.StatusCode)
	}
}

// One failure on order is one lap, and then the event takes effect.
func TestOrderedFailureIsRetried(t *testing.T) {
	t.Parallel()
	b := startBank(t, "ADMIN_TOKEN=secret", "FAULTS=on", "RETRY_DELAY=100ms")
	if a := b.call(http.MethodPost, "/admin/faults", `{"point":"handler","action":"error","class":"TIMEOUT","count":1}`, authorization); a.StatusCode != http.StatusCreated {
		t.Fatalf("answer %d %s", a.StatusCode, a.body)
	}
	accepted := b.request(newOrder())
	b.publish(tells(accepted, contract.AccountDebited))
	b.awaitStatus(accepted.ID, "DEBITED")
	b.settled()
	metrics := string(b.call(http.MethodGet, "/metrics", "").body)
	if want := `messaging_deliveries_total{outcome="retried",queue="transfer.account-events"} 1`; !strings.Contains(metrics, want) {
		t.Errorf("no %s", want)
	}
	b.nothingParked()
}
