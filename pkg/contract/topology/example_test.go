package topology_test

import (
	"fmt"
	"time"

	"example.com/banking/pkg/contract/topology"
	"example.com/banking/pkg/messaging"
)

// What a service declares is data: it can be listed, drawn and compared with a broker.
func ExampleTransfer() {
	t := topology.Transfer(messaging.Quorum, 5*time.Second)
	for _, q := range t.Queues {
		fmt.Println(q.Name)
	}
	for _, b := range t.Bindings[:2] {
		fmt.Printf("%s %s → %s\n", b.Exchange, b.Key, b.Queue)
	}
	// Output:
	// banking.dead-letters
	// transfer.account-events
	// transfer.account-events.retry
	// banking.dlx # → banking.dead-letters
	// banking.events accounts.account.* → transfer.account-events
}

// The queues of one tier: messages that failed together are spread over them, so that they do not come back together.
func ExampleSpread() {
	fmt.Println(topology.Spread(30*time.Second, 0.2))
	// Output:
	// [24s 30s 36s]
}

// Each queue of requests has an error queue beside it. Only what the broker itself takes out of a queue dies into the exchange.
func ExampleAccount() {
	for _, q := range topology.Account(messaging.Quorum).Queues {
		fmt.Printf("%s → %v\n", q.Name, q.Args["x-dead-letter-exchange"])
	}
	// Output:
	// banking.dead-letters → <nil>
	// account.transfer-requested → banking.dlx
	// account.transfer-requested_error → <nil>
	// account.credit-requested → banking.dlx
	// account.credit-requested_error → <nil>
	// account.refund-requested → banking.dlx
	// account.refund-requested_error → <nil>
}

// A consumer on the tiered road is given the tiers of the queues that are declared: both are made from the same delays and jitter.
func ExampleTransferTiered() {
	delays, jitter := []time.Duration{5 * time.Second, time.Minute}, 0.2
	declared := map[string]bool{}
	for _, q := range topology.TransferTiered(messaging.Quorum, 5*time.Second, delays, jitter).Queues {
		declared[q.Name] = true
	}
	for _, tier := range topology.RetryTiers(delays, jitter) {
		for _, queue := range tier.Queues {
			fmt.Println(tier.Delay, queue, declared[queue])
		}
	}
	// Output:
	// 5s transfer.account-events.retry.4s true
	// 5s transfer.account-events.retry.5s true
	// 5s transfer.account-events.retry.6s true
	// 1m0s transfer.account-events.retry.48s true
	// 1m0s transfer.account-events.retry.1m true
	// 1m0s transfer.account-events.retry.1m12s true
}
