package contract_test

import (
	"testing"

	"example.com/banking/pkg/contract"
)

// BenchmarkRoute derives the routing key of a message from its type.
func BenchmarkRoute(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if key := contract.RoutingKey(contract.AccountDebitRejected); key != "accounts.account.debit-rejected" {
			b.Fatal(key)
		}
	}
}
