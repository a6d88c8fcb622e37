package control

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/retry"
	"github.com/google/uuid"
)

func TestFaultFromOrderToEnd(t *testing.T) {
	t.Parallel()
	r := start(t, newDatabase(t), true)
	if got := r.call("GET", "/admin/faults", "", http.StatusOK); got.text != `{"items":[]}` {
		t.Errorf("at first: %s", got.text)
	}
	armed := r.call("POST", "/admin/faults", `{"point":"Handler","action":"ERROR","class":"rate limited","messageId":"m1","count":2}`, http.StatusCreated)
	want := fmt.Sprintf(`{"id":%q,"point":"handler","action":"error","class":"RATE_LIMITED","messageId":"m1","remaining":2,"fired":0}`, armed.ID)
	if armed.text != want {
		t.Errorf("armed %s, want %s", armed.text, want)
	}
	if r.fails("m2") {
		t.Error("another message fails")
	}
	if err := r.Points().At(t.Context(), fault.Handler, "m1"); retry.ClassOf(err) != retry.RateLimited {
		t.Errorf("failed with %v", err)
	}
	lasting := r.call("POST", "/admin/faults", `{"point":"after_ack","action":"delay","delay":"1500us"}`, http.StatusCreated)
	if lasting.Delay != "1.5ms" || lasting.Remaining != nil {
		t.Errorf("armed %s", lasting.text)
	}
	for range 3 {
		if err := r.Points().At(t.Context(), fault.AfterAck, "m1"); err != nil {
			t.Error(err)
		}
	}
	if got := r.call("GET", "/admin/faults", "", http.StatusOK).Items; len(got) != 2 || *got[0].Remaining != 1 || got[0].Fired != 1 || got[1].Fired != 3 {
		t.Errorf("faults %+v", got)
	}
	if !r.fails("m1") || r.fails("m1") {
		t.Error("the fault does not end with its count")
	}
	if got := r.call("GET", "/admin/faults", "", http.StatusOK).Items; len(got) != 2 || *got[0].Remaining != 0 || got[0].Fired != 2 {
		t.Errorf("used up: %+v", got)
	}
	r.call("DELETE", "/admin/faults/"+armed.ID.String(), "", http.StatusNoContent)
	r.call("DELETE", "/admin/faults/"+armed.ID.String(), "", http.StatusNotFound)
	r.call("DELETE", "/admin/faults/x", "", http.StatusNotFound)
	r.call("DELETE", "/admin/faults", "", http.StatusNoContent)
	if got := r.call("GET", "/admin/faults", "", http.StatusOK).Items; len(got) != 0 {
		t.Errorf("after deleting: %+v", got)
	}
}

// An error whose class is not given is what any error without one is; other spellings of points mean the same.
func TestDefaultsAndOtherSpellings(t *testing.T) {
	t.Parallel()
	r := start(t, newDatabase(t), true)
	for body, want := range map[string]view{
		`{"point":"in-handler","action":"error"}`:                                        {Point: fault.Handler, Action: fault.Error, Class: retry.Unknown},
		`{"point":"AFTER PUBLISH BEFORE MARK","action":"exit"}`:                          {Point: fault.AfterPublish, Action: fault.Exit},
		`{"point":"before_commit","action":"Panic","messageId":null,"count":null}`:       {Point: fault.BeforeCommit, Action: fault.Panic},
		`{"point":"after-commit","action":"delay","delay":"5m"}`:                         {Point: fault.AfterCommit, Action: fault.Delay, Delay: "5m0s"},
		`{"point":"before-ack","action":"exit","messageId":"` + longest(200, "é") + `"}`: {Point: fault.BeforeAck, Action: fault.Exit, MessageID: longest(200, "é")},
	} {
		got := r.call("POST", "/admin/faults", body, http.StatusCreated).view
		got.ID = uuid.UUID{}
		if got != want {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
}

func longest(n int, of string) string { return strings.Repeat(of, n) }

func TestWhatIsWrongIsNamedWithWhatIsAllowed(t *testing.T) {
	t.Parallel()
	r := start(t, newDatabase(t), true)
	const points, actions = "handler, before-commit, after-commit, before-ack, after-ack or after-publish", "error, delay, panic or exit"
	for body, wants := range map[string]map[string]string{
		`{}`:                                  {"point": points, "action": actions},
		`{"point":"commit","action":"exit"}`:  {"point": points},
		`{"point":"handler","action":"kill"}`: {"action": actions},
		`{"point":"handler","action":7}`:      {"action": "a text"},
		`{"point":"handler","action":"error","class":"FATAL"}`:                        {"class": "VALIDATION, INVARIANT, NOT_FOUND, CONFLICT, TIMEOUT, RATE_LIMITED, UNKNOWN or CANCELLED"},
		`{"point":"handler","action":"exit","class":"TIMEOUT"}`:                       {"class": "action error only"},
		`{"point":"handler","action":"delay"}`:                                        {"delay": "up to 5m"},
		`{"point":"handler","action":"delay","delay":"soon"}`:                         {"delay": "such as 500ms"},
		`{"point":"handler","action":"delay","delay":"0s"}`:                           {"delay": "above 0"},
		`{"point":"handler","action":"delay","delay":"-1s"}`:                          {"delay": "above 0"},
		`{"point":"handler","action":"delay","delay":"5m1ns"}`:                        {"delay": "up to 5m"},
		`{"point":"handler","action":"delay","delay":2}`:                              {"delay": "a text"},
		`{"point":"handler","action":"error","delay":"1s"}`:                           {"delay": "action delay only"},
		`{"point":"handler","action":"exit","count":0}`:                               {"count": "from 1 to"},
		`{"point":"handler","action":"exit","count":-3}`:                              {"count": "from 1 to"},
		`{"point":"handler","action":"exit","count":1000001}`:                         {"count": "from 1 to"},
		`{"point":"handler","action":"exit","count":1.5}`:                             {"count": "integer"},
		`{"point":"handler","action":"exit","count":"2"}`:                             {"count": "integer"},
		`{"point":"handler","action":"exit","messageId":""}`:                          {"messageId": "1 to 200 characters"},
		`{"point":"handler","action":"exit","messageId":"\u0000"}`:                    {"messageId": "1 to 200 characters"},
		`{"point":"handler","action":"exit","messageId":"` + longest(201, "é") + `"}`: {"messageId": "1 to 200 characters"},
		`{"point":"handler","action":"exit","messageID":"m1","times":1}`:              {"messageID": "is not known", "times": "point, action, class, delay, messageId and count"},
		`{"point":"x","action":"delay","count":0,"messageId":""}`:                     {"point": points, "delay": "above 0", "count": "from 1 to", "messageId": "1 to 200"},
	} {
		got := map[string]string{}
		for _, e := range r.call("POST", "/admin/faults", body, http.StatusBadRequest).Errors {
			got[e.Field] = e.Message
		}
		for field, message := range wants {
			if !strings.Contains(got[field], message) {
				t.Errorf("%s: %s %q, want …%s…", body, field, got[field], message)
			}
		}
		if len(got) != len(wants) {
			t.Errorf("%s: %v", body, got)
		}
	}
	for _, body := range []string{"", "[]", "{", `{"point":"handler","point":"handler"}`} {
		r.call("POST", "/admin/faults", body, http.StatusBadRequest)
	}
	if got := r.call("GET", "/admin/faults", "", http.StatusOK).Items; len(got) != 0 {
		t.Errorf("something was armed: %+v", got)
	}
}

func TestOffAnswersNotFoundAndNeverArms(t *testing.T) {
	t.Parallel()
	database := newDatabase(t)
	on := start(t, database, true)
	id := on.call("POST", "/admin/faults", `{"point":"handler","action":"error"}`, http.StatusCreated).ID.String()
	off := start(t, database, false)
	if off.Points() != nil || off.fails("m1") {
		t.Error("a fault that is left in the table fires")
	}
	for _, c := range [][2]string{{"GET", "/admin/faults"}, {"POST", "/admin/faults"}, {"DELETE", "/admin/faults"}, {"DELETE", "/admin/faults/" + id}} {
		if got := off.call(c[0], c[1], "", http.StatusNotFound); !strings.Contains(got.Detail, "FAULTS=on") {
			t.Errorf("%s: %s", c, got.text)
		}
		off.anonymous(c[0], c[1])
		on.anonymous(c[0], c[1])
	}
}

// Two replicas share one count, also when one of them is stopped and comes back in between.
func TestCountedFaultOverTwoReplicas(t *testing.T) {
	t.Parallel()
	const count = 50
	database := newDatabase(t)
	first, second := start(t, database, true), start(t, database, true)
	first.call("POST", "/admin/faults", fmt.Sprintf(`{"point":"handler","action":"error","count":%d}`, count), http.StatusCreated)
	eventually(t, "the other replica knows", func() bool { return second.fails("m1") })
	var fired atomic.Int64
	var running sync.WaitGroup
	hammer := func(r *replica, n int) {
		running.Go(func() {
			for range n {
				if r.fails("m1") {
					fired.Add(1)
				}
			}
		})
	}
	hammer(first, 10)
	hammer(second, 10)
	running.Wait()
	second.stop()
	again := start(t, database, true)
	for range 3 {
		hammer(first, count)
		hammer(again, count)
	}
	running.Wait()
	if got := fired.Load() + 1; got != count {
		t.Errorf("fired %d times, want %d", got, count)
	}
	if got := again.call("GET", "/admin/faults", "", http.StatusOK).Items[0]; got.Fired != count || *got.Remaining != 0 {
		t.Errorf("counted %+v", got)
	}
}

func TestDeletingEndsALastingFault(t *testing.T) {
	t.Parallel()
	database := newDatabase(t)
	first, second := start(t, database, true), start(t, database, true)
	id := first.call("POST", "/admin/faults", `{"point":"handler","action":"error"}`, http.StatusCreated).ID.String()
	if !first.fails("m1") {
		t.Error("it is not armed with the answer")
	}
	eventually(t, "the other replica knows", func() bool { return second.fails("m1") })
	deleted := time.Now()
	first.call("DELETE", "/admin/faults/"+id, "", http.StatusNoContent)
	if first.fails("m1") {
		t.Error("it fires after it was deleted")
	}
	eventually(t, "the other replica stops", func() bool { return !second.fails("m1") })
	t.Logf("the other replica stopped after %s", time.Since(deleted))
}

// A client that is told of a failure arms once more.
func TestStoredIsArmedThoughTheRefreshFails(t *testing.T) {
	t.Parallel()
	database := newDatabase(t)
	r := start(t, database, true)
	r.call("POST", "/admin/faults", `{"point":"handler","action":"error","messageId":"m1"}`, http.StatusCreated)
	pool := connect(t, database)
	if _, err := pool.Exec(t.Context(), `create function refuse() returns trigger language plpgsql as 'begin raise exception ''not now''; end';
		create trigger refuse before update on faults for each row execute function refuse()`); err != nil {
		t.Fatal(err)
	}
	if !r.fails("m1") { // which is to be noted by the next refresh, and cannot be
		t.Fatal("it is not armed")
	}
	r.call("POST", "/admin/faults", `{"point":"handler","action":"error","messageId":"m2"}`, http.StatusCreated)
	var stored int
	if err := pool.QueryRow(t.Context(), `select count(*) from faults where message_id = 'm2'`).Scan(&stored); err != nil || stored != 1 {
		t.Errorf("%d are stored, %v", stored, err)
	}
	if r.fails("m2") {
		t.Error("the refresh was to fail")
	}
	if _, err := pool.Exec(t.Context(), `drop trigger refuse on faults`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is armed", func() bool { return r.fails("m2") })
}

// The poll is what other replicas rely on for their second.
func TestPollIsWithinTheSecondThatIsPromised(t *testing.T) {
	t.Parallel()
	if pollInterval > time.Second/2 {
		t.Errorf("polled every %s", pollInterval)
	}
}

// A restarted process knows its faults before it takes a message.
func TestFaultSurvivesTheProcess(t *testing.T) {
	t.Parallel()
	database := newDatabase(t)
	first := start(t, database, true)
	first.call("POST", "/admin/faults", `{"point":"handler","action":"error","class":"TIMEOUT","messageId":"m1"}`, http.StatusCreated)
	first.stop()
	if again := start(t, database, true); !again.fails("m1") || again.fails("m2") {
		t.Error("the fault did not survive")
	}
}

// With the database away at start nothing is loaded, so nothing starts; with it away later, what is armed stays armed.
func TestDatabaseAwayKeepsWhatIsArmed(t *testing.T) {
	t.Parallel()
	database := newDatabase(t)
	proxy := testenv.NewProxy(t, database)
	proxy.Refuse()
	var log lines
	migrated := make(chan struct{})
	close(migrated)
	c := New(Config{On: true, Pool: connect(t, proxy.URL(database)), Migrated: migrated, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if !strings.Contains(log.String(), "never set it in production") {
		t.Errorf("no warning: %s", log.String())
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Component().Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "the failure is said", func() bool { return strings.Contains(log.String(), "faults cannot be read") })
	select {
	case <-c.Loaded():
		t.Error("loaded without a database")
	default:
	}
	start(t, database, true).call("POST", "/admin/faults", `{"point":"handler","action":"error"}`, http.StatusCreated)
	proxy.Accept()
	select {
	case <-c.Loaded():
	case <-time.After(patience):
		t.Fatal("not loaded when the database is there")
	}
	said := strings.Count(log.String(), "faults cannot be read")
	proxy.Refuse()
	proxy.Cut()
	eventually(t, "the failure is said again", func() bool { return strings.Count(log.String(), "faults cannot be read") > said })
	if c.Points().At(t.Context(), fault.Handler, "m1") == nil {
		t.Error("what was armed does not fire with the database away")
	}
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Each answer that the document promises is given by a service with fault points or by one without.
func TestDocumentedAnswersAreGiven(t *testing.T) {
	t.Parallel()
	database := newDatabase(t)
	on, off := start(t, database, true), start(t, database, false)
	id := on.call("POST", "/admin/faults", `{"point":"handler","action":"error"}`, http.StatusCreated).ID.String()
	on.call("POST", "/admin/faults", `{}`, http.StatusBadRequest)
	on.call("GET", "/admin/faults", "", http.StatusOK)
	on.call("DELETE", "/admin/faults/"+id, "", http.StatusNoContent)
	on.call("DELETE", "/admin/faults", "", http.StatusNoContent)
	for _, c := range [][2]string{{"GET", "/admin/faults"}, {"POST", "/admin/faults"}, {"DELETE", "/admin/faults"}, {"DELETE", "/admin/faults/" + id}} {
		off.call(c[0], c[1], "", http.StatusNotFound)
		off.anonymous(c[0], c[1])
		off.rebound(c[0], c[1])
	}
	byOff := off.checker.Uncovered()
	for _, missing := range on.checker.Uncovered() {
		if slices.Contains(byOff, missing) {
			t.Errorf("no answer shows %s", missing)
		}
	}
}
