package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"example.com/banking/exercises"
	"example.com/banking/internal/control"

	pages "example.com/banking/docs/exercises"
)

// exerciseDoor lets whoever has the token run exercises in a bank that is up, as the console does: GET /exercises lists them,
// GET /exercises/{number} is one with its page, POST /exercises/{number}/run runs it and answers with its events, a line of JSON each.
// Who goes away ends the run; everything is put back all the same. POST /exercises/{number}/stop ends it as well, and lets the
// caller of run see how everything is put back.
//
// With ?look=5m a run waits so long before it puts things back, so that people can look around; POST /exercises/{number}/continue
// ends the wait.
type exerciseDoor struct {
	bank *exercises.Bank

	m       sync.Mutex
	running *doorRun // nil: none
}

// doorRun is a run that goes on, or that is putting things back.
type doorRun struct {
	number int
	stop   context.CancelFunc
	goOn   func() // ends the look around; harmless at any other time
}

func (d *exerciseDoor) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /exercises", d.list)
	mux.HandleFunc("GET /exercises/{number}", d.show)
	mux.HandleFunc("POST /exercises/{number}/run", d.run)
	mux.HandleFunc("POST /exercises/{number}/stop", func(w http.ResponseWriter, r *http.Request) {
		d.tell(w, r, func(run *doorRun) { run.stop() })
	})
	mux.HandleFunc("POST /exercises/{number}/continue", func(w http.ResponseWriter, r *http.Request) {
		d.tell(w, r, func(run *doorRun) { run.goOn() })
	})
}

func (d *exerciseDoor) list(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]any{"items": exerciseItems()})
}

func (d *exerciseDoor) show(w http.ResponseWriter, r *http.Request) {
	e, page, ok := exerciseOf(w, r)
	if !ok {
		return
	}
	sections := map[string]string{}
	for _, name := range pages.Sections() {
		sections[name] = page.Section(name)
	}
	writeJSON(w, map[string]any{"number": e.Number, "title": e.Title, "sections": sections, "text": page.Text})
}

// The longest that a caller may ask for.
const (
	longestOutage = 10 * time.Minute
	longestLook   = time.Hour
)

func (d *exerciseDoor) run(w http.ResponseWriter, r *http.Request) {
	e, _, ok := exerciseOf(w, r)
	if !ok {
		return
	}
	bank := *d.bank
	bank.WithoutFault = r.URL.Query().Get("fault") == "off"
	var look time.Duration
	for name, wanted := range map[string]struct {
		into *time.Duration
		most time.Duration
	}{"outage": {&bank.Outage, longestOutage}, "look": {&look, longestLook}} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		var err error
		if *wanted.into, err = time.ParseDuration(text); err != nil || *wanted.into <= 0 || *wanted.into > wanted.most {
			control.Refuse(w, http.StatusBadRequest, fmt.Sprintf("%s must be a duration up to %s", name, wanted.most))
			return
		}
	}
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	waiting := make(chan struct{})
	mine := &doorRun{number: e.Number, stop: stop, goOn: sync.OnceFunc(func() { close(waiting) })}
	if other := d.begin(mine); other != nil {
		control.Refuse(w, http.StatusConflict, fmt.Sprintf("exercise %d is running, or is putting things back: one at a time, two faults at once would prove nothing", other.number))
		return
	}
	defer d.end()

	w.Header().Set("Content-Type", "application/x-ndjson")
	stream := http.NewResponseController(w)
	tell := func(event exercises.Event) {
		if json.MarshalWrite(w, event) == nil {
			_, _ = w.Write([]byte("\n"))
			_ = stream.Flush()
		}
	}
	if look > 0 {
		bank.BeforeReset = func(ctx context.Context) {
			tell(exercises.Event{At: time.Now().UTC(), Exercise: e.Number, Kind: exercises.Looking,
				Text: "Look around: nothing has been put back yet."})
			over := time.NewTimer(look)
			defer over.Stop()
			select {
			case <-waiting:
			case <-over.C: // whoever has forgotten it
			case <-ctx.Done():
			}
		}
	}
	_ = e.Run(ctx, &bank, tell) // its last event says how it ended
}

// begin notes a run, unless there is one; that one it returns.
func (d *exerciseDoor) begin(mine *doorRun) (other *doorRun) {
	d.m.Lock()
	defer d.m.Unlock()
	if d.running != nil {
		return d.running
	}
	d.running = mine
	return nil
}

func (d *exerciseDoor) end() {
	d.m.Lock()
	defer d.m.Unlock()
	d.running = nil
}

// tell tells the run of the exercise something.
func (d *exerciseDoor) tell(w http.ResponseWriter, r *http.Request, what func(*doorRun)) {
	e, _, ok := exerciseOf(w, r)
	if !ok {
		return
	}
	d.m.Lock()
	running := d.running
	d.m.Unlock()
	if running == nil || running.number != e.Number {
		control.Refuse(w, http.StatusConflict, fmt.Sprintf("exercise %d is not running", e.Number))
		return
	}
	what(running)
	w.WriteHeader(http.StatusNoContent)
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.MarshalWrite(w, value) // a client that has gone
}

func exerciseOf(w http.ResponseWriter, r *http.Request) (exercises.Exercise, pages.Page, bool) {
	number, err := strconv.Atoi(r.PathValue("number"))
	if err != nil {
		control.Refuse(w, http.StatusNotFound, "an exercise has a number")
		return exercises.Exercise{}, pages.Page{}, false
	}
	e, page, err := exerciseNumber{number}.find()
	if err != nil {
		control.Refuse(w, http.StatusNotFound, err.Error())
		return e, page, false
	}
	return e, page, true
}
