package plot_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
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

func drawings() map[string]plot.Drawing {
	long := strings.Repeat("A title that is much too long for one line ", 3)
	return map[string]plot.Drawing{
		"chart": chart(),
		"marks and a band": plot.Chart{Title: "<script>alert(1)</script>", About: "a & b", Spans: []plot.Span{{Name: "<b>out</b>", From: -5, To: 99}}, Series: []plot.Series{
			{Name: "band", Kind: plot.Band, Points: []plot.Point{{X: 0, Low: 1, Y: 3}, {X: 1, Low: 2, Y: 5}}},
			{Name: "marks", Kind: plot.Marks, Points: []plot.Point{{X: 0, Y: 2}, {X: 1, Y: 4}}},
		}},
		"panels": plot.Panels{Title: long, About: "many", XLabel: "s", Charts: []plot.Chart{
			{Title: long, Series: []plot.Series{{Name: "a", Points: []plot.Point{{X: 0, Y: 1}, {X: 10, Y: 2}}}}},
			{Title: "empty"},
		}},
		"no panels": plot.Panels{Title: "none", About: "none"},
		"timeline": plot.Timeline{Title: "t", About: "lanes", Kinds: []string{"waits", "holds"}, Lanes: []plot.Lane{
			{Name: "<one>", Stretches: []plot.Stretch{{From: 0, To: 5}}, Moments: []plot.Moment{{At: 0, Label: "1"}, {At: 5, Shape: 1, Label: "2: parked"}}},
			{Name: "two", Stretches: []plot.Stretch{{From: 0, To: math.Inf(1), Kind: 1, Held: true}}, Moments: []plot.Moment{{At: math.NaN(), Label: "never"}}},
		}},
		"an empty timeline": plot.Timeline{Title: "t", About: "nothing"},
	}
}

// Every drawing, in either width, is XML of the elements that are meant, says what it shows, and holds no script, no handler and nothing
// from elsewhere.
func TestEveryDrawing(t *testing.T) {
	t.Parallel()
	allowed := map[string]bool{"svg": true, "title": true, "desc": true, "style": true, "text": true, "line": true, "rect": true, "path": true}
	for name, drawing := range drawings() {
		for width, svg := range map[int]string{720: drawing.SVG(), 360: drawing.NarrowSVG()} {
			got := elements(t, svg)
			if got["svg"] != 1 || got["title"] != 1 || got["desc"] != 1 || got["style"] != 1 {
				t.Errorf("%s: %v", name, got)
			}
			for element := range got {
				if !allowed[element] {
					t.Errorf("%s has a %s", name, element)
				}
			}
			if !strings.Contains(svg, fmt.Sprintf(`viewBox="0 0 %d `, width)) || strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
				t.Errorf("%s at %d:\n%s", name, width, svg)
			}
			for _, forbidden := range []string{"href", " on", "url(", "@import", " style="} {
				if outside := regexp.MustCompile(`(?s)<style>.*</style>|>[^<]*<`).ReplaceAllString(svg, "><"); strings.Contains(outside, forbidden) {
					t.Errorf("%s has %q", name, forbidden)
				}
			}
		}
	}
}

func TestALongTitleIsBroken(t *testing.T) {
	t.Parallel()
	drawing := drawings()["panels"]
	titles := func(svg string) int { return strings.Count(svg, `class="title"`) }
	if wide, narrow := titles(drawing.SVG()), titles(drawing.NarrowSVG()); wide < 2 || narrow <= wide {
		t.Errorf("%d lines, narrow %d", wide, narrow)
	}
}

// Series are told apart without colour: by dashes, and where points are marked by the shape of the mark.
func TestSeriesDifferWithoutColour(t *testing.T) {
	t.Parallel()
	c := plot.Chart{}
	for range 4 {
		c.Series = append(c.Series, plot.Series{Kind: plot.Marks, Points: []plot.Point{{X: 0, Y: 1}, {X: 1, Y: 2}}})
	}
	svg := c.SVG()
	shapes := map[string]bool{}
	for _, found := range regexp.MustCompile(`class="mark f\d s\d" d="M\S+ [\d.]+(\S+ ?[^"]*)"`).FindAllStringSubmatch(svg, -1) {
		shapes[found[1]] = true
	}
	dashes := map[string]bool{}
	for _, found := range regexp.MustCompile(`\.plot \.s\d \{ stroke: var\(--s\d\)([^}]*)\}`).FindAllStringSubmatch(svg, -1) {
		dashes[found[1]] = true
	}
	if len(shapes) != 4 || len(dashes) != 4 {
		t.Errorf("%d shapes %v, %d dashes %v; want 4 of each", len(shapes), shapes, len(dashes), dashes)
	}
}

// Text stands out against the page at 4.5 to 1, lines at 3 to 1, light and dark. The darkest and lightest surfaces are those of the console.
func TestContrast(t *testing.T) {
	t.Parallel()
	svg := chart().SVG()
	modes := regexp.MustCompile(`\.plot \{ (--[^}]*)\}`).FindAllStringSubmatch(svg, -1)
	if len(modes) != 2 {
		t.Fatalf("%d modes", len(modes))
	}
	light := func(colour string) float64 {
		var sum float64
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			v := float64(n) / 255
			if v <= 0.04045 {
				v /= 12.92
			} else {
				v = math.Pow((v+0.055)/1.055, 2.4)
			}
			sum += weight * v
		}
		return sum
	}
	for i, surface := range []string{"#ffffff", "#171a20"} {
		for _, found := range regexp.MustCompile(`--(\w+): (#\w{6})`).FindAllStringSubmatch(modes[i][1], -1) {
			want := map[string]float64{"ink": 4.5, "faint": 4.5, "grid": 0, "shade": 0}
			least, known := want[found[1]]
			if !known {
				least = 3
			}
			a, b := light(found[2]), light(surface)
			if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < least {
				t.Errorf("--%s %s on %s: %.2f", found[1], found[2], surface, ratio)
			}
		}
	}
}

// The source that a server allows is that of the style sheet in the drawings.
func TestStyleSource(t *testing.T) {
	t.Parallel()
	sheet := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(chart().SVG())[1]
	sum := sha256.Sum256([]byte(sheet))
	if want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; plot.StyleSource() != want {
		t.Errorf("%s, want %s", plot.StyleSource(), want)
	}
}
