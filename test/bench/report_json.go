package main

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The JSON form of a report.
type (
	reportJSON struct {
		At        time.Time      `json:"at"`
		Machine   string         `json:"machine"`
		Versions  string         `json:"versions,omitzero"`
		Sizes     string         `json:"sizes"`
		Targets   []judgement    `json:"targets"`
		Scenarios []scenarioJSON `json:"scenarios"`
	}
	scenarioJSON struct {
		Name    string       `json:"name"`
		Figures []figureJSON `json:"figures"`
		Notes   []string     `json:"notes,omitempty"`
	}
	figureJSON struct {
		Name   string    `json:"name"`
		Unit   string    `json:"unit,omitzero"`
		Median float64   `json:"median"`
		Runs   []float64 `json:"runs"`
	}
)

func (r *report) json() (string, error) {
	doc := reportJSON{At: r.at.UTC(), Machine: r.machine, Versions: r.versions, Sizes: r.sizes, Targets: r.judge()}
	for _, s := range r.sections {
		of := scenarioJSON{Name: s.scenario.name, Notes: s.notes}
		for _, name := range s.figures() {
			values := s.values(name)
			of.Figures = append(of.Figures, figureJSON{Name: name, Unit: s.unit(name), Median: median(values), Runs: values})
		}
		doc.Scenarios = append(doc.Scenarios, of)
	}
	text, err := json.Marshal(doc, jsontext.WithIndent("  "))
	return string(text) + "\n", err
}
