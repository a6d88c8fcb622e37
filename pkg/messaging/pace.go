package messaging

import "time"

// adapt moves the rate: down when the dependency asked for less, up again little by little.
func (d *dampers) adapt(now time.Time, limited, well bool) {
	was := d.rate.Rate()
	if limited {
		d.rate.PushBack(now)
	} else if well {
		d.rate.Calm(now)
	}
	switch rate := d.rate.Rate(); {
	case rate < was && !d.slowed:
		d.slowed = true
		d.log.Warn("dependency asks for less, the rate is lowered", "per_second", rate, "error", d.cause)
	case rate >= d.limit && d.slowed:
		d.slowed = false
		d.log.Info("the rate is back at its limit", "per_second", rate)
	}
}

// hindered says whether fewer messages are started than the settings allow: the budget was used up and has not recovered, or the
// rate is below its limit.
func (d *dampers) hindered() bool {
	if d.budget == nil && d.rate == nil {
		return false
	}
	d.m.Lock()
	defer d.m.Unlock()
	return d.broke || d.slowed
}

// spend takes retries out of the budget.
func (d *dampers) spend(now time.Time, retries int) {
	if d.budget == nil || retries == 0 {
		return
	}
	d.m.Lock()
	defer d.m.Unlock()
	d.budget.Spend(now, retries)
}

// recovered is how many tokens a budget that was used up must have before the pause is said to be over: it goes on with the
// first, but that may be gone the next moment.
const recovered = 10

// admit says how many of n messages may start, and when to ask again if that is none. What it admits counts as started.
func (d *dampers) admit(now time.Time, n int) (admitted int, again time.Time) {
	if d.budget == nil && d.rate == nil {
		return n, time.Time{}
	}
	d.m.Lock()
	defer d.m.Unlock()
	if d.budget != nil {
		tokens := d.budget.Tokens(now)
		if tokens < 1 {
			if !d.broke {
				d.broke = true
				d.log.Warn("retry budget is used up, the consumer slows down until messages succeed", "next", d.budget.NextAt(now))
			}
			return 0, d.budget.NextAt(now)
		}
		if d.broke && tokens >= recovered {
			d.broke = false
			d.log.Info("retry budget has recovered")
		}
		n = min(n, int(tokens))
	}
	if d.rate != nil {
		if n = d.rate.Take(now, n); n == 0 {
			return 0, d.rate.NextAt(now)
		}
	}
	return n, time.Time{}
}
