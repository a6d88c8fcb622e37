package reference

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/contract/topology"
	"example.com/banking/pkg/messaging"
	"example.com/banking/services/transfer/lifecycle"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
)

// TestAsyncAPI keeps docs/reference/asyncapi.yaml equal to the language: types and keys from pkg/contract, queues and bindings from its
// topology, and which members a message has from messages that the real machines have said. Not parallel: with -update it writes.
func TestAsyncAPI(t *testing.T) {
	path := filepath.Join(root, "docs", "reference", "asyncapi.yaml")
	want := asyncAPI(t)
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the contract says; run go generate ./test/reference", path)
	}
}

// object is a mapping in the order in which it is written: a name, its value, the next name.
func object(pairs ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, p := range pairs {
		n.Content = append(n.Content, node(p))
	}
	return n
}

func node(value any) *yaml.Node {
	if n, ok := value.(*yaml.Node); ok {
		return n
	}
	n := &yaml.Node{}
	if err := n.Encode(value); err != nil {
		panic(err) // texts, numbers, truths and lists of them
	}
	return n
}

func reference(to string) *yaml.Node { return object("$ref", "#/"+to) }

func list(items []*yaml.Node) *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode, Content: items} }

// name is a type as a key of the document: "AccountsAccountDebited".
func name(messageType string) string { return strings.ReplaceAll(messageType, ".", "") }

const asyncDescription = `What account and transfer say to each other over RabbitMQ, and what anybody may listen to.

Every message is published to one topic exchange under a key that follows from its type, at least once and in no order. The body is the
authority: a consumer dispatches on its "type", since a retry changes exchange and key. A messageId seen before is the same message again.

Unknown members are ignored, so a member may be added. A member given twice, or in another letter case, is not accepted. What becomes
of a message that cannot be handled is in failure-policy.md.
`

func asyncAPI(t *testing.T) []byte {
	t.Helper()
	said := map[string][]spoken{}
	for _, s := range stories(t) {
		said[s.Type] = append(said[s.Type], s)
	}
	channels, operations, messages := object(), object(), object()
	add := func(to *yaml.Node, key string, value *yaml.Node) { to.Content = append(to.Content, node(key), value) }
	exchange := object("name", contract.EventsExchange, "type", "topic", "durable", true, "autoDelete", false, "vhost", "/")
	for _, messageType := range contract.MessageTypes() {
		if len(said[messageType]) == 0 {
			t.Fatalf("no story says %s", messageType)
		}
		key := name(messageType)
		add(messages, key, messageOf(t, messageType, said[messageType]))
		add(channels, key, object(
			"address", contract.RoutingKey(messageType),
			"messages", object(key, reference("components/messages/"+key)),
			"bindings", object("amqp", object("is", "routingKey", "exchange", exchange, "bindingVersion", "0.3.0"))))
		add(operations, "say"+key, object(
			"action", "send",
			"summary", speaker(messageType)+" says it.",
			"channel", reference("channels/"+key),
			"messages", list([]*yaml.Node{reference("channels/" + key + "/messages/" + key)}),
			"bindings", object("amqp", object("deliveryMode", 2, "mandatory", contract.MustHaveReader(messageType), "bindingVersion", "0.3.0"))))
	}
	for _, service := range []struct {
		name     string
		declares messaging.Topology
	}{{"account", topology.Account(messaging.Quorum)}, {"transfer", topology.Transfer(messaging.Quorum, 5*time.Second)}} {
		for _, b := range service.declares.Bindings {
			if b.Exchange != contract.EventsExchange {
				continue
			}
			channel, references := object(), []*yaml.Node{}
			for _, messageType := range contract.MessageTypes() {
				if matches(b.Key, contract.RoutingKey(messageType)) {
					add(channel, name(messageType), reference("components/messages/"+name(messageType)))
					references = append(references, reference("channels/"+b.Queue+"/messages/"+name(messageType)))
				}
			}
			add(channels, b.Queue, object(
				"address", b.Queue,
				"description", "Bound to "+contract.EventsExchange+" with "+b.Key+".",
				"messages", channel,
				"bindings", object("amqp", object("is", "queue",
					"queue", object("name", b.Queue, "durable", true, "exclusive", false, "autoDelete", false, "vhost", "/"), "bindingVersion", "0.3.0"))))
			add(operations, "hear."+b.Queue, object(
				"action", "receive",
				"summary", service.name+" takes these messages, acks each after the commit, and answers with others.",
				"channel", reference("channels/"+b.Queue),
				"messages", list(references)))
		}
	}
	schemas := object("Envelope", envelopeSchema())
	for _, member := range slices.Sorted(maps.Keys(memberSchemas())) {
		add(schemas, member, memberSchemas()[member])
	}
	document := object(
		"asyncapi", "3.0.0",
		"info", object("title", "Banking saga", "version", "1", "description", asyncDescription),
		"defaultContentType", "application/json",
		"servers", object("local", object("host", "127.0.0.1:5672", "protocol", "amqp", "description", "AMQP 0-9-1; \"bank up\" chooses a free port and says which.")),
		"channels", channels,
		"operations", operations,
		"components", object("messages", messages, "schemas", schemas))
	text, err := yaml.Dump(document, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("# Written by \"go generate ./test/reference\". Change pkg/contract, not this file.\n"), text...)
}

func speaker(messageType string) string {
	if _, ok := lifecycle.FactOf(messageType); ok {
		return "account"
	}
	return "transfer"
}

// matches says whether a topic's pattern takes a key.
func matches(pattern, key string) bool {
	p, k := strings.Split(pattern, "."), strings.Split(key, ".")
	if len(p) != len(k) {
		return false
	}
	for i := range p {
		if p[i] != "*" && p[i] != k[i] {
			return false
		}
	}
	return true
}

// messageOf describes a message by those that were said: a member that each of them has is required.
func messageOf(t *testing.T, messageType string, said []spoken) *yaml.Node {
	t.Helper()
	count := map[string]int{}
	for _, s := range said {
		var data map[string]jsontext.Value
		if err := json.Unmarshal(s.envelope.Data, &data); err != nil {
			t.Fatal(err)
		}
		for member := range data {
			count[member]++
		}
	}
	properties, required := object(), []string{}
	for _, member := range slices.Sorted(maps.Keys(count)) {
		if memberSchemas()[member] == nil {
			t.Fatalf("%s: nobody says what %s may be", messageType, member)
		}
		properties.Content = append(properties.Content, node(member), reference("components/schemas/"+member))
		if count[member] == len(said) {
			required = append(required, member)
		}
	}
	var example yaml.Node
	if err := yaml.Unmarshal(said[0].body, &example); err != nil {
		t.Fatal(err)
	}
	reader := "Somebody must hear it: without a queue that takes it, it stays in the outbox."
	if !contract.MustHaveReader(messageType) {
		reader = "News for whoever listens; nobody has to."
	}
	return object(
		"name", messageType,
		"title", messageType[strings.LastIndex(messageType, ".")+1:],
		"summary", reader,
		"contentType", "application/json",
		"correlationId", object("description", "The transfer.", "location", "$message.payload#/correlationId"),
		"headers", object("type", "object", "properties", object(
			"traceparent", object("type", "string", "description", "W3C trace context of the work that said it."))),
		"payload", object("allOf", list([]*yaml.Node{
			reference("components/schemas/Envelope"),
			object("type", "object", "properties", object(
				"type", object("const", messageType),
				"data", object("type", "object", "required", required, "properties", properties))),
		})),
		"bindings", object("amqp", object("messageType", messageType, "bindingVersion", "0.3.0")),
		"examples", list([]*yaml.Node{object("payload", plain(example.Content[0]))}))
}

// plain takes the JSON style of an example off.
func plain(n *yaml.Node) *yaml.Node {
	n.Style = 0
	for _, inner := range n.Content {
		plain(inner)
	}
	return n
}

func memberSchemas() map[string]*yaml.Node {
	id := func(what string) *yaml.Node { return object("type", "string", "format", "uuid", "description", what) }
	statuses := []string{}
	for _, s := range lifecycle.Statuses() {
		if s.Terminal() {
			statuses = append(statuses, string(s))
		}
	}
	return map[string]*yaml.Node{
		"transferId":           id("The transfer that it is about."),
		"accountId":            id("The account that it is about."),
		"sourceAccountId":      id("The account that pays."),
		"destinationAccountId": id("Another account, which receives."),
		"amountMinor": object("type", "integer", "format", "int64", "minimum", 1, "maximum", int64(9223372036854775807),
			"description", "In minor units, written with digits only. Not to be read as a float."),
		"currency": object("type", "string", "pattern", "^[A-Z]{3}$"),
		"reason": object("type", "string", "maxLength", 200, "description", "Why money was refused or turned back: a business answer, no error.",
			"examples", []string{contract.InsufficientFunds, contract.AccountNotFound, contract.AccountFrozen, contract.AccountClosed,
				contract.CurrencyMismatch, contract.Cancelled, contract.TimedOut, contract.LimitExceeded, contract.Unspecified}),
		"status": object("type", "string", "enum", statuses),
	}
}

func envelopeSchema() *yaml.Node {
	text := func(what string) *yaml.Node { return object("type", "string", "description", what) }
	return object(
		"type", "object",
		"required", []string{"messageId", "type", "data"},
		"properties", object(
			"messageId", object("type", "string", "minLength", 1, "maxLength", messaging.MaxMessageID,
				"description", "Unique for each message. Ours are UUIDs that follow from transfer and type, so that news that is told again has the same."),
			"type", text("What it is, in Pascal case; the routing key follows from it."),
			"occurredAt", object("type", "string", "format", "date-time", "description", "UTC."),
			"correlationId", text("The transfer's id."),
			"causationId", text("messageId of what it answers; not there in the first message."),
			"data", object("type", "object")))
}

// The envelope's schema is written by hand; its members are those that are encoded.
func TestAsyncAPIEnvelopeIsComplete(t *testing.T) {
	t.Parallel()
	var have []string
	properties := envelopeSchema().Content[5]
	for i := 0; i < len(properties.Content); i += 2 {
		have = append(have, properties.Content[i].Value)
	}
	all := stories(t)
	body := jsontext.Value(all[1].body) // the first has no cause
	var members map[string]jsontext.Value
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatal(err)
	}
	same(t, "members of an envelope", have, slices.Collect(maps.Keys(members)))
	if len(all) < len(contract.MessageTypes()) {
		t.Error("only " + strconv.Itoa(len(all)) + " messages were said")
	}
}
