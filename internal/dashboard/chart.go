package dashboard

import (
	"fmt"
	"strings"
)

// section is a row of the dashboard with the charts below it.
type section struct {
	title  string
	charts []chart
}

// chart is what differs from panel to panel. The rest follows from its kind.
type chart struct {
	kind    kind
	title   string
	tells   string // what it tells, in sentences
	runbook string // the section of docs/reference/runbooks.md to open when it looks wrong
	unit    string
	width   int // of 24
	queries []query
	alarm   float64           // from here on it is red, as the alert of the runbook is; 0 for no such value
	least   float64           // below it it is red; 0 for no such value
	states  map[string]string // what a value means, of a states chart
	bounded bool              // a share, from 0 to 1
}

// query is an expression with how each of its series is called. In the expression <service> stands for the matcher of the jobs, <queue> for
// those of job and queue, and <time> for the range of a rate.
type query struct{ expr, legend string }

type kind string

const (
	lines  kind = "timeseries"
	number kind = "stat"
	states kind = "state-timeline"
	table  kind = "table"
)

const (
	runbooks = "docs/reference/runbooks.md"
	height   = 8
	columns  = 24
)

// place numbers the panels and puts them below each other, in reading order.
func place(sections []section, s scope) []any {
	var all []any
	id, y := 0, 0
	next := func() int { id++; return id }
	for _, section := range sections {
		all = append(all, row{ID: next(), Type: "row", Title: section.title, GridPos: gridPos{1, columns, 0, y}, Panels: []string{}})
		y++
		x := 0
		for _, c := range section.charts {
			if x+c.width > columns {
				x, y = 0, y+height
			}
			all = append(all, c.panel(next(), gridPos{height, c.width, x, y}, s))
			x += c.width
		}
		y += height
	}
	return all
}

func (c chart) panel(id int, at gridPos, s scope) panel {
	p := panel{
		ID: id, Type: string(c.kind), Title: c.title, Datasource: prometheus, GridPos: at,
		Description: fmt.Sprintf("%s When it looks wrong: %s#%s", c.tells, runbooks, c.runbook),
		FieldConfig: fieldConfig{Defaults: c.fields(), Overrides: []any{}}, Options: c.options(),
	}
	for i, q := range c.queries {
		t := target{
			RefID: string(rune('A' + i)), Datasource: prometheus, Expr: s.fill(q.expr), LegendFormat: q.legend,
			Instant: c.kind == number || c.kind == table,
		}
		t.Range = !t.Instant
		if c.kind == table {
			t.Format, p.Transformations = "table", tidied
		}
		p.Targets = append(p.Targets, t)
	}
	return p
}

// tidied takes the columns out of a table that are the same in all of its lines.
var tidied = []any{map[string]any{
	"id":      "organize",
	"options": map[string]any{"excludeByName": map[string]bool{"Time": true, "Value": true, "__name__": true, "alertstate": true}},
}}

func (c chart) fields() fields {
	zero, one := 0.0, 1.0
	f := fields{
		Unit: c.unit, Min: &zero, Mappings: []any{}, Custom: map[string]any{}, Color: map[string]any{"mode": "palette-classic"},
		Thresholds: thresholds{Mode: "absolute", Steps: []step{{Color: "green"}}},
	}
	if c.alarm > 0 {
		f.Thresholds.Steps = append(f.Thresholds.Steps, step{"red", &c.alarm})
	}
	if c.least > 0 {
		f.Thresholds.Steps = []step{{Color: "red"}, {"green", &c.least}}
	}
	if c.bounded {
		f.Max = &one
	}
	switch c.kind {
	case lines:
		f.Custom = map[string]any{"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": false}
		if c.alarm > 0 {
			f.Custom["thresholdsStyle"] = map[string]string{"mode": "dashed"}
		}
	case number:
		f.Color["mode"] = "thresholds"
	case states:
		f.Custom = map[string]any{"fillOpacity": 80, "lineWidth": 0}
		colors := map[string]string{"0": "green", "1": "orange", "2": "red"}
		options := map[string]any{}
		for value, text := range c.states {
			options[value] = map[string]string{"text": text, "color": colors[value]}
		}
		f.Mappings = []any{map[string]any{"type": "value", "options": options}}
	}
	return f
}

func (c chart) options() map[string]any {
	switch c.kind {
	case number:
		return map[string]any{
			"colorMode": "background", "graphMode": "none", "textMode": "value_and_name",
			"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		}
	case states:
		return map[string]any{"showValue": "auto", "mergeValues": true, "legend": map[string]any{"displayMode": "list", "placement": "bottom"}}
	case table:
		return map[string]any{"showHeader": true, "cellHeight": "sm"}
	}
	return map[string]any{
		"legend":  map[string]any{"displayMode": "table", "placement": "bottom", "calcs": []string{"lastNotNull", "max"}},
		"tooltip": map[string]string{"mode": "multi", "sort": "desc"},
	}
}

// scope is whose metrics a dashboard shows.
type scope struct {
	jobs   string // a matcher
	alerts string // which of the alerts that ring
}

// fill puts the scope into an expression. The range of a rate is Grafana's: four scrapes at least, more when a pixel is longer.
func (s scope) fill(expr string) string {
	return strings.NewReplacer(
		"<service>", s.jobs, "<queue>", s.jobs+`, queue=~"$queue"`, "<time>", "$__rate_interval", "<alerts>", s.alerts,
	).Replace(expr)
}
