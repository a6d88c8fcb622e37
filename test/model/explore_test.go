package model

import (
	"errors"
	"fmt"
	"strings"

	"example.com/banking/pkg/contract"
	"example.com/banking/services/account/ledger"
	"example.com/banking/services/transfer/lifecycle"
)

// action is one thing that can happen next.
type action struct {
	what  verb
	index int // of the packet, the transfer or the account
}

type verb string

const (
	deliver  verb = "deliver"
	repeated verb = "deliver, without ack" // a crash between commit and ack, a late copy, a replay
	stray    verb = "made-up request"
	sweep    verb = "time out transfer"
	freeze   verb = "freeze account"
	unfreeze verb = "unfreeze account"
	shut     verb = "close account"
)

// actions are all things that can happen next.
func (w *world) actions() []action {
	var all []action
	for i, p := range w.packets {
		if p.waiting > 0 {
			all = append(all, action{deliver, i})
		}
		if w.repeat && p.said > 0 && i%len(messageTypes) < read {
			all = append(all, action{repeated, i})
		}
	}
	if w.stray {
		for i := range len(w.transfers) * requests {
			all = append(all, action{stray, i})
		}
	}
	for i, t := range w.transfers {
		if w.timeout && !w.statuses[i].Terminal() && !t.Facts.Has(lifecycle.TimedOut) {
			all = append(all, action{sweep, i})
		}
	}
	for i, a := range w.accounts {
		if !w.freeze || a.Status == ledger.Closed {
			continue
		}
		if a.Status == ledger.Open {
			all = append(all, action{freeze, i})
		} else {
			all = append(all, action{unfreeze, i})
		}
		if a.Balance == 0 {
			all = append(all, action{shut, i})
		}
	}
	return all
}

// do makes it happen, and fails when a machine refuses it or misbehaves on the way.
func (w *world) do(a action) error {
	switch a.what {
	case deliver:
		return w.deliver(a.index, true)
	case repeated:
		return w.deliver(a.index, false)
	case stray:
		return w.strayRequest(a.index/requests, a.index%requests)
	case sweep:
		return w.sweep(a.index)
	case freeze:
		return w.accounts[a.index].Freeze()
	case unfreeze:
		return w.accounts[a.index].Unfreeze()
	case shut:
		return w.accounts[a.index].Close()
	}
	return fmt.Errorf("%q is not an action", a.what)
}

// sweep times a transfer out, which has to make it ask for the money back, unless it has done so before.
func (w *world) sweep(transfer int) error {
	step, err := w.memory.TimeOut(&w.transfers[transfer])
	if err != nil {
		return err
	}
	if err := w.step(transfer, step); err != nil {
		return err
	}
	if w.packets[w.place(transfer, contract.TransferRefundRequested)].said == 0 {
		return errors.New("a transfer has timed out and has not asked for its money")
	}
	return nil
}

// check is what must hold in a world, whatever led there.
func (w *world) check() error {
	if err := w.safe(); err != nil {
		return err
	}
	if w.atRest() {
		return w.settled()
	}
	return nil
}

func (a action) String() string {
	if a.what == deliver || a.what == repeated {
		return fmt.Sprintf("%s: transfer %d, %s", a.what, a.index/len(messageTypes), messageTypes[a.index%len(messageTypes)])
	}
	if a.what == stray {
		return fmt.Sprintf("%s: transfer %d, %s", a.what, a.index/requests, messageTypes[a.index%requests])
	}
	return fmt.Sprintf("%s %d", a.what, a.index)
}

// violation is a broken property and the shortest way there.
type violation struct {
	err   error
	trace []action
}

func (v *violation) String() string {
	var b strings.Builder
	for i, a := range v.trace {
		fmt.Fprintf(&b, "%3d. %s\n", i+1, a)
	}
	return fmt.Sprintf("%v, after:\n%s", v.err, &b)
}

// node is a state that was reached.
type node struct {
	parent int
	action action
	atRest bool
	before []int // the states from which a plain delivery leads here
}

// explore goes through every run that starts in a world, breadth first. It returns the states it found, in which nothing
// was broken, or the first violation.
func explore(start *world) ([]node, *violation) {
	nodes := []node{{parent: -1, atRest: start.atRest()}}
	if err := start.check(); err != nil {
		return nodes, &violation{err: err}
	}
	worlds := []*world{start} // of the nodes not yet left; nil afterwards
	known := map[string]int{string(start.key(nil)): 0}
	var key []byte
	next := &world{}
	for here := 0; here < len(nodes); here++ {
		w := worlds[here]
		worlds[here] = nil
		for _, a := range w.actions() {
			next.become(w)
			if err := next.do(a); err != nil {
				return nodes, &violation{err, append(path(nodes, here), a)}
			}
			key = next.key(key[:0])
			there, seen := known[string(key)]
			if !seen {
				if err := next.check(); err != nil {
					return nodes, &violation{err, append(path(nodes, here), a)}
				}
				there = len(nodes)
				known[string(key)] = there
				nodes = append(nodes, node{parent: here, action: a, atRest: next.atRest()})
				worlds = append(worlds, next.clone())
			}
			if a.what == deliver && there != here {
				nodes[there].before = append(nodes[there].before, here)
			}
		}
	}
	if stuck := unsettled(nodes); stuck >= 0 {
		return nodes, &violation{fmt.Errorf("delivering what is waiting never comes to rest"), path(nodes, stuck)}
	}
	return nodes, nil
}

func path(nodes []node, to int) []action {
	if nodes[to].parent < 0 {
		return nil
	}
	return append(path(nodes, nodes[to].parent), nodes[to].action)
}

// unsettled finds a state from which plain deliveries do not lead to rest, -1 when there is none.
func unsettled(nodes []node) int {
	settles := make([]bool, len(nodes))
	var queue []int
	for i, n := range nodes {
		if n.atRest {
			settles[i] = true
			queue = append(queue, i)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, before := range nodes[queue[0]].before {
			if !settles[before] {
				settles[before] = true
				queue = append(queue, before)
			}
		}
	}
	for i, ok := range settles {
		if !ok {
			return i
		}
	}
	return -1
}
