package policy

// words is what each platform calls the parts of the policy.
var words = Table{
	Caption: "What it is called",
	Columns: columns("part", "RabbitMQ, lap", "RabbitMQ, tiers", "SQS", "Kafka"),
	Rows: [][]string{
		{"a wait", "dead-lettered to a queue with a time to live",
			"a confirmed copy in the queue of that delay",
			"ChangeMessageVisibility: hidden, whole seconds up to 12 hours",
			"a copy in a retry topic, whose consumer pauses the partition until it is due; or the partition waits"},
		{"attempts are counted by", "x-death: rejections by the queue",
			"a header of ours",
			"ApproximateReceiveCount: each receive, whatever came of it",
			"a header of ours"},
		{"quarantine", "a confirmed copy to an exchange, with the reason",
			"the same",
			"redrive policy: beyond maxReceiveCount the queue moves it to the dead-letter queue; with a reason only as a copy of ours",
			"a copy in a dead-letter topic, a convention of clients"},
		{"giving back unspent", "requeued, no rejection is counted",
			"the same",
			"visibility timeout of 0; the receive has been counted",
			"the offset is not committed; all behind it comes again as well"},
		{"neighbours meanwhile", "go on",
			"go on",
			"go on; in a FIFO queue those of the same message group wait",
			"go on when it moves to a retry topic, wait when it is retried in place"},
		{"jitter", "none: one queue, one delay",
			"three queues to a tier",
			"any whole second for each message",
			"none within a topic: records are read in their order"},
		{"longest wait", "the queue's time to live",
			"the longest tier",
			"12 hours after a receive; the queue keeps a message 14 days at most",
			"the topic's retention; the consumer must go on polling, each 5 minutes by default (max.poll.interval.ms)"},
		{"order", "lost for what is retried",
			"lost for what is retried",
			"none in a standard queue; by message group in a FIFO queue",
			"kept in place, lost by a retry topic"},
		{"a crash while it runs", "redelivered, nothing is counted as a death",
			"redelivered, the header stays as it was",
			"visible again when the timeout is over, and counted",
			"read again from the last committed offset"},
		{"replay", "bank parked replay: to the queue that failed",
			"the same",
			"StartMessageMoveTask: back to the source queue",
			"read the dead-letter topic and produce again; the record stays there"},
	},
}

// limits is what each platform cannot express.
var limits = Table{
	Caption: "What cannot be expressed",
	Columns: columns("platform", "what"),
	Rows: [][]string{
		{"RabbitMQ, lap", "A delay that depends on the attempt or the class: a rejection cannot choose where it goes. A delay for each message: a queue " +
			"expires only what is at its head."},
		{"RabbitMQ, tiers", "A delay between two tiers. Copy and acknowledgement in one: a crash between them leaves the message twice."},
		{"SQS", "An attempt that is not spent: a consumer that stops, or finds its database down, has used up a receive. Quarantine by the queue with a reason, or " +
			"at the first attempt of many. A wait of less than a second."},
		{"Kafka", "Acknowledging one record and not those before it: an offset is a position (share groups of newer versions acknowledge single records). " +
			"A wait or a count of attempts in the broker of a consumer group. Retrying without either stopping the partition or losing the order."},
	},
}
