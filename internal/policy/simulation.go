package policy

import (
	"container/heap"
	"math"
	"time"

	"example.com/banking/pkg/retry"
)

// simulation is one consumer and one dependency on a simulated clock: an event happens, the clock jumps to the next one.
//
// Real are the decision, the breaker, the budget and the rate limit; they are asked in the order in which a consumer asks them. A
// model are messages (they arrive by chance, so many a second), the queue (first in, first out), the workers (each makes one call at a
// time) and the dependency. Nobody's call is slower for load, no broker is away, and one consumer has the dependency to itself.
type simulation struct {
	policy  retry.Policy
	breaker *retry.Breaker   // nil: none
	budget  *retry.Budget    // nil: none
	limit   *retry.RateLimit // nil: none
	on      *dependency
	rnd     func() float64

	now     time.Time
	events  events
	turns   int // events that were planned
	ready   []*message
	busy    int
	waiting int
	wakeAt  time.Time // when the next look at the queue is due, beside those that events cause
	watched bool      // the dependency is being probed
	downAt  time.Time // when it was last found not to be there; zero: it was

	outcome
}

// workers is how many calls the consumer makes at a time.
const workers = 8

// message is one request. It ends once: done, or given up.
type message struct {
	arrived time.Time
	attempt int // executions that failed and were spent
	ended   bool
}

// outcome is what a simulation counts.
type outcome struct {
	arrived, done, parked int
	spent                 int // attempts of those that have ended
	calls, failed, probes int
	slowest               time.Duration // from the arrival of a message to its success
	perSecond             []load        // by second from the start
	crowded               time.Time     // when more than a second's messages were in the system last
}

// load is what the dependency bore in one second, probes included.
type load struct{ calls, failed int }

// arrive lets messages arrive by chance until end, rate a second on average.
func (s *simulation) arrive(rate int, end time.Time, rnd func() float64) {
	gap := -math.Log(1-rnd()) / float64(rate) // in seconds; below a microsecond machines differ
	next := s.now.Add(time.Duration(gap*1e6) * time.Microsecond)
	if !next.Before(end) {
		return
	}
	s.after(next, func() {
		s.arrived++
		s.ready = append(s.ready, &message{arrived: s.now})
		s.arrive(rate, end, rnd)
	})
}

// run lets everything happen until nothing is left to happen: every message has ended then. crowd is how many messages in the system are
// more than usual.
func (s *simulation) run(crowd int) outcome {
	for len(s.events) > 0 {
		next := heap.Pop(&s.events).(event)
		s.now = next.at
		next.happens()
		s.dispatch()
		if len(s.ready)+s.busy+s.waiting > crowd {
			s.crowded = s.now
		}
	}
	return s.outcome
}

// dispatch starts as many messages as may start.
func (s *simulation) dispatch() {
	for s.busy < workers && len(s.ready) > 0 {
		admitted, again := s.admit()
		if !admitted {
			s.wake(again)
			return
		}
		m := s.ready[0]
		s.ready = s.ready[1:]
		s.busy++
		took, class := s.on.call(s.now)
		s.count(class != "")
		s.after(s.now.Add(took), func() {
			s.busy--
			s.judge(m, class)
		})
	}
}

// admit asks the dampers, in a consumer's order, whether a message may start; if not, again is when to ask anew, zero when something
// else will happen before that.
func (s *simulation) admit() (admitted bool, again time.Time) {
	if s.breaker != nil {
		switch s.breaker.State(s.now) {
		case retry.Open:
			return false, s.breaker.RetryAt()
		case retry.HalfOpen:
			if s.busy > 0 {
				return false, time.Time{}
			}
		}
	}
	if s.budget != nil && s.budget.Tokens(s.now) < 1 {
		return false, s.budget.NextAt(s.now)
	}
	if s.limit != nil && s.limit.Take(s.now, 1) == 0 {
		return false, s.limit.NextAt(s.now)
	}
	return true, time.Time{}
}

// judge does what a consumer does with a message that has run.
func (s *simulation) judge(m *message, class retry.Class) {
	down := class == retry.Timeout && s.dependencyDown()
	if s.breaker != nil && !down {
		s.breaker.Record(s.now, class.CountsForBreaker())
		s.watch()
	}
	if s.limit != nil && class == retry.RateLimited {
		s.limit.PushBack(s.now)
	}
	if class == "" {
		if s.budget != nil {
			s.budget.Success(s.now, 1)
		}
		if s.limit != nil {
			s.limit.Calm(s.now)
		}
		s.end(m)
		s.done++
		s.slowest = max(s.slowest, s.now.Sub(m.arrived))
		return
	}
	if down {
		s.ready = append(s.ready, m) // given back: no attempt is spent
		return
	}
	m.attempt++
	decision := s.policy.Decide(retry.Failure{Class: class, Attempt: m.attempt, Age: s.now.Sub(m.arrived)}, s.rnd)
	if decision.Action == retry.Quarantine {
		s.end(m)
		s.parked++
		return
	}
	if s.budget != nil && class.CountsForBreaker() {
		s.budget.Spend(s.now, 1)
	}
	s.waiting++
	s.after(s.now.Add(decision.Delay), func() {
		s.waiting--
		s.ready = append(s.ready, m)
	})
}

func (s *simulation) end(m *message) {
	if m.ended {
		panic("policy: a message has ended twice")
	}
	m.ended = true
	s.spent += m.attempt
}

// dependencyDown asks the dependency itself, as a consumer does that has a breaker, and opens it when it is down.
func (s *simulation) dependencyDown() bool {
	if s.breaker == nil {
		return false
	}
	if s.downAt.IsZero() || s.now.Sub(s.downAt) >= probeEvery {
		s.probe()
	} else {
		s.breaker.Trip(s.now) // an answer is believed for a while
	}
	s.watch()
	return !s.downAt.IsZero()
}

func (s *simulation) probe() {
	s.probes++
	s.second().calls++
	up := s.on.up(s.now)
	s.downAt = time.Time{}
	if !up {
		s.downAt = s.now
		s.breaker.Trip(s.now)
	}
	s.breaker.Probed(s.now, up)
}

const probeEvery = time.Second

// watch probes the dependency as long as the breaker is open: it may be back before the pause is over.
func (s *simulation) watch() {
	if s.watched || s.breaker.State(s.now) != retry.Open {
		return
	}
	s.watched = true
	s.after(s.now.Add(retry.Jitter(probeEvery, 0.2, s.rnd())), func() {
		s.watched = false
		if s.breaker.State(s.now) == retry.Open {
			s.probe()
			s.watch()
		}
	})
}

// second is what the dependency bears in the present second.
func (s *simulation) second() *load {
	second := int(s.now.Sub(start) / time.Second)
	for len(s.perSecond) <= second {
		s.perSecond = append(s.perSecond, load{})
	}
	return &s.perSecond[second]
}

func (s *simulation) count(failed bool) {
	s.calls++
	s.second().calls++
	if failed {
		s.failed++
		s.second().failed++
	}
}

// wake looks at the queue again at a later time, which nothing else may do.
func (s *simulation) wake(at time.Time) {
	if at.IsZero() || s.wakeAt.After(s.now) && !at.Before(s.wakeAt) {
		return
	}
	s.wakeAt = at
	s.after(at, func() {})
}

func (s *simulation) after(at time.Time, happens func()) {
	s.turns++
	heap.Push(&s.events, event{at: at, turn: s.turns, happens: happens})
}
