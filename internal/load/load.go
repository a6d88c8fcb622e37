// Package load asks for transfers at a fixed rate and measures how long they take, as clients see it.
//
// The load is open: every transfer has its time, whether earlier ones have been answered or not, and its latency counts from that
// time. A generator that waits for answers sends less while the system is slow, and so leaves out of its figures exactly the
// waiting that its users would have had (coordinated omission).
package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
)

// Config says what is sent, and where.
type Config struct {
	URL      string        // of the transfer service
	Accounts []string      // ids of two or more accounts among which money moves
	Currency string        // of all of them
	Rate     float64       // transfers per second
	Duration time.Duration // for how long
	Hot      float64       // share of the transfers that pay into the first account; the others are spread evenly
	Amount   int64         // at most, in minor units; default 100
	Drain    time.Duration // how long the last transfers may take to end; default 30 s
	Timeout  time.Duration // for an answer; default 15 s
	Running  int           // requests under way at once at most; default 2,000. A later one waits, and its waiting counts
	Ended    <-chan Ended  // tells which transfers have ended, see Watch and Follow; nil: only the answers are measured
	Progress func(Report)  // called every second, when not nil
}

func (c Config) validate() error {
	switch {
	case len(c.Accounts) < 2:
		return errors.New("load: two accounts are needed at least")
	case !(c.Rate > 0) || c.Rate > 1e6 || c.Duration <= 0:
		return errors.New("load: a rate above 0 and up to 1,000,000 per second, and a duration above 0, are needed")
	case c.transfers() == 0:
		return fmt.Errorf("load: %g per second for %s is not one transfer", c.Rate, c.Duration)
	case c.Hot < 0 || c.Hot > 1:
		return errors.New("load: the hot account's share must be from 0 to 1")
	}
	return nil
}

// transfers is how many the load has. 0.29 a second for 100 s are 29, though their product as a float is a little less.
func (c Config) transfers() int { return int(c.Rate*c.Duration.Seconds() + 1e-9) }

// Run sends the load and waits until every accepted transfer has ended, for Drain at most. When ctx ends it stops sending and reports what
// it has seen so far.
func Run(ctx context.Context, c Config) (Report, error) {
	if err := c.validate(); err != nil {
		return Report{}, err
	}
	if c.Drain <= 0 {
		c.Drain = 30 * time.Second
	}
	if c.Running <= 0 {
		c.Running = 2000
	}
	g := newGenerator(c)
	defer g.client.CloseIdleConnections()
	return g.run(ctx), nil
}

// Burst sends n transfers as fast as that many clients get answers, each over a connection of its own, and returns when the last has been
// answered. It measures how much a system can take, and nothing about latencies: they depend on the number of clients. Of the
// configuration it uses URL (plain HTTP), Accounts, Currency, Hot, Amount and Timeout.
func Burst(ctx context.Context, c Config, n, clients int) (Report, error) {
	c.Rate, c.Duration, c.Running, c.Ended = 1, time.Second, clients, nil
	if err := c.validate(); err != nil {
		return Report{}, err
	}
	g := newGenerator(c)
	wanted, err := newWire(c.URL, g.Timeout)
	if err != nil {
		return Report{}, err
	}
	began := time.Now()
	var left atomic.Int64
	left.Store(int64(n))
	var running sync.WaitGroup
	for range clients {
		w := *wanted
		running.Go(func() {
			defer w.close()
			for ctx.Err() == nil && left.Add(-1) >= 0 {
				g.books.sent()
				g.ask(time.Now(), w.post)
			}
		})
	}
	running.Wait()
	r := g.books.report()
	r.Sending = time.Since(began)
	return r, nil
}

func newGenerator(c Config) *generator {
	transport := &http.Transport{MaxIdleConns: c.Running, MaxIdleConnsPerHost: c.Running}
	if c.Amount <= 0 {
		c.Amount = 100
	}
	if c.Timeout <= 0 {
		c.Timeout = 15 * time.Second
	}
	return &generator{
		Config: c, client: &http.Client{Transport: transport, Timeout: c.Timeout},
		books: newBooks(c.Ended != nil), slots: make(chan struct{}, c.Running),
	}
}

type generator struct {
	Config
	client *http.Client
	books  *books
	slots  chan struct{}
}

func (g *generator) run(ctx context.Context) Report {
	over := make(chan struct{})
	asking, enough := context.WithCancel(ctx) // for ends that were missed: neither an interruption nor the end waits for those answers
	defer enough()
	var side sync.WaitGroup
	side.Go(func() { g.listen(over) })
	side.Go(func() { g.report(over) })
	side.Go(func() { g.catchUp(asking) })

	began := time.Now()
	var requests sync.WaitGroup
	for i := range g.transfers() {
		due := began.Add(time.Duration(float64(i) / g.Rate * float64(time.Second)))
		if !sleepUntil(ctx, due) {
			break
		}
		select {
		case g.slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		g.books.sent()
		requests.Go(func() {
			defer func() { <-g.slots }()
			g.ask(due, g.post)
		})
	}
	sending := time.Since(began)
	requests.Wait()
	if g.Ended != nil {
		drain, cancel := context.WithTimeout(ctx, g.Drain)
		g.books.wait(drain)
		cancel()
		g.askOpen(asking)
	}
	close(over)
	enough()
	side.Wait()
	r := g.books.report()
	r.Sending = sending
	return r
}

// sleepUntil waits for a time, and says whether it came before ctx ended. A time that has passed does not wait.
func sleepUntil(ctx context.Context, due time.Time) bool {
	pause := time.Until(due)
	if pause <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// listen notes which transfers have ended.
func (g *generator) listen(over <-chan struct{}) {
	ended := g.Ended
	for {
		select {
		case e, open := <-ended:
			if !open {
				ended = nil
				g.books.blind()
				continue
			}
			if e.Signal != 0 {
				g.books.signal(e)
				continue
			}
			g.books.ended(e)
		case <-over:
			return
		}
	}
}

// catchUp asks for the transfers whose end may have been missed while no news came, until ctx ends.
func (g *generator) catchUp(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		g.askFor(ctx, g.books.unheard(2000))
	}
}

// lastQuestions is for how long transfers are asked for of which no news came until the end.
const lastQuestions = 10 * time.Second

// askOpen asks once more for all that is open when the time to end is over. News can be lost with the connection standing: who deletes the
// exchange deletes the binding of our queue, and nobody is told.
func (g *generator) askOpen(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastQuestions)
	defer cancel()
	g.askFor(ctx, g.books.open())
}

// askFor asks how these transfers ended, until ctx ends.
func (g *generator) askFor(ctx context.Context, ids []string) {
	var asking sync.WaitGroup
	slots := make(chan struct{}, 8) // beside the load, not a load of its own
	for _, id := range ids {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil { // also where a slot was free as well
			break
		}
		asking.Go(func() {
			defer func() { <-slots }()
			if status := g.status(ctx, id); slices.Contains([]string{"COMPLETED", "REJECTED", "REFUNDED"}, status) {
				g.books.found(id, status)
			}
		})
	}
	asking.Wait()
}

// status asks for the status of a transfer; "" when there is no answer, which the next time may bring.
func (g *generator) status(ctx context.Context, id string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.endpoint()+"/"+id, nil)
	if err != nil {
		return ""
	}
	response, err := g.client.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	var transfer struct {
		Status string `json:"status"`
	}
	if response.StatusCode != http.StatusOK || json.UnmarshalRead(response.Body, &transfer) != nil {
		return ""
	}
	return transfer.Status
}

func (g *generator) report(over <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if g.Progress != nil {
				g.Progress(g.books.report())
			}
		case <-over:
			return
		}
	}
}

// ask makes one request. It has no idempotency key and is not repeated: what fails is counted.
func (g *generator) ask(due time.Time, post func(body []byte) (answer, error)) {
	from, to := g.pair()
	body := fmt.Appendf(nil, `{"sourceAccountId":%q,"destinationAccountId":%q,"amountMinor":%d,"currency":%q}`,
		from, to, 1+rand.Int64N(g.Amount), g.Currency)
	a, err := post(body)
	switch {
	case err != nil:
		g.books.failed(err)
	case a.status != http.StatusAccepted:
		g.books.failed(fmt.Errorf("the transfer service answered %d %s: %.500s", a.status, http.StatusText(a.status), a.body))
	default:
		var accepted struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(a.body, &accepted); err != nil || accepted.ID == "" {
			g.books.failed(fmt.Errorf("the transfer service answered 202 without an id: %.500s", a.body))
			return
		}
		g.books.accepted(accepted.ID, due, time.Now())
	}
}

func (g *generator) endpoint() string { return strings.TrimSuffix(g.URL, "/") + "/transfers" }

// answer is what came back for a request.
type answer struct {
	status int
	body   []byte
}

// post sends a request over any of the client's connections.
func (g *generator) post(body []byte) (a answer, err error) {
	response, err := g.client.Post(g.endpoint(), "application/json", bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	a.status = response.StatusCode
	a.body, err = io.ReadAll(response.Body)
	return a, err
}

func (g *generator) pair() (from, to string) {
	n := len(g.Accounts)
	i := rand.IntN(n)
	if g.Hot > 0 {
		i = 1 + rand.IntN(n-1) // the hot account only receives: it must not run out of money
		if rand.Float64() < g.Hot {
			return g.Accounts[i], g.Accounts[0]
		}
		if n == 2 {
			return g.Accounts[1], g.Accounts[0]
		}
		j := 1 + rand.IntN(n-2)
		if j >= i {
			j++
		}
		return g.Accounts[i], g.Accounts[j]
	}
	j := rand.IntN(n - 1)
	if j >= i {
		j++
	}
	return g.Accounts[i], g.Accounts[j]
}
