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
