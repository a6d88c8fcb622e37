package messaging

// Road says where failed messages go: how one waits for its next attempt, and where it goes when there is none.
type Road struct {
	// RetryQueue is set on the lap road: a failed message is rejected, dead-lettered by the broker into this queue and comes
	// back when its time to live is over. "" is the road in process: the consumer holds the message while it waits.
	RetryQueue string

	// QuarantineExchange and QuarantineKey are where a message is published to that is given up. With
	// an empty key the message keeps its original routing key.
	QuarantineExchange string
	QuarantineKey      string

	// MassTransit adds the MT-* headers, by which tools of that ecosystem read an error queue.
	MassTransit bool
}

// InProcess is the road of account: waits are held here, what is given up goes to errorQueue.
func InProcess(errorQueue string) Road {
	return Road{QuarantineKey: errorQueue, MassTransit: true}
}

// Lap is the road of transfer: waits are held by the broker in retryQueue, what is given up goes to the exchange of the
// parking lot under its original routing key.
func Lap(retryQueue, deadLetterExchange string) Road {
	return Road{RetryQueue: retryQueue, QuarantineExchange: deadLetterExchange}
}
