package dashboard

import "slices"

// Every replica reports what all of them share (a table, a queue): such a gauge is shown as the max over the replicas, never as their sum.

// asked selects the requests of clients: Prometheus and the platform ask the other routes every few seconds.
const asked = `<service>, route!~"/metrics|/healthz|/readyz"`

// health is the first row: does it work, and how fast?
func health(others ...chart) section {
	return section{"Health and traffic", slices.Concat(answers, others)}
}

var answers = []chart{
	{
		kind: number, title: "Replicas that answer", unit: "percentunit", width: 6, least: 1, runbook: "service-down",
		tells:   "Share of the replicas of which Prometheus can read the metrics. Of one that is missing no other panel tells anything.",
		queries: []query{{`avg by (job) (up{<service>})`, "{{job}}"}},
	},
	{
		kind: table, title: "Alerts that ring", unit: "short", width: 18, runbook: "runbooks",
		tells:   "What Prometheus rings for now, by the rules in deploy/prometheus; empty is good. The overview there names each alert's section.",
		queries: []query{{`<alerts>`, ""}},
	},
	{
		kind: lines, title: "HTTP requests", unit: "reqps", width: 8, runbook: "service-down",
		tells: "Requests answered per second by route, without those for health and metrics. A drop to nothing is worth a look too.",
		queries: []query{
			{`sum by (job, method, route) (rate(http_request_duration_seconds_count{` + asked + `}[<time>]))`, "{{job}} {{method}} {{route}}"},
		},
	},
	{
		kind: lines, title: "HTTP errors", unit: "percentunit", width: 8, bounded: true, runbook: "service-down",
		tells: "Share of the requests that were answered with a status of 500 or above. A refusal (4xx) is none.",
		queries: []query{{`(sum by (job) (rate(http_request_duration_seconds_count{` + asked + `, status=~"5.."}[<time>]))
  or 0 * sum by (job) (rate(http_request_duration_seconds_count{` + asked + `}[<time>])))
/ sum by (job) (rate(http_request_duration_seconds_count{` + asked + `}[<time>]))`, "{{job}}"}},
	},
	{
		kind: lines, title: "HTTP latency", unit: "s", width: 8, runbook: "service-down",
		tells: "How long answers take: half of them, and 99 of 100, are faster. If it rises with the requests that are running, look at the " +
			"database first.",
		queries: []query{
			{`histogram_quantile(0.5, sum by (job, le) (rate(http_request_duration_seconds_bucket{` + asked + `}[<time>])))`, "{{job}} p50"},
			{`histogram_quantile(0.99, sum by (job, le) (rate(http_request_duration_seconds_bucket{` + asked + `}[<time>])))`, "{{job}} p99"},
		},
	},
	{
		kind: lines, title: "HTTP requests running", unit: "short", width: 8, runbook: "breaker-open",
		tells:   "Requests that are being answered now, with the one for this number. Those that pile up wait for the database, most often.",
		queries: []query{{`sum by (job) (http_requests_running{<service>})`, "{{job}}"}},
	},
}

// transfers is what customers see of the saga's beginning.
var transfers = chart{
	kind: lines, title: "Transfers by answer", unit: "reqps", width: 16, runbook: "outbox-old",
	tells: "Transfers asked for per second, by status: 2xx were accepted and will end by themselves, 4xx were refused at once, 5xx were not taken. " +
		"What became of them is under Saga and ledger.",
	queries: []query{
		{`sum by (status) (rate(http_request_duration_seconds_count{<service>, route="/transfers", method="POST"}[<time>]))`, "{{status}}"},
	},
}

var ledger = section{"Saga and ledger", []chart{
	{
		kind: number, title: "Transfers overdue", unit: "short", width: 5, alarm: 1, runbook: "transfer-overdue",
		tells:   "Transfers that are still open after SAGA_TIMEOUT, counted up to 10000; 0 where no timeout is set. Money may be in transit.",
		queries: []query{{`max(transfers_overdue{<service>})`, "overdue"}},
	},
	{
		kind: number, title: "Conservation of money", unit: "short", width: 5, alarm: 1, runbook: "conservation-broken",
		tells:   "By how many minor units the sum over customers, transit and funding is off, whatever its sign. Anything but 0 is an error.",
		queries: []query{{`max by (currency) (abs(ledger_imbalance_minor{<service>}))`, "{{currency}}"}},
	},
	{
		kind: number, title: "Ledger last checked", unit: "s", width: 5, alarm: 600, runbook: "conservation-unchecked",
		tells: "For how long no replica of account has summed up the ledger; decades mean not since they started. Above ten minutes the number " +
			"beside it proves nothing.",
		queries: []query{{`time() - max(ledger_checked_timestamp_seconds{<service>})`, "ago"}},
	},
	{
		kind: lines, title: "Overdue over time", unit: "short", width: 9, alarm: 1, runbook: "transfer-overdue",
		tells:   "The sweeper turns overdue transfers back and account answers at once, so a peak is over within a minute.",
		queries: []query{{`max(transfers_overdue{<service>})`, "overdue"}},
	},
	{
		kind: lines, title: "Steps of the saga", unit: "cps", width: 24, runbook: "transfer-overdue",
		tells: "What account did for transfers, each step counted once: asked to debit, to credit, to refund. What is between the first two lines was " +
			"refused a debit, what is refunded was turned back, and the other credits are transfers that completed.",
		queries: []query{
			{`sum by (consumer) (rate(inbox_messages_total{<service>, consumer=~"account[.].+-requested", result="done"}[<time>]))`, "{{consumer}}"},
		},
	},
}}

var process = section{"Process", []chart{
	{
		kind: lines, title: "Memory", unit: "bytes", width: 6, runbook: "service-down",
		tells:   "Resident memory of each replica. In the composition a service is killed above 80 MiB; it then restarts, which is harmless.",
		queries: []query{{`process_resident_memory_bytes{<service>}`, "{{job}} {{instance}}"}},
	},
	{
		kind: lines, title: "CPU", unit: "percentunit", width: 6, runbook: "failure-rate-high",
		tells:   "Share of one core that each replica uses; above 100% it is more than one.",
		queries: []query{{`rate(process_cpu_seconds_total{<service>}[<time>])`, "{{job}} {{instance}}"}},
	},
	{
		kind: lines, title: "Goroutines", unit: "short", width: 6, runbook: "service-down",
		tells:   "A number that only ever grows is a leak: restart the replica, which is safe at any time, and look for what never ends.",
		queries: []query{{`go_goroutines{<service>}`, "{{job}} {{instance}}"}},
	},
	{
		kind: lines, title: "Starts and open files", unit: "short", width: 6, runbook: "service-down",
		tells: "Restarts of each replica within ten minutes, and its open files, which include the connections to database and broker.",
		queries: []query{
			{`changes(process_start_time_seconds{<service>}[10m])`, "{{job}} {{instance}} restarts"},
			{`process_open_fds{<service>}`, "{{job}} {{instance}} files"},
		},
	},
}}
