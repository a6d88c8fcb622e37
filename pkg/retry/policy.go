package retry

import "time"

// Action is what to do with a message whose handling failed.
type Action int

const (
	// Retry the message after the decision's delay; an attempt has been spent.
	Retry Action = iota
	// Quarantine the message with the decision's reason: it leaves the queue for the parking lot or the error queue.
	Quarantine
	// LeaveAlone gives the message back without spending an attempt.
	LeaveAlone
)

func (a Action) String() string {
	switch a {
	case Retry:
		return "retry"
	case Quarantine:
		return "quarantine"
	}
	return "leave alone"
}

// Reasons for which a message is quarantined; the value of the header x-park-reason.
const (
	ReasonValidation    = "VALIDATION"
	ReasonInvariant     = "INVARIANT"
	ReasonNotFoundAged  = "NOT_FOUND_AGED"
	ReasonMaxAttempts   = "MAX_ATTEMPTS"
	ReasonMaxAge        = "MAX_AGE"
	ReasonCrashLoop     = "CRASH_LOOP"
	ReasonExpired       = "EXPIRED"
	ReasonOverflow      = "OVERFLOW"
	ReasonDeliveryLimit = "DELIVERY_LIMIT"
	ReasonRejected      = "REJECTED"
)

// Reasons lists them.
func Reasons() []string {
	return []string{ReasonValidation, ReasonInvariant, ReasonNotFoundAged, ReasonMaxAttempts, ReasonMaxAge, ReasonCrashLoop,
		ReasonExpired, ReasonOverflow, ReasonDeliveryLimit, ReasonRejected}
}

// Failure is what is known about one failed handling of a message.
type Failure struct {
	Class   Class
	Attempt int           // the execution that just failed, counted from 1
	Age     time.Duration // since the message came about; 0 when unknown
	After   time.Duration // the delay a dependency asked for (Retry-After); 0 when it did not
}

// Decision is what Policy.Decide answers.
type Decision struct {
	Action Action
	Delay  time.Duration // with Retry
	Reason string        // with Quarantine
}

// Policy is how one consumer retries. The zero value is not usable; the owner of a consumer states all of it.
type Policy struct {
	MaxAttempts    int             // executions in all, the first included
	Delays         []time.Duration // before retry 1, 2, …; the last one repeats
	Jitter         float64         // ± this share of each delay, 0 to 1
	MaxAge         time.Duration   // older messages are not retried; 0 is no limit
	NotFoundMaxAge time.Duration   // the same for NOT_FOUND
	Classify       bool            // false: every failure takes the default path, for comparison only
}

// Decide says what to do about a failure: the first rule of Rules that fits. rnd yields numbers in [0, 1) for the jitter;
// nil means no jitter.
func (p Policy) Decide(f Failure, rnd func() float64) Decision {
	for _, rule := range rules {
		if !rule.fits(p, f) {
			continue
		}
		d := Decision{Action: rule.Action, Reason: rule.Reason}
		if rule.Action == Retry {
			d.Delay = p.delay(rule.Tier, f)
			if rnd != nil && p.Jitter > 0 {
				d.Delay = Jitter(d.Delay, p.Jitter, rnd())
			}
		}
		return d
	}
	panic("retry: the last rule fits everything")
}

// delay looks up the pause after a failure.
func (p Policy) delay(tier Tier, f Failure) time.Duration {
	if len(p.Delays) == 0 {
		return 0
	}
	last := len(p.Delays) - 1
	n := min(max(f.Attempt, 1)-1, last)
	switch tier {
	case FirstTier:
		n = 0
	case NextTier:
		if f.After > 0 {
			return min(f.After, p.Delays[last])
		}
		n = min(n+1, last)
	}
	return p.Delays[n]
}
