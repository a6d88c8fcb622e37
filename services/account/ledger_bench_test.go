package main

import "testing"

// What GET /ledger costs with 200,000 accounts.
func BenchmarkLedger(b *testing.B) {
	bank := newBank(b)
	for _, statement := range []string{
		`insert into accounts (id, owner, currency, status, balance_minor, opening_minor, created_at)
		 select gen_random_uuid(), 'Ada', 'EUR', 'OPEN', 0, 0, now() from generate_series(1, 200000)`,
		`vacuum analyze accounts`,
	} {
		if _, err := bank.pool.Exec(b.Context(), statement); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := bank.ledger(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
