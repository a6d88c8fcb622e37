package exercises

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/banking/pkg/contract"
)

// workQueue is the queue whose consumer is asked how its service retries; the others of a service are set alike.
var workQueue = map[string]string{"account": contract.TransferRequestedQueue, "transfer": contract.AccountEventsQueue}

// settle has each service run as the exercise assumes. Both are looked at before one of them is touched.
func (r *run) settle(ctx context.Context) error {
	needed := map[*service]map[string]string{}
	for _, s := range []*service{r.account, r.transfer} {
		settings, err := r.otherwise(ctx, s)
		if err != nil {
			return err
		}
		if slices.Contains(r.exercise.Needs, Faults) {
			open, err := r.faultsOpen(ctx, s)
			if err != nil {
				return err
			}
			if !open {
				settings["FAULTS"] = "on"
			}
		}
		needed[s] = settings
	}
	for _, s := range []*service{r.account, r.transfer} {
		if err := r.change(ctx, s, needed[s]); err != nil {
			return err
		}
	}
	return nil
}

// otherwise says which settings a service would need that it does not run with.
func (r *run) otherwise(ctx context.Context, s *service) (settings map[string]string, err error) {
	settings = map[string]string{}
	for _, a := range r.exercise.Assumes {
		if a.Service != s.name {
			continue
		}
		var now map[string]string
		if err := r.await(ctx, r.patience(), func(ctx context.Context) (_ bool, err error) { // it may just be starting
			now, err = s.settings(ctx)
			return err == nil, err
		}); err != nil {
			return nil, fmt.Errorf("how %s retries: %w", s.name, err)
		}
		for name, value := range a.Settings {
			if now[name] != value {
				settings[name] = value
			}
		}
		if a.Waits {
			if err := r.shortWaits(ctx, s, now, cmp.Or(a.Settings["MAX_ATTEMPTS"], now["MAX_ATTEMPTS"])); err != nil {
				return nil, err
			}
		}
	}
	return settings, nil
}

// shortWaits demands that the waits between so many attempts are short enough to sit through. They cannot be changed for an exercise: a
// queue keeps the time to live that it was made with, and with account's they are what is shown.
func (r *run) shortWaits(ctx context.Context, s *service, now map[string]string, attempts string) error {
	waits, setting := now["RETRY_INTERVALS"], "RETRY_INTERVALS=1s,5s,25s"
	if s == r.transfer {
		lap, err := r.broker.lapTime(ctx)
		if err != nil {
			return err
		}
		waits, setting = lap.String(), "RETRY_DELAY=5s in a new folder, because the retry queue keeps the time to live that it was made with"
	}
	if all := sat(waits, attempts); all > r.patience() {
		return fmt.Errorf("%w: %s waits %s between attempts, %s in all, and this exercise sits through them. Start the bank with shorter ones (usual is %s), or give the exercise more --patience",
			ErrNeeds, s.name, waits, all, setting)
	}
	return nil
}

// sat is how long all waits take together: the last one repeats until the attempts are used up.
func sat(waits, attempts string) (all time.Duration) {
	var n int
	if _, err := fmt.Sscan(attempts, &n); err != nil {
		return 0 // the service would not have started with it
	}
	each := strings.Split(waits, ",")
	for i := range n - 1 {
		wait, err := time.ParseDuration(each[min(i, len(each)-1)])
		if err != nil {
			return 0
		}
		all += wait
	}
	return all
}

// change starts a service anew under other settings, for as long as the exercise takes.
func (r *run) change(ctx context.Context, s *service, settings map[string]string) error {
	if len(settings) == 0 {
		return nil
	}
	var written []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		written = append(written, name+"="+settings[name])
	}
	text := strings.Join(written, " ")
	if r.control == nil {
		return fmt.Errorf(`%w: %s runs otherwise than this exercise needs it. Start it with %s, or the bank with "make up", where the exercise does so itself`, ErrNeeds, s.name, text)
	}
	r.do("%s is started anew with %s, for as long as this takes.", s.name, text)
	return r.restart(ctx, s.name, settings)
}

// settings are those that a service tells of by its metrics, as they are written in the environment.
func (s *service) settings(ctx context.Context) (map[string]string, error) {
	queue := fmt.Sprintf("queue=%q", workQueue[s.name])
	of, err := s.series(ctx, "messaging_retry_policy_info", queue)
	if err != nil {
		return nil, err
	}
	if len(of) != 1 {
		return nil, fmt.Errorf("%s does not tell: its metrics have %d messaging_retry_policy_info for %s", s.name, len(of), workQueue[s.name])
	}
	breaker, err := s.series(ctx, "messaging_breaker_state", queue)
	if err != nil {
		return nil, err
	}
	settings := map[string]string{
		"RETRY_PROFILE": label(of[0], "road"), "MAX_ATTEMPTS": label(of[0], "attempts"), "RETRY_INTERVALS": label(of[0], "waits"),
		"RETRY_CLASSIFY": label(of[0], "classify"), "BREAKER": "off",
	}
	if len(breaker) > 0 {
		settings["BREAKER"] = "on"
	}
	return settings, nil
}

// label reads the value of one of a series' labels; ours have no quotes in them.
func label(labels, name string) string {
	_, rest, _ := strings.Cut(","+labels, ","+name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// alone demands that one process of each service runs: what the exercises count they ask of one.
func (r *run) alone(ctx context.Context) error {
	for _, s := range []*service{r.account, r.transfer} {
		var readers int
		err := r.await(ctx, 5*time.Second, func(context.Context) (_ bool, err error) { // one that has just ended may still be counted
			_, readers, err = r.broker.depth(workQueue[s.name])
			return readers <= 1, err
		})
		if readers > 1 {
			return fmt.Errorf("%w: %d processes read %s, and the exercises count what one of them tells. Let one process of %s run, and stop the others",
				ErrNeeds, readers, workQueue[s.name], s.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
