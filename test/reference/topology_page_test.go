package reference

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/contract/topology"
	"example.com/banking/pkg/messaging"
	amqp "github.com/rabbitmq/amqp091-go"
)

const topologyIntroduction = `<!-- Written by "go generate ./test/reference". Change pkg/contract/topology, not this page. -->

# Topology

What the services declare at the broker, at the start of each session: with the default settings, and with ` + "`RETRY_PROFILE=tiered`" + ` at the end. Everything
is durable, every message persistent. What somebody has deleted comes back; what exists with other arguments ends the service with exit code 3 and the
argument that differs. What the roads through these queues are for is in [the failure policy](failure-policy.md#roads), why they are quorum queues in
[ADR 0026](../adr/0026-queue-type.md).

All queues have ` + "`x-queue-type: quorum`" + ` (` + "`QUEUE_TYPE`" + `) and ` + "`x-delivery-limit: 2147483647`" + `, which the table leaves out. *At least once* is
` + "`x-dead-letter-strategy: at-least-once`" + ` with ` + "`x-overflow: reject-publish`" + `.
`

// TestTopologyPage keeps docs/reference/topology.md equal to what is declared. Not parallel: with -update it writes.
func TestTopologyPage(t *testing.T) {
	path := filepath.Join(root, "docs", "reference", "topology.md")
	want := topologyPage()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what is declared; run go generate ./test/reference", path)
	}
}

// declaring is a service and what it declares.
type declaring struct {
	service string
	messaging.Topology
}

func topologyPage() string {
	const delay = 5 * time.Second
	tiers := []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute}
	lap := []declaring{{"account", topology.Account(messaging.Quorum)}, {"transfer", topology.Transfer(messaging.Quorum, delay)}}
	var b strings.Builder
	b.WriteString(topologyIntroduction)

	b.WriteString("\n## Exchanges\n\n| exchange | kind | declared by | arguments |\n| --- | --- | --- | --- |\n")
	for _, name := range names(lap, func(d declaring) (all []string) {
		for _, e := range d.Exchanges {
			all = append(all, e.Name)
		}
		return all
	}) {
		var by []string
		var exchange messaging.Exchange
		for _, d := range lap {
			if i := slices.IndexFunc(d.Exchanges, func(e messaging.Exchange) bool { return e.Name == name }); i >= 0 {
				exchange, by = d.Exchanges[i], append(by, d.service)
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, exchange.Kind, strings.Join(by, ", "), arguments(exchange.Args))
	}

	b.WriteString("\n## Queues\n\n| queue | declared by | bound to | dead letters go to | messages live |\n| --- | --- | --- | --- | --- |\n")
	for _, name := range queueNames(lap) {
		b.WriteString(queueRow(name, lap))
	}

	tiered := []declaring{{"transfer", topology.TransferTiered(messaging.Quorum, delay, tiers, 0.2)}}
	b.WriteString("\n## Queues of the tiered profile\n\nBeside those above, with the default `RETRY_TIERS` and `RETRY_JITTER`:\n\n")
	b.WriteString("| queue | declared by | bound to | dead letters go to | messages live |\n| --- | --- | --- | --- | --- |\n")
	for _, name := range queueNames(tiered) {
		if !slices.Contains(queueNames(lap), name) {
			b.WriteString(queueRow(name, tiered))
		}
	}
	return b.String()
}

// names are what all of them declare, each once, in the order of the first.
func names(all []declaring, of func(declaring) []string) (found []string) {
	for _, d := range all {
		for _, name := range of(d) {
			if !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	return found
}

func queueNames(all []declaring) []string {
	return names(all, func(d declaring) (all []string) {
		for _, q := range d.Queues {
			all = append(all, q.Name)
		}
		return all
	})
}

func queueRow(name string, all []declaring) string {
	var by, bound []string
	var queue messaging.Queue
	for _, d := range all {
		i := slices.IndexFunc(d.Queues, func(q messaging.Queue) bool { return q.Name == name })
		if i < 0 {
			continue
		}
		queue, by = d.Queues[i], append(by, d.service)
		for _, b := range d.Bindings {
			how := "`" + b.Exchange + "`, "
			if b.Key != "" {
				how += "key `" + b.Key + "`"
			} else {
				how += arguments(b.Args)
			}
			if b.Queue == name && !slices.Contains(bound, how) {
				bound = append(bound, how)
			}
		}
	}
	dead, lives := "", "until they are taken"
	if exchange, ok := queue.Args["x-dead-letter-exchange"].(string); ok {
		if dead = "`" + exchange + "`"; exchange == "" {
			dead = fmt.Sprintf("`%v`, by the default exchange", queue.Args["x-dead-letter-routing-key"])
		}
		if queue.Args["x-dead-letter-strategy"] == "at-least-once" {
			dead += ", at least once"
		}
	}
	if ttl, ok := queue.Args["x-message-ttl"].(int64); ok {
		lives = (time.Duration(ttl) * time.Millisecond).String()
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", name, strings.Join(by, ", "), strings.Join(bound, "<br>"), dead, lives)
}

func arguments(args amqp.Table) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(args)) {
		all = append(all, fmt.Sprintf("`%s: %v`", name, args[name]))
	}
	return strings.Join(all, ", ")
}
