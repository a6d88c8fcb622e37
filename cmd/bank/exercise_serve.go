package main

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"example.com/banking/exercises"
	"example.com/banking/internal/control"

	pages "example.com/banking/docs/exercises"
)

// registerExercises lets whoever has the token run exercises in a bank that is up, as the console does: GET /exercises lists them,
// GET /exercises/{number} is one with its page, POST /exercises/{number}/run runs it and answers with its events, a line of JSON each.
// Who goes away ends the run; everything is put back all the same.
func registerExercises(mux *http.ServeMux, b *bank) {
	write := func(w http.ResponseWriter, value any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.MarshalWrite(w, value) // a client that has gone
	}
	mux.HandleFunc("GET /exercises", func(w http.ResponseWriter, _ *http.Request) {
		write(w, map[string]any{"items": exerciseItems()})
	})
	mux.HandleFunc("GET /exercises/{number}", func(w http.ResponseWriter, r *http.Request) {
		if e, page, ok := exerciseOf(w, r); ok {
			sections := map[string]string{}
			for _, name := range pages.Sections() {
				sections[name] = page.Section(name)
			}
			write(w, map[string]any{"number": e.Number, "title": e.Title, "sections": sections, "text": page.Text})
		}
	})
	mux.HandleFunc("POST /exercises/{number}/run", func(w http.ResponseWriter, r *http.Request) {
		e, _, ok := exerciseOf(w, r)
		if !ok {
			return
		}
		bank := breakable(&b.where, b.term.dir)
		bank.WithoutFault = r.URL.Query().Get("fault") == "off"
		if text := r.URL.Query().Get("outage"); text != "" {
			var err error
			if bank.Outage, err = time.ParseDuration(text); err != nil || bank.Outage <= 0 || bank.Outage > 10*time.Minute {
				control.Refuse(w, http.StatusBadRequest, "outage must be a duration up to 10m")
				return
			}
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		stream := http.NewResponseController(w)
		_ = e.Run(r.Context(), bank, func(event exercises.Event) { // its last event says how it ended
			if json.MarshalWrite(w, event) == nil {
				_, _ = w.Write([]byte("\n"))
				_ = stream.Flush()
			}
		})
	})
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
