package topology_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/contract/topology"
	"example.com/banking/pkg/messaging"
	amqp "github.com/rabbitmq/amqp091-go"
)

// spell writes a topology down, one line for each thing.
func spell(t messaging.Topology) []string {
	var lines []string
	for _, e := range t.Exchanges {
		lines = append(lines, fmt.Sprintf("exchange %s %s%s", e.Name, e.Kind, arguments(e.Args)))
	}
	for _, q := range t.Queues {
		lines = append(lines, fmt.Sprintf("queue %s%s", q.Name, arguments(q.Args)))
	}
	for _, b := range t.Bindings {
		lines = append(lines, fmt.Sprintf("binding %s -> %s by %q%s", b.Exchange, b.Queue, b.Key, arguments(b.Args)))
	}
	slices.Sort(lines)
	return lines
}

func arguments(args amqp.Table) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(args)) {
		fmt.Fprintf(&b, " %s=%v", name, args[name])
	}
	return b.String()
}

const (
	quorum = " x-delivery-limit=2147483647"
	once   = " x-dead-letter-strategy=at-least-once" + quorum
)

func TestTransfer(t *testing.T) {
	t.Parallel()
	check(t, topology.Transfer(messaging.Quorum, 5*time.Second), []string{
		`binding banking.dlx -> banking.dead-letters by "#"`,
		`binding banking.events -> transfer.account-events by "accounts.account.*"`,
		`binding transfer.retry -> banking.dead-letters by "" x-last-death-reason=delivery_limit x-match=all-with-x`,
		`binding transfer.retry -> banking.dead-letters by "" x-last-death-reason=expired x-match=all-with-x`,
		`binding transfer.retry -> banking.dead-letters by "" x-last-death-reason=maxlen x-match=all-with-x`,
		`binding transfer.retry -> transfer.account-events.retry by "" x-first-death-reason=rejected x-match=all-with-x`,
		`exchange banking.dlx topic`,
		`exchange banking.events topic`,
		`exchange transfer.retry headers alternate-exchange=banking.dlx`,
		`queue banking.dead-letters` + quorum + ` x-queue-type=quorum`,
		`queue transfer.account-events x-dead-letter-exchange=transfer.retry` + once + ` x-overflow=reject-publish x-queue-type=quorum`,
		`queue transfer.account-events.retry x-dead-letter-exchange= x-dead-letter-routing-key=transfer.account-events` + once +
			` x-message-ttl=5000 x-overflow=reject-publish x-queue-type=quorum`,
	})
}

func TestAccount(t *testing.T) {
	t.Parallel()
	want := []string{
		`binding banking.dlx -> banking.dead-letters by "#"`,
		`exchange banking.dlx topic`,
		`exchange banking.events topic`,
		`queue banking.dead-letters` + quorum + ` x-queue-type=quorum`,
	}
	for _, name := range []string{"transfer-requested", "credit-requested", "refund-requested"} {
		key := "transfers.transfer." + strings.TrimPrefix(name, "transfer-")
		want = append(want,
			fmt.Sprintf(`binding banking.events -> account.%s by %q`, name, key),
			fmt.Sprintf(`queue account.%s x-dead-letter-exchange=banking.dlx`, name)+once+` x-overflow=reject-publish x-queue-type=quorum`,
			fmt.Sprintf(`queue account.%s_error`, name)+quorum+` x-queue-type=quorum`)
	}
	check(t, topology.Account(messaging.Quorum), want)
}

func TestClassicQueuesHaveWhatClassicQueuesCan(t *testing.T) {
	t.Parallel()
	check(t, topology.Transfer(messaging.Classic, time.Second), []string{
		`binding banking.dlx -> banking.dead-letters by "#"`,
		`binding banking.events -> transfer.account-events by "accounts.account.*"`,
		`binding transfer.retry -> banking.dead-letters by "" x-last-death-reason=delivery_limit x-match=all-with-x`,
		`binding transfer.retry -> banking.dead-letters by "" x-last-death-reason=expired x-match=all-with-x`,
		`binding transfer.retry -> banking.dead-letters by "" x-last-death-reason=maxlen x-match=all-with-x`,
		`binding transfer.retry -> transfer.account-events.retry by "" x-first-death-reason=rejected x-match=all-with-x`,
		`exchange banking.dlx topic`,
		`exchange banking.events topic`,
		`exchange transfer.retry headers alternate-exchange=banking.dlx`,
		`queue banking.dead-letters x-queue-type=classic`,
		`queue transfer.account-events x-dead-letter-exchange=transfer.retry x-queue-type=classic`,
		`queue transfer.account-events.retry x-dead-letter-exchange= x-dead-letter-routing-key=transfer.account-events x-message-ttl=1000 x-queue-type=classic`,
	})
}

func check(t *testing.T, got messaging.Topology, want []string) {
	t.Helper()
	slices.Sort(want)
	if lines := spell(got); !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestTransferTiered(t *testing.T) {
	t.Parallel()
	delays := []time.Duration{5 * time.Second, 6 * time.Second, time.Minute}
	want := spell(topology.Transfer(messaging.Quorum, 5*time.Second))
	for name, ttl := range map[string]int{"4s": 4000, "5s": 5000, "6s": 6000, "4.8s": 4800, "7.2s": 7200, "48s": 48000, "1m": 60000, "1m12s": 72000} {
		want = append(want, fmt.Sprintf(`queue transfer.account-events.retry.%s x-dead-letter-exchange= x-dead-letter-routing-key=transfer.account-events`, name)+once+
			fmt.Sprintf(` x-message-ttl=%d x-overflow=reject-publish x-queue-type=quorum`, ttl))
	}
	check(t, topology.TransferTiered(messaging.Quorum, 5*time.Second, delays, 0.2), want)
}

func TestRetryTiers(t *testing.T) {
	t.Parallel()
	tiers := func(jitter float64, delays ...time.Duration) string {
		var b strings.Builder
		for _, tier := range topology.RetryTiers(delays, jitter) {
			fmt.Fprintf(&b, "%v:", tier.Delay)
			for _, queue := range tier.Queues {
				b.WriteString(" " + strings.TrimPrefix(queue, contract.AccountEventsRetry))
			}
			b.WriteString("; ")
		}
		return b.String()
	}
	for want, got := range map[string]string{
		"5s: .4s .5s .6s; 30s: .24s .30s .36s; 5m0s: .4m .5m .6m; ": tiers(0.2, 5*time.Second, 30*time.Second, 5*time.Minute),
		"5s: .5s; 1h0m0s: .1h; ":                                    tiers(0, 5*time.Second, time.Hour),
		"1ms: .1ms; ":                                               tiers(0.2, time.Millisecond),
		"3ms: .1ms .3ms .5ms; ":                                     tiers(0.8, 3*time.Millisecond),
		"1h30m0s: .1h3m .1h30m .1h57m; ":                            tiers(0.3, 90*time.Minute),
		"333ms: .266ms .333ms .400ms; ":                             tiers(0.2, 333*time.Millisecond),
		"24h0m0s: .2h24m .24h .45h36m; ":                            tiers(0.9, 24*time.Hour),
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
