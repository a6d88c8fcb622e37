package runs

import (
	"bufio"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// What is kept of one run, at most. The longest of the exercises tells a tenth of it.
const (
	mostEvents  = 400
	mostBytes   = 256 << 10
	longestLine = 64 << 10
)

// follow reads what the keeper tells, to the end.
func (r *Runs) follow(of *run, answer io.ReadCloser) {
	defer func() { _ = answer.Close() }()
	lines := bufio.NewScanner(answer)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		var e event
		line := jsontext.Value(strings.TrimSpace(lines.Text()))
		if json.Unmarshal(line, &e) != nil {
			continue // nothing that one of the keeper's events could be
		}
		r.note(of, line, e)
	}
	r.end(of)
}

// event is what is asked of an event here; all of it is for the page.
type event struct {
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	OK     *bool  `json:"ok"`
	Reason string `json:"reason"`
}

func (r *Runs) note(of *run, line jsontext.Value, e event) {
	r.m.Lock()
	switch {
	case e.Kind == "ended" || len(of.events) < mostEvents && of.bytes+len(line) <= mostBytes:
		of.events = append(of.events, line)
		of.bytes += len(line)
	default:
		of.Dropped++
	}
	switch {
	case e.Kind == "ended":
		of.Said = e.Text
		switch {
		case e.OK != nil && *e.OK:
			of.verdict = Passed
		case e.Reason == "INTERRUPTED": // which may be told before the order to stop is answered
			of.verdict = Stopped
		default:
			of.verdict = Failed
		}
	case e.Kind == "looking" && of.State == Running:
		of.State = Looking
	case e.Kind == "reset" && of.State == Looking: // nobody came, and it has gone on by itself
		of.State = Running
	}
	r.m.Unlock()
	r.changed(of.Exercise)
}

// end notes that nothing more comes.
func (r *Runs) end(of *run) {
	r.m.Lock()
	if of.State = of.verdict; of.verdict == "" {
		of.State, of.Said = Broken, "The bank's keeper has gone in the middle of the run. What was changed is put back by the next run, or by hand: bin/bank service list."
	}
	at := time.Now().UTC()
	of.Ended = &at
	r.now = nil
	state := of.State
	r.m.Unlock()
	r.cfg.Logger.Info("an exercise has ended", "exercise", of.Exercise, "state", state)
	r.changed(of.Exercise)
}
