package main

import (
	"sync"
	"testing"

	"example.com/banking/pkg/messaging"
	"example.com/banking/services/account/ledger"
	"github.com/google/uuid"
)

// What the database alone allows: 50 transfers in each transaction, debited and credited, inbox and outbox included; no broker.
func BenchmarkTransfers(b *testing.B) {
	const batch = 50
	for name, accounts := range map[string]int{"spread over 1000 accounts": 1000, "between 2 accounts": 2} {
		b.Run(name, func(b *testing.B) {
			bank := newBank(b)
			ids := make([]uuid.UUID, accounts)
			for i := range ids {
				ids[i] = bank.open(b, "EUR", 1_000_000_000)
			}
			next := make(chan []transfer)
			go func() {
				defer close(next)
				for n := 0; n < b.N; {
					var transfers []transfer
					for ; n < b.N && len(transfers) < batch; n++ {
						transfers = append(transfers, newTransfer(ids[n%accounts], ids[(n*7+1)%accounts], 1))
						if last := &transfers[len(transfers)-1]; last.from == last.to {
							last.to = ids[(n+1)%accounts]
						}
					}
					next <- transfers
				}
			}()
			b.ResetTimer()
			var workers sync.WaitGroup
			for range 4 {
				workers.Go(func() {
					for transfers := range next {
						for _, kind := range []ledger.Kind{ledger.Requested, ledger.CreditRequested} {
							messages := make([]*messaging.Message, len(transfers))
							for i, tr := range transfers {
								messages[i] = tr.message(b, kind)
							}
							if _, err := bank.handlers[kind](b.Context(), messages); err != nil {
								b.Error(err)
							}
						}
					}
				})
			}
			workers.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "transfers/s")
		})
	}
}
