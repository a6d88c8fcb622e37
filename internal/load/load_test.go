package load_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/banking/internal/load"
	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	amqp "github.com/rabbitmq/amqp091-go"
)

var accounts = []string{"a", "b", "c", "d"}

// order is what the service was asked for.
type order struct{ SourceAccountID, DestinationAccountID, Currency string }

// service accepts every transfer with an id of its own and calls then with it.
func service(t *testing.T, then func(w http.ResponseWriter, n int, o order)) string {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			t.Errorf("body: %v", err)
		}
		then(w, int(n.Add(1)), o)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func accept(w http.ResponseWriter, n int) {
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write([]byte(`{"id":"` + strconv.Itoa(n) + `"}`))
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	var samples []time.Duration
	for i := 1000; i > 0; i-- {
		samples = append(samples, time.Duration(i))
	}
	want := load.Latencies{P50: 500, P90: 900, P99: 990, P999: 999, Max: 1000}
	if got := load.Measure(samples); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := load.Measure([]time.Duration{7}); got != (load.Latencies{P50: 7, P90: 7, P99: 7, P999: 7, Max: 7}) {
		t.Errorf("of one: %+v", got)
	}
	if got := load.Measure(nil); got != (load.Latencies{}) {
		t.Errorf("of none: %+v", got)
	}
}

// A service that stands still for a while must show in the latencies of all transfers that were due meanwhile, not only in those of
// the few that a client would have had under way.
func TestStandstillCountsForAllThatWereDue(t *testing.T) {
	t.Parallel()
	const standstill = 500 * time.Millisecond
	began := time.Now()
	url := service(t, func(w http.ResponseWriter, n int, _ order) {
		<-time.After(time.Until(began.Add(standstill)))
		accept(w, n)
	})
	r, err := load.Run(t.Context(), load.Config{URL: url, Accounts: accounts, Currency: "EUR", Rate: 100, Duration: time.Second, Running: 4})
	if err != nil {
		t.Fatal(err)
	}
	if r.Sent != 100 || r.Accepted != 100 || r.Failed != 0 {
		t.Fatalf("%+v", r)
	}
	// About half of them were due during the standstill; half of those for more than half of its length.
	if r.Answer.P90 < standstill/2 {
		t.Errorf("nine of ten took %v at most: the waiting of those that were due is not counted", r.Answer.P90)
	}
}

func TestFailuresAreCounted(t *testing.T) {
	t.Parallel()
	url := service(t, func(w http.ResponseWriter, n int, _ order) {
		switch n % 3 {
		case 0:
			accept(w, n)
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			panic(http.ErrAbortHandler) // no answer
		}
	})
	r, err := load.Run(t.Context(), load.Config{URL: url, Accounts: accounts, Currency: "EUR", Rate: 300, Duration: 100 * time.Millisecond})
	if err != nil || r.Sent != 30 || r.Failed+r.Accepted != 30 || r.Accepted < 5 || r.Failed < 15 || r.Error == "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// The percentiles are of answers. Without a word about those that never came they would look best when the service is worst.
func TestAnswersThatTimeOutAreCounted(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	url := service(t, func(w http.ResponseWriter, n int, _ order) {
		switch n {
		case 1, 2, 3:
			<-over
		case 4:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			accept(w, n)
		}
	})
	t.Cleanup(func() { close(over) }) // before the server is closed
	r, err := load.Run(t.Context(), load.Config{URL: url, Accounts: accounts, Currency: "EUR", Rate: 100, Duration: 100 * time.Millisecond, Timeout: 2 * time.Second})
	if err != nil || r.Sent != 10 || r.Accepted != 6 || r.Failed != 4 || r.TimedOut != 3 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestLoadOfNothingIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []load.Config{{Rate: 0.5, Duration: time.Second}, {Rate: 1, Duration: 999 * time.Millisecond}, {Rate: 0.01, Duration: time.Minute}} {
		c.URL, c.Accounts, c.Currency = "http://127.0.0.1:1", accounts, "EUR"
		if r, err := load.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "is not one transfer") {
			t.Errorf("%g for %s: %+v, %v", c.Rate, c.Duration, r, err)
		}
	}
	url := service(t, func(w http.ResponseWriter, n int, _ order) { accept(w, n) })
	if r, err := load.Run(t.Context(), load.Config{URL: url, Accounts: accounts, Currency: "EUR", Rate: 290, Duration: 100 * time.Millisecond}); err != nil || r.Sent != 29 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	url := service(t, func(w http.ResponseWriter, n int, _ order) {
		if n == 5 {
			cancel()
		}
		accept(w, n)
	})
	r, err := load.Run(ctx, load.Config{URL: url, Accounts: accounts, Currency: "EUR", Rate: 100, Duration: time.Hour, Ended: make(chan load.Ended)})
	if err != nil || r.Sent < 5 || r.Accepted != r.Sent || r.Open != r.Accepted {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestBurstKeepsItsClientsBusy(t *testing.T) {
	t.Parallel()
	var m sync.Mutex
	running, most := 0, 0
	together := make(chan struct{})
	url := service(t, func(w http.ResponseWriter, n int, _ order) {
		m.Lock()
		running++
		if most = max(most, running); running == 8 && n == 8 {
			close(together)
		}
		m.Unlock()
		<-together // eight requests are under way at once, or nothing moves
		m.Lock()
		running--
		m.Unlock()
		accept(w, n)
	})
	r, err := load.Burst(t.Context(), load.Config{URL: url, Accounts: accounts, Currency: "EUR"}, 200, 8)
	if err != nil || r.Sent != 200 || r.Accepted != 200 || r.Failed != 0 || most != 8 {
		t.Errorf("%d at once at most, %+v, %v", most, r, err)
	}
}

// A broker that goes away takes the news along. That is not a transfer that has not ended.
func TestLostNewsIsSaid(t *testing.T) {
	t.Parallel()
	news := make(chan load.Ended)
	url := service(t, func(w http.ResponseWriter, n int, _ order) {
		if n == 3 {
			close(news)
		}
		accept(w, n)
	})
	r, err := load.Run(t.Context(), load.Config{URL: url, Accounts: accounts, Currency: "EUR", Rate: 100, Duration: 100 * time.Millisecond, Ended: news, Drain: time.Hour})
	if err != nil || !r.Blind || r.Open != 10 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestHotAccount(t *testing.T) {
	t.Parallel()
	var m sync.Mutex
	hot, same := 0, 0
	url := service(t, func(w http.ResponseWriter, n int, o order) {
		m.Lock()
		defer m.Unlock()
		if o.DestinationAccountID == accounts[0] {
			hot++
		}
		if o.SourceAccountID == o.DestinationAccountID || !slices.Contains(accounts, o.SourceAccountID) || o.Currency != "EUR" {
			same++
		}
		accept(w, n)
	})
	if _, err := load.Run(t.Context(), load.Config{URL: url, Accounts: accounts, Currency: "EUR", Rate: 2000, Duration: 500 * time.Millisecond, Hot: 0.8}); err != nil {
		t.Fatal(err)
	}
	if hot < 700 || hot > 900 || same > 0 { // 800 of 1,000, give or take eight standard deviations
		t.Errorf("%d of 1000 pay into the hot account, %d are wrong", hot, same)
	}
}

func TestWrongConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	good := load.Config{URL: "http://127.0.0.1:1", Accounts: accounts, Rate: 1, Duration: time.Second}
	for _, spoil := range []func(*load.Config){
		func(c *load.Config) { c.Accounts = c.Accounts[:1] },
		func(c *load.Config) { c.Rate = 0 },
		func(c *load.Config) { c.Rate = 2e6 },
		func(c *load.Config) { c.Duration = 0 },
		func(c *load.Config) { c.Hot = 1.1 },
	} {
		c := good
		spoil(&c)
		if _, err := load.Run(t.Context(), c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// The end of a transfer is heard over a real broker, also when the news is faster than the answer that tells the id.
func TestEndsAreHeard(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	conn, err := amqp.Dial(env.AMQPURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.ExchangeDeclare(contract.EventsExchange, "topic", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	ended, err := load.Watch(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	say := func(messageType, body string) {
		err := ch.PublishWithContext(t.Context(), contract.EventsExchange, contract.RoutingKey(messageType), false, false,
			amqp.Publishing{Type: messageType, Body: []byte(body)})
		if err != nil {
			t.Errorf("publish: %v", err)
		}
	}
	var m sync.Mutex // a channel is not for several goroutines
	url := service(t, func(w http.ResponseWriter, n int, _ order) {
		m.Lock()
		defer m.Unlock()
		body := `{"data":{"transferId":"` + strconv.Itoa(n) + `"}}`
		say(contract.AccountDebited, body)
		say(contract.TransferCompleted, `garbage`)
		messageType := contract.TransferCompleted
		if n%5 == 0 {
			messageType = contract.TransferRefunded
		}
		say(messageType, body)
		accept(w, n)
	})
	r, err := load.Run(t.Context(), load.Config{URL: url, Accounts: accounts, Currency: "EUR", Rate: 200, Duration: 100 * time.Millisecond, Ended: ended, Drain: time.Minute})
	if err != nil || r.Open != 0 || r.Ended["COMPLETED"] != 16 || r.Ended["REFUNDED"] != 4 || r.End.P50 <= 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A broker that is killed takes the news along. They come again over the next connection, and what ended meanwhile is asked for.
func TestNewsThatWereMissedAreAskedFor(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	conns := make(chan *amqp.Connection, 10)
	accepted := make(chan struct{}) // all of the load
	dials := 0
	dial := func(context.Context) (*amqp.Connection, error) {
		if dials++; dials > 1 { // the broker is away for the rest of the load
			select {
			case <-accepted:
			case <-t.Context().Done():
			}
		}
		conn, err := amqp.Dial(env.AMQPURL)
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
			conns <- conn
		}
		return conn, err
	}
	own, err := amqp.Dial(env.AMQPURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	ch, err := own.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.ExchangeDeclare(contract.EventsExchange, "topic", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	said := make(chan error, 10)
	ended, err := load.Follow(t.Context(), dial, func(err error) { said <- err })
	if err != nil {
		t.Fatal(err)
	}
	var m sync.Mutex
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.Lock()
		defer m.Unlock()
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(`{"status":"REFUNDED"}`))
			return
		}
		if n++; n == 5 {
			_ = (<-conns).Close() // and nobody tells of any transfer
		}
		accept(w, n)
		if n == 10 {
			close(accepted)
		}
	}))
	t.Cleanup(server.Close)
	r, err := load.Run(t.Context(), load.Config{URL: server.URL, Accounts: accounts, Currency: "EUR", Rate: 100, Duration: 100 * time.Millisecond, Ended: ended, Drain: time.Minute})
	if err != nil || r.Blind || r.Open != 0 || r.Ended["REFUNDED"] != 10 || r.Asked != 10 || r.End.Max != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if len(said) != 1 || len(conns) != 1 {
		t.Errorf("said were %d things, over %d more connections", len(said), len(conns))
	}
}

// News are lost without a word when somebody deletes the exchange, and with it the binding of the queue that hears them.
func TestEndsWithoutAnyNewsAreAskedForAtTheEnd(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			accept(w, int(n.Add(1)))
		case r.URL.Path == "/transfers/3":
			_, _ = w.Write([]byte(`{"status":"DEBITED"}`))
		default:
			_, _ = w.Write([]byte(`{"status":"COMPLETED"}`))
		}
	}))
	t.Cleanup(server.Close)
	r, err := load.Run(t.Context(), load.Config{URL: server.URL, Accounts: accounts, Currency: "EUR", Rate: 100, Duration: 100 * time.Millisecond,
		Ended: make(chan load.Ended), Drain: 10 * time.Millisecond})
	if err != nil || r.Blind || r.Open != 1 || r.Ended["COMPLETED"] != 9 || r.Asked != 9 || r.End.Max != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A service that does not answer must not keep the load: neither when it is interrupted, nor when there is nothing left to wait for.
func TestNobodyWaitsForAnswersAboutMissedNews(t *testing.T) {
	t.Parallel()
	const n = 20
	for name, enough := range map[string]func(ended chan<- load.Ended, interrupt func()){
		"interrupted": func(_ chan<- load.Ended, interrupt func()) { interrupt() },
		"all have ended": func(ended chan<- load.Ended, _ func()) {
			for id := range n {
				ended <- load.Ended{ID: strconv.Itoa(id + 1), Status: "COMPLETED", At: time.Now()}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			ended, over := make(chan load.Ended), make(chan struct{})
			var accepted, asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method != http.MethodGet:
					i := int(accepted.Add(1))
					accept(w, i)
					if i == n {
						go func() { // once the books have them: what was due before is asked for
							ended <- load.Ended{Signal: load.Lost, At: time.Now()}
							ended <- load.Ended{Signal: load.Back, At: time.Now()}
						}()
					}
					return
				case asked.Add(1) == 8: // as many as ask at once; the others wait for them
					go enough(ended, interrupt)
				}
				select {
				case <-r.Context().Done():
				case <-over:
				}
			}))
			t.Cleanup(server.Close)
			t.Cleanup(func() { close(over) })
			r, err := load.Run(ctx, load.Config{URL: server.URL, Accounts: accounts, Currency: "EUR", Rate: 1000, Duration: n * time.Millisecond,
				Ended: ended, Drain: time.Hour, Timeout: time.Hour})
			if err != nil || r.Accepted != n || r.Asked != 0 || asked.Load() != 8 {
				t.Errorf("%+v, %v; %d were asked for", r, err, asked.Load())
			}
		})
	}
}
