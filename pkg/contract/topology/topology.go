// Package topology is the banking topology as data: which exchanges, queues and bindings each service declares.
//
// It is one place on purpose. The services declare what stands here, the tests compare the broker with it, and the
// reference page is made from it.
package topology

import (
	"time"

	"example.com/banking/pkg/messaging"
)

// Account is what the account service declares.
func Account(kind messaging.QueueType) messaging.Topology { return messaging.Topology{} }

// Transfer is what the transfer service declares; retryDelay is how long a lap takes.
func Transfer(kind messaging.QueueType, retryDelay time.Duration) messaging.Topology {
	return messaging.Topology{}
}
