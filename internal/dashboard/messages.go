package dashboard

// The road of a message: in by a consumer, out by the outbox, aside into a quarantine.

var messaging = section{"Messaging", []chart{
	{
		kind: lines, title: "Deliveries by outcome", unit: "cps", width: 12, runbook: "failure-rate-high",
		tells: "How deliveries end: done; retried, which come back; quarantined, which somebody has to decide about; given_back, which went back to " +
			"the queue without an attempt.",
		queries: []query{{`sum by (queue, outcome) (rate(messaging_deliveries_total{<queue>}[<time>]))`, "{{queue}} {{outcome}}"}},
	},
	{
		kind: lines, title: "Attempts that fail", unit: "percentunit", width: 12, bounded: true, alarm: 0.05, runbook: "failure-rate-high",
		tells: "Share of the attempts that fail; the alert rings when it is above 5% for five minutes. Nothing is lost, messages are late.",
		queries: []query{{`sum by (queue) (rate(messaging_failures_total{<queue>}[<time>]))
/ sum by (queue) (rate(messaging_deliveries_total{<queue>, outcome=~"done|retried|quarantined"}[<time>]))`, "{{queue}}"}},
	},
	{
		kind: lines, title: "Failures by class", unit: "cps", width: 12, runbook: "failure-rate-high",
		tells: "The classes that occur. The class says what is wrong, and what becomes of the message; what each points to is in the runbook. " +
			"UNKNOWN is one that nobody foresaw: " + runbooks + "#unknown-failure.",
		queries: []query{{`sum by (queue, class) (rate(messaging_failures_total{<queue>}[<time>])) > 0`, "{{queue}} {{class}}"}},
	},
	{
		kind: lines, title: "Handling", unit: "s", width: 12, runbook: "breaker-open",
		tells: "Duration of one call of a handler, which takes a whole batch in one transaction: half of the calls, and 99 of 100, are faster.",
		queries: []query{
			{`histogram_quantile(0.5, sum by (queue, le) (rate(messaging_handler_seconds_bucket{<queue>}[<time>])))`, "{{queue}} p50"},
			{`histogram_quantile(0.99, sum by (queue, le) (rate(messaging_handler_seconds_bucket{<queue>}[<time>])))`, "{{queue}} p99"},
		},
	},
	{
		kind: lines, title: "Waiting between attempts", unit: "short", width: 8, runbook: "failure-rate-high",
		tells: "Deliveries that consumers hold until their next attempt; they take up the prefetch. For those that wait at the broker: " +
			"bank queues.",
		queries: []query{{`sum by (queue) (messaging_waiting{<queue>})`, "{{queue}}"}},
	},
	{
		kind: states, title: "Breaker", unit: "short", width: 8, runbook: "breaker-open",
		tells: "While it is open the consumer takes no message; half-open lets a few try. Nothing is lost, and nothing moves. Empty where BREAKER " +
			"is off.",
		queries: []query{{`max by (queue, instance) (messaging_breaker_state{<queue>})`, "{{queue}} {{instance}}"}},
		states:  map[string]string{"0": "closed", "1": "half-open", "2": "open"},
	},
	{
		kind: states, title: "Paused", unit: "short", width: 8, runbook: "breaker-open",
		tells:   "No message is started: the breaker is open, or the retry budget is used up. The panels beside and below tell which.",
		queries: []query{{`max by (queue, instance) (messaging_paused{<queue>})`, "{{queue}} {{instance}}"}},
		states:  map[string]string{"0": "running", "1": "paused"},
	},
	{
		kind: lines, title: "Retry budget", unit: "short", width: 8, runbook: "failure-rate-high",
		tells: "Retries that each consumer may still make before it slows down. At 0 so much fails that retrying would only add to it. Empty where " +
			"RETRY_BUDGET is off.",
		queries: []query{{`min by (queue, instance) (messaging_retry_budget_tokens{<queue>})`, "{{queue}} {{instance}}"}},
	},
	{
		kind: lines, title: "Rate limit", unit: "cps", width: 8, runbook: "failure-rate-high",
		tells:   "Messages that may be started per second at present, all replicas together. Empty where CONSUMER_RATE_LIMIT sets none.",
		queries: []query{{`sum by (queue) (messaging_rate_limit_per_second{<queue>})`, "{{queue}}"}},
	},
	{
		kind: lines, title: "Suspects and nonsense", unit: "short", width: 8, runbook: "quarantine-not-empty",
		tells: "Within five minutes: messages that had been handed out before and so run alone, because they may have ended a process, and messages " +
			"whose headers about deaths or attempts make no sense.",
		queries: []query{
			{`sum by (queue) (increase(messaging_suspects_total{<queue>}[5m]))`, "{{queue}} suspects"},
			{`sum by (queue) (increase(messaging_nonsense_headers_total{<queue>}[5m]))`, "{{queue}} nonsense"},
		},
	},
	{
		kind: states, title: "Session with the broker", unit: "short", width: 8, runbook: "sessions-lost",
		tells:   "Whether each replica is connected.",
		queries: []query{{`max by (job, instance) (messaging_session_up{<service>})`, "{{job}} {{instance}}"}},
		states:  map[string]string{"0": "away", "1": "connected"},
	},
	{
		kind: lines, title: "Sessions lost", unit: "short", width: 8, alarm: 5, runbook: "sessions-lost",
		tells: "Reconnects of each replica within five minutes. One or two are a broker that restarts; more than five are a session that something " +
			"ends again and again.",
		queries: []query{{`max by (job, instance) (increase(messaging_sessions_total{<service>}[5m]))`, "{{job}} {{instance}}"}},
	},
	{
		kind: lines, title: "Publishings by outcome", unit: "cps", width: 8, runbook: "outbox-old",
		tells:   "What the broker said to each publishing. returned: no queue is bound; nacked: one is full; unknown: no answer, so it is sent again.",
		queries: []query{{`sum by (job, outcome) (rate(messaging_published_total{<service>}[<time>]))`, "{{job}} {{outcome}}"}},
	},
	{
		kind: lines, title: "Messages handled", unit: "cps", width: 12, runbook: "failure-rate-high",
		tells: "By what the inbox knew: done took effect; a duplicate had been handled before, so nothing was done again; failed left no trace and " +
			"goes back for another attempt.",
		queries: []query{{`sum by (consumer, result) (rate(inbox_messages_total{<service>}[<time>]))`, "{{consumer}} {{result}}"}},
	},
	{
		kind: lines, title: "Journal of failed attempts", unit: "cps", width: 12, runbook: "failure-rate-high",
		tells: "What became of the rows about failed attempts, which a transfer's life shows. dropped: the buffer was full, or the database refused " +
			"them; surplus: as many as are kept are there. No message and no money is missing by it.",
		queries: []query{{`sum by (job, result) (rate(journal_attempts_total{<service>}[<time>]))`, "{{job}} {{result}}"}},
	},
	{
		kind: table, title: "How each consumer retries", unit: "short", width: 24, runbook: "failure-rate-high",
		tells: "On which road a failed message waits, how often it is tried, after which waits, and whether its class counts. Replicas that differ " +
			"have two lines: a deployment under way, or a variable that one of them lacks.",
		queries: []query{{`count by (job, queue, road, attempts, waits, classify) (messaging_retry_policy_info{<queue>})`, ""}},
	},
}}

var outbox = section{"Outbox", []chart{
	{
		kind: lines, title: "Waiting in the outbox", unit: "short", width: 8, runbook: "outbox-old",
		tells:   "Messages that are decided and not yet confirmed by the broker, at the last sweep. It rises and falls with the traffic.",
		queries: []query{{`max by (job) (outbox_waiting_messages{<service>})`, "{{job}}"}},
	},
	{
		kind: lines, title: "Oldest in the outbox", unit: "s", width: 8, alarm: 30, runbook: "outbox-old",
		tells:   "For how long the oldest of them has waited. Above 30 s what a service decided does not reach the broker.",
		queries: []query{{`max by (job) (outbox_oldest_age_seconds{<service>})`, "{{job}}"}},
	},
	{
		kind: number, title: "Set aside", unit: "short", width: 8, alarm: 1, runbook: "outbox-set-aside",
		tells:   "Messages that the broker refuses for themselves, so that nobody tries them any more. Each belongs to something that does not move on.",
		queries: []query{{`max by (job) (outbox_set_aside_messages{<service>})`, "{{job}}"}},
	},
	{
		kind: lines, title: "Sent by outcome", unit: "cps", width: 8, runbook: "outbox-old",
		tells:   "Messages of the outbox that were tried, by outcome. Only acked means gone; the runbook says what each of the others points to.",
		queries: []query{{`sum by (job, outcome) (rate(outbox_published_total{<service>}[<time>]))`, "{{job}} {{outcome}}"}},
	},
	{
		kind: lines, title: "Sent straight after the commit", unit: "percentunit", width: 8, bounded: true, runbook: "outbox-old",
		tells: "Share of the acked messages that went from memory, without the relay. Near 100% is usual; at 0 every message takes the slower way.",
		queries: []query{{`sum by (job) (rate(outbox_direct_total{<service>}[<time>]))
/ sum by (job) (rate(outbox_published_total{<service>, outcome="acked"}[<time>]))`, "{{job}}"}},
	},
	{
		kind: lines, title: "Messages in one claim", unit: "short", width: 8, runbook: "outbox-old",
		tells: "How many messages the relay takes at a time, on average. Large claims mean that it catches up.",
		queries: []query{{`sum by (job) (rate(outbox_batch_messages_sum{<service>}[<time>]))
/ sum by (job) (rate(outbox_batch_messages_count{<service>}[<time>]))`, "{{job}}"}},
	},
}}

var quarantine = section{"Quarantine", []chart{
	{
		kind: lines, title: "Messages in quarantine", unit: "short", width: 6, alarm: 1, runbook: "quarantine-not-empty",
		tells: "Messages that were given up. Until somebody decides about one, what it belongs to does not move on by it. No line: nobody can " +
			"count the queue. Quarantines are queues of their own: choose them, or all, above.",
		queries: []query{{`max by (queue) (quarantine_messages{<queue>})`, "{{queue}}"}},
	},
	{
		kind: lines, title: "Oldest in quarantine", unit: "s", width: 6, alarm: 3600, runbook: "quarantine-old",
		tells:   "For how long the oldest message has been parked. Above an hour the warning was not heeded.",
		queries: []query{{`max by (queue) (quarantine_oldest_age_seconds{<queue>})`, "{{queue}}"}},
	},
	{
		kind: lines, title: "Last counted", unit: "s", width: 6, alarm: 120, runbook: "quarantine-uncounted",
		tells: "For how long no replica has counted the queue; each does every 15 s. Above two minutes the panels beside it cannot be trusted; " +
			"decades mean not since they started.",
		queries: []query{{`time() - max by (queue) (quarantine_counted_timestamp_seconds{<queue>})`, "{{queue}}"}},
	},
	{
		// Not their increase: a series begins with its first message, at 1, and what begins has not increased.
		kind: lines, title: "Given up, by reason", unit: "short", width: 6, runbook: "quarantine-not-empty",
		tells: "Messages put into quarantine since the replicas started, by the queue that they came from and x-park-reason. What to do about each " +
			"reason is in the runbook.",
		queries: []query{{`sum by (queue, reason) (messaging_quarantined_total{<queue>})`, "{{queue}} {{reason}}"}},
	},
}}
