package watch

import (
	"context"
	"fmt"
	"net/url"
	"sort"
	"strings"

	"example.com/banking/pkg/contract"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Queue is a queue as the pages show it. The counters are the broker's, so rates are for the page to make of them.
type Queue struct {
	Ready     int64  `json:"ready"`
	Unacked   int64  `json:"unacked"`
	Consumers int64  `json:"consumers"`
	Published int64  `json:"published"`
	Delivered int64  `json:"delivered"`
	Acked     int64  `json:"acked"`
	TTL       *int64 `json:"ttlMs,omitzero"`
	DeadTo    string `json:"deadLetterExchange,omitzero"`
	Type      string `json:"type"`
	State     string `json:"state"`
}

// listedQueue is a queue in the management API.
type listedQueue struct {
	Name      string                    `json:"name"`
	Ready     int64                     `json:"messages_ready"`
	Unacked   int64                     `json:"messages_unacknowledged"`
	Consumers int64                     `json:"consumers"`
	Type      string                    `json:"type"`
	State     string                    `json:"state"`
	Arguments map[string]jsontext.Value `json:"arguments"`
	Stats     struct {
		Publish    int64 `json:"publish"`
		DeliverGet int64 `json:"deliver_get"`
		Ack        int64 `json:"ack"`
	} `json:"message_stats"`
}

func (b *Bank) listQueues(ctx context.Context, columns string) ([]listedQueue, error) {
	var listed []listedQueue
	err := b.Management.JSON(ctx, "/api/queues/"+url.PathEscape(b.Vhost)+"?columns="+columns, nil, &listed)
	sort.Slice(listed, func(i, j int) bool { return listed[i].Name < listed[j].Name })
	return listed, err
}

const queueColumns = "name,messages_ready,messages_unacknowledged,consumers,type,state,arguments," +
	"message_stats.publish,message_stats.deliver_get,message_stats.ack"

// queues polls the broker's queues, each a part.
func (b *Bank) queues(ctx context.Context, _ bool) ([]Part, error) {
	listed, err := b.listQueues(ctx, queueColumns)
	if err != nil {
		return nil, err
	}
	parts := make([]Part, 0, len(listed))
	for _, q := range listed {
		shown := Queue{
			Ready: q.Ready, Unacked: q.Unacked, Consumers: q.Consumers, Type: q.Type, State: q.State,
			Published: q.Stats.Publish, Delivered: q.Stats.DeliverGet, Acked: q.Stats.Ack,
		}
		if raw, ok := q.Arguments["x-message-ttl"]; ok {
			var ttl int64
			if json.Unmarshal(raw, &ttl) == nil {
				shown.TTL = &ttl
			}
		}
		_ = json.Unmarshal(q.Arguments["x-dead-letter-exchange"], &shown.DeadTo)
		value, err := json.Marshal(shown)
		if err != nil {
			return nil, fmt.Errorf("queue %q: %w", q.Name, err)
		}
		parts = append(parts, Part{q.Name, value})
	}
	return parts, nil
}

// quarantine says whether messages that were given up wait in a queue: the parking lot, one that an added service has of its own, or an
// error queue.
func quarantine(queue string) bool {
	return strings.HasSuffix(queue, ".dead-letters") || strings.HasSuffix(queue, contract.ErrorQueue(""))
}

// quarantineFigures are the broker's figures of the quarantine queues. As long as they stay the same, so does what is in there.
func (b *Bank) quarantineFigures(ctx context.Context) (string, error) {
	listed, err := b.listQueues(ctx, "name,messages_ready,messages_unacknowledged,message_stats.publish,message_stats.ack")
	if err != nil {
		return "", err
	}
	var figures strings.Builder
	for _, q := range listed {
		if quarantine(q.Name) {
			fmt.Fprintln(&figures, q.Name, q.Ready+q.Unacked, q.Stats.Publish, q.Stats.Ack)
		}
	}
	return figures.String(), nil
}

// topology polls what is bound to what.
func (b *Bank) topology(ctx context.Context, _ bool) ([]Part, error) {
	vhost := url.PathEscape(b.Vhost)
	var exchanges []struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	if err := b.Management.JSON(ctx, "/api/exchanges/"+vhost+"?columns=name,type", nil, &exchanges); err != nil {
		return nil, err
	}
	var bindings []struct {
		Source      string `json:"source"`
		Destination string `json:"destination"`
		Kind        string `json:"destination_type"`
		Key         string `json:"routing_key"`
	}
	if err := b.Management.JSON(ctx, "/api/bindings/"+vhost+"?columns=source,destination,destination_type,routing_key", nil, &bindings); err != nil {
		return nil, err
	}
	var parts []Part
	for _, e := range exchanges {
		if e.Name == "" || strings.HasPrefix(e.Name, "amq.") { // the broker's own
			continue
		}
		value, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("exchange %q: %w", e.Name, err)
		}
		parts = append(parts, Part{"exchange/" + e.Name, value})
	}
	for _, bound := range bindings {
		if bound.Source == "" { // every queue is bound to the default exchange
			continue
		}
		value, err := json.Marshal(bound)
		if err != nil {
			return nil, fmt.Errorf("binding of %q: %w", bound.Source, err)
		}
		parts = append(parts, Part{"binding/" + bound.Source + "/" + bound.Destination + "/" + bound.Key, value})
	}
	return parts, nil
}
