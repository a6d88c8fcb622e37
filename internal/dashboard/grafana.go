// Package dashboard makes the dashboards that Grafana shows of the bank: one of all services, and one for each service of the template. They
// are written in Go because what a panel needs to be any good (a unit, what it tells, which runbook to open, a place beside the others) is
// then asked for by its type or filled in, and the same panel serves all dashboards.
//
//go:generate go test -run TestCommittedFile . -update
package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// What follows is the part of Grafana's dashboard model, schema version 39 (Grafana 10.3 and later), that is used here.

type dashboard struct {
	UID           string      `json:"uid"`
	Title         string      `json:"title"`
	Description   string      `json:"description"`
	Tags          []string    `json:"tags"`
	SchemaVersion int         `json:"schemaVersion"`
	Editable      bool        `json:"editable"`
	GraphTooltip  int         `json:"graphTooltip"` // 1: the crosshair shows in all panels
	Refresh       string      `json:"refresh"`
	Timezone      string      `json:"timezone"`
	Time          timeRange   `json:"time"`
	Annotations   annotations `json:"annotations"`
	Links         []link      `json:"links"`
	Templating    templating  `json:"templating"`
	Panels        []any       `json:"panels"` // row or panel
}

type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// link leads to all dashboards with its tags.
type link struct {
	Title       string   `json:"title"`
	Type        string   `json:"type"`
	Tags        []string `json:"tags"`
	AsDropdown  bool     `json:"asDropdown"`
	KeepTime    bool     `json:"keepTime"`
	IncludeVars bool     `json:"includeVars"`
}

type annotations struct {
	List []annotation `json:"list"`
}

type annotation struct {
	Name        string     `json:"name"`
	Datasource  datasource `json:"datasource"`
	Enable      bool       `json:"enable"`
	IconColor   string     `json:"iconColor"`
	Expr        string     `json:"expr"`
	TitleFormat string     `json:"titleFormat"`
	Step        string     `json:"step"`
}

type templating struct {
	List []variable `json:"list"`
}

type variable struct {
	Name       string      `json:"name"`
	Label      string      `json:"label"`
	Type       string      `json:"type"`
	Datasource *datasource `json:"datasource,omitempty"`
	Query      string      `json:"query"`
	Definition string      `json:"definition,omitempty"`
	Refresh    int         `json:"refresh"` // 1 on load, 2 whenever the time range changes: then new services show
	Sort       int         `json:"sort,omitempty"`
	Multi      bool        `json:"multi"`
	IncludeAll bool        `json:"includeAll"`
	Current    *choice     `json:"current,omitempty"`
}

type choice struct {
	Text  []string `json:"text"`
	Value []string `json:"value"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// prometheus is the one that the variable names, so that a dashboard works where the data source has another name.
var prometheus = datasource{"prometheus", "${datasource}"}

type row struct {
	ID        int      `json:"id"`
	Type      string   `json:"type"`
	Title     string   `json:"title"`
	Collapsed bool     `json:"collapsed"`
	GridPos   gridPos  `json:"gridPos"`
	Panels    []string `json:"panels"` // of a collapsed row; none is
}

type panel struct {
	ID              int            `json:"id"`
	Type            string         `json:"type"`
	Title           string         `json:"title"`
	Description     string         `json:"description"`
	Datasource      datasource     `json:"datasource"`
	GridPos         gridPos        `json:"gridPos"`
	Targets         []target       `json:"targets"`
	FieldConfig     fieldConfig    `json:"fieldConfig"`
	Options         map[string]any `json:"options"`
	Transformations []any          `json:"transformations,omitempty"`
}

type gridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type target struct {
	RefID        string     `json:"refId"`
	Datasource   datasource `json:"datasource"`
	Expr         string     `json:"expr"`
	LegendFormat string     `json:"legendFormat"`
	Instant      bool       `json:"instant"`
	Range        bool       `json:"range"`
	Format       string     `json:"format,omitempty"`
}

type fieldConfig struct {
	Defaults  fields `json:"defaults"`
	Overrides []any  `json:"overrides"`
}

type fields struct {
	Unit       string         `json:"unit"`
	Min        *float64       `json:"min,omitempty"`
	Max        *float64       `json:"max,omitempty"`
	Color      map[string]any `json:"color"`
	Thresholds thresholds     `json:"thresholds"`
	Mappings   []any          `json:"mappings"`
	Custom     map[string]any `json:"custom"`
}

type thresholds struct {
	Mode  string `json:"mode"`
	Steps []step `json:"steps"`
}

type step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"` // null is the first step's
}

// file is the dashboard as Grafana reads it.
func (d dashboard) file() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // a query is read by people too
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return nil, fmt.Errorf("dashboard %s: %w", d.UID, err)
	}
	return out.Bytes(), nil
}
