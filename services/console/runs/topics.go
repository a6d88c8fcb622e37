package runs

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"example.com/banking/services/console/watch"
)

// The topics that pages watch: "exercises" has the last run of each by number, "exercise:N" the last of one with its events.
const all = "exercises"

func topicOf(number int) string { return "exercise:" + strconv.Itoa(number) }

func (r *Runs) changed(number int) { r.cfg.Poke(all, topicOf(number)) }

// Find answers the source of a topic. It is asked when something has changed; the interval is for what was missed, which is nothing.
func (r *Runs) Find(topic string) (watch.Source, bool) {
	source := watch.Source{Upstream: "console", Interval: 10 * time.Second}
	if topic == all {
		source.Poll = func(context.Context, bool) ([]watch.Part, error) { return r.overview() }
		return source, true
	}
	text, isOne := strings.CutPrefix(topic, "exercise:")
	number, err := strconv.Atoi(text)
	if !isOne || err != nil || number < 1 || number > 99 || topicOf(number) != topic { // one spelling only
		return watch.Source{}, false
	}
	source.Poll = func(context.Context, bool) ([]watch.Part, error) { return r.one(number) }
	return source, true
}

func (r *Runs) overview() ([]watch.Part, error) {
	r.m.Lock()
	defer r.m.Unlock()
	var parts []watch.Part
	for _, number := range slices.Sorted(maps.Keys(r.last)) {
		content, err := json.Marshal(r.last[number].Run)
		if err != nil {
			return nil, err
		}
		parts = append(parts, watch.Part{Key: strconv.Itoa(number), Value: content})
	}
	return parts, nil
}

func (r *Runs) one(number int) ([]watch.Part, error) {
	r.m.Lock()
	defer r.m.Unlock()
	of := r.last[number]
	if of == nil {
		return nil, nil
	}
	content, err := json.Marshal(of.Run)
	if err != nil {
		return nil, err
	}
	parts := []watch.Part{{Key: "run", Value: content}}
	for i, e := range of.events {
		parts = append(parts, watch.Part{Key: strconv.Itoa(i), Value: e})
	}
	return parts, nil
}
