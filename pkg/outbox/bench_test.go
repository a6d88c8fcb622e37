package outbox

import "testing"

// What an outgoing message costs before it reaches the database: its envelope, its routing key and the publishing.
func BenchmarkNewMessage(b *testing.B) {
	d := draft("2f1d6a5c-6b0e-5c39-9f6d-0f6f8f6f2b11")
	b.ReportAllocs()
	for b.Loop() {
		m, err := NewMessage(d)
		if err != nil || m.publishing("banking.events", "account").RoutingKey != "accounts.account.debited" {
			b.Fatal(m, err)
		}
	}
}
