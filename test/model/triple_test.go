package model

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// TestEveryMessageThreeTimesInEveryOrder delivers three copies of every message of a transfer in every order that there is: a
// message exists from the moment it is said. However they come, the end is the same: status, facts, leg, balances, entries,
// and what was said. With an inbox each message is said exactly once; without, account answers every copy, under the same id.
func TestEveryMessageThreeTimesInEveryOrder(t *testing.T) {
	t.Parallel()
	for _, inbox := range []bool{true, false} {
		for _, s := range outcomes {
			t.Run(fmt.Sprintf("%s, inbox %t", s.name, inbox), func(t *testing.T) {
				t.Parallel()
				ends := map[string]bool{}
				start := s.world(network{copies: 3, inbox: inbox}, realJudge, realMemory)
				states := everyOrder(t, start, func(w *world) { ends[end(w)] = true })
				t.Logf("%d states", states)
				if len(ends) != 1 {
					t.Errorf("%d different ends: %q", len(ends), slices.Collect(maps.Keys(ends)))
				}
			})
		}
	}
}

// everyOrder visits every state of a world in which messages are only delivered, and calls rest at each end.
func everyOrder(t *testing.T, start *world, rest func(*world)) int {
	known := map[string]bool{start.tally(): true}
	for queue := []*world{start}; len(queue) > 0; queue = queue[1:] {
		w := queue[0]
		if w.atRest() {
			rest(w)
		}
		for _, a := range w.actions() {
			next := w.clone()
			if err := next.do(a); err != nil {
				t.Fatal(err)
			}
			if err := next.check(); err != nil {
				t.Fatal(err)
			}
			if key := next.tally(); !known[key] {
				known[key] = true
				queue = append(queue, next)
			}
		}
	}
	return len(known)
}

// tally is key with the number of times each message was said.
func (w *world) tally() string {
	said := make([]int, len(w.packets))
	for i, p := range w.packets {
		said[i] = p.said
	}
	return fmt.Sprint(string(w.key(nil)), said)
}

// end describes a world at rest for comparison. Messages that were said again count once for a reader without an inbox.
func end(w *world) string {
	outgoing := 0
	var messages []string
	for i, p := range w.packets {
		if p.said == 0 {
			continue
		}
		if w.inbox {
			outgoing += p.said
		} else {
			outgoing++
		}
		messages = append(messages, fmt.Sprintf("%s %+v", messageTypes[i], p.message.Data))
	}
	return fmt.Sprintf("%v %v %v %v %d outgoing: %q", w.transfers, w.legs, w.accounts, w.entries, outgoing, messages)
}
