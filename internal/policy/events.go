package policy

import "time"

// event is something that happens at a time.
type event struct {
	at      time.Time
	turn    int // among those of the same time: as they were planned
	happens func()
}

// events is a heap of what is to happen, the next first.
type events []event

func (e events) Len() int { return len(e) }

func (e events) Less(i, j int) bool {
	if e[i].at.Equal(e[j].at) {
		return e[i].turn < e[j].turn
	}
	return e[i].at.Before(e[j].at)
}

func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

func (e *events) Push(x any) { *e = append(*e, x.(event)) }

func (e *events) Pop() any {
	last := len(*e) - 1
	next := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return next
}
