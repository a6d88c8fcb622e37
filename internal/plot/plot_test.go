package plot_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"example.com/banking/internal/plot"
)

func chart() plot.Chart {
	return plot.Chart{
		Title: `Retries <1> & "more"`, About: "Two series.", XLabel: "s", YLabel: "retries",
		Series: []plot.Series{
			{Name: "line", Points: []plot.Point{{X: 0, Y: 0}, {X: 10, Y: 100}}},
			{Name: "step", Kind: plot.Step, Points: []plot.Point{{X: 0, Y: 50}, {X: 5, Y: 25}}},
			{Name: "bars", Kind: plot.Bars, Points: []plot.Point{{X: 0, Y: 10}, {X: 5, Y: 100}}},
		},
	}
}

// elements counts the elements of a drawing by name, and fails when it is no XML.
func elements(t *testing.T, svg string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return counts
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok {
			counts[e.Name.Local]++
		}
	}
}

func TestChartShowsItsSeries(t *testing.T) {
	t.Parallel()
	svg := chart().SVG()
	got := elements(t, svg)
	if got["path"] != 2+2 || got["rect"] != 2+1 { // drawn and in the legend
		t.Errorf("%d paths and %d bars:\n%s", got["path"], got["rect"], svg)
	}
	for _, want := range []string{
		`<title>Retries &lt;1&gt; &amp; &#34;more&#34;</title>`,
		`d="M64 312L704 64"`,         // (0, 0) to (10, 100): corner to corner
		`d="M64 188H384V250"`,        // 50 until 5, then 25
		`x="384" y="64" width="320"`, // the second bar, as wide as the first
		`>100</text>`, `>retries</text>`, `>s</text>`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
}

func TestChartOfAnything(t *testing.T) {
	t.Parallel()
	for name, points := range map[string][]plot.Point{
		"nothing":       nil,
		"one point":     {{X: 3, Y: 3}},
		"all the same":  {{X: 1, Y: 2}, {X: 1, Y: 2}},
		"below zero":    {{X: -2, Y: -5}, {X: 2, Y: 5}},
		"very large":    {{X: 0, Y: 1e300}, {X: 1e300, Y: 0}},
		"very small":    {{X: 0, Y: 0}, {X: 1e-300, Y: 1e-300}},
		"not a number":  {{X: math.NaN(), Y: 1}, {X: 1, Y: math.NaN()}},
		"zero on a log": {{X: 0, Y: 0}, {X: 1, Y: 1000}},
	} {
		for _, kind := range []plot.Kind{plot.Line, plot.Step, plot.Bars} {
			for _, log := range []bool{false, true} {
				c := plot.Chart{Title: name, LogY: log, Series: []plot.Series{{Name: name, Kind: kind, Points: points}}}
				svg := c.SVG()
				elements(t, svg)
				if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
					t.Errorf("%s: a place that is none:\n%s", name, svg)
				}
			}
		}
	}
}

func TestLogarithmicAxis(t *testing.T) {
	t.Parallel()
	svg := plot.Chart{LogY: true, Series: []plot.Series{{Points: []plot.Point{{X: 0, Y: 1}, {X: 1, Y: 10}, {X: 2, Y: 100}}}}}.SVG()
	if want := `d="M64 312L384 188L704 64"`; !strings.Contains(svg, want) { // equal steps for equal factors
		t.Errorf("no %s in\n%s", want, svg)
	}
}
