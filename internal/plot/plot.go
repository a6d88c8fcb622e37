// Package plot draws small charts as SVG: lines, steps, bars and bands over numeric axes, and time lines. It is all that the
// documentation and the console's plots need, and what it writes depends on its input alone, so a drawing can be compared with the one
// that is kept.
//
// A chart follows the reader's light or dark mode, tells its series apart by dashes and marks as well as by colour, says what it shows in
// words for those who do not see it, and comes in two widths: text that is shrunk with its picture cannot be read on a telephone.
package plot

import (
	"math"
	"slices"
)

// Drawing is anything that can be drawn.
type Drawing interface {
	SVG() string       // for a page or a document, 720 pixels wide
	NarrowSVG() string // for a narrow screen, 360 pixels wide
}

// Kind is how a series is drawn.
type Kind int

// The kinds.
const (
	Line  Kind = iota // points joined
	Step              // each value holds until the next point
	Bars              // one bar for each point, as wide as the distance to the next
	Marks             // points joined, and each one marked in the series' own shape
	Band              // what lies between Low and Y
	held              // a stretch of a timeline that is drawn broad; for legends
)

// Point is one value at one place.
type Point struct {
	X, Y float64
	Low  float64 // with Band
}

// Series is one thing that is shown.
type Series struct {
	Name   string
	Kind   Kind
	Points []Point // by ascending X
}

// Span is a stretch of the x axis that is shaded.
type Span struct {
	Name     string
	From, To float64
}

// Chart is a drawing with one pair of axes.
type Chart struct {
	Title  string
	About  string // what it shows, in words; for screen readers
	XLabel string
	YLabel string
	LogY   bool    // powers of ten at equal distances; values below 1 are drawn at 1
	MaxY   float64 // where the y axis ends at least; for charts that are to be compared
	Spans  []Span
	Series []Series
}

// SVG draws the chart. Without any point the axes go from 0 to 1.
func (c Chart) SVG() string { return c.draw(wide) }

// NarrowSVG draws it for a narrow screen.
func (c Chart) NarrowSVG() string { return c.draw(narrow) }

func (c Chart) draw(s sheet) string {
	return Panels{Title: c.Title, About: c.About, XLabel: c.XLabel, Charts: []Chart{{
		YLabel: c.YLabel, LogY: c.LogY, MaxY: c.MaxY, Spans: c.Spans, Series: c.Series,
	}}}.draw(s, s.chart)
}

// Panels are charts that share their x axis and their series, one above the other, each under its own title.
type Panels struct {
	Title  string
	About  string
	XLabel string
	Charts []Chart
}

// SVG draws the panels.
func (p Panels) SVG() string { return p.draw(wide, wide.panel) }

// NarrowSVG draws them for a narrow screen.
func (p Panels) NarrowSVG() string { return p.draw(narrow, narrow.panel) }

func (p Panels) draw(s sheet, height int) string {
	charts := slices.Clone(p.Charts)
	reach := axis{}
	for i := range charts {
		charts[i].Series = finite(charts[i].Series)
		reach = reach.with(charts[i])
	}
	b := newCanvas(s, p.Title, p.About)
	if len(charts) > 0 {
		b.legend(charts[0].Series)
	}
	for i, c := range charts {
		if i > 0 {
			b.y += 8
		}
		for _, line := range s.wrapped(c.Title, 8) {
			b.line(19, s.margin(), "name", line)
		}
		b.y += 16
		b.text(float64(s.margin()), float64(b.y), "tick", c.YLabel)
		top := b.y + 7
		b.y = top + height
		last := i == len(charts)-1
		b.axes(c, reach, top, last)
		if last {
			b.y += 40
			b.text(float64(s.left+s.width-s.right)/2, float64(b.y), "tick middle", p.XLabel)
		}
	}
	return b.end()
}

// axes draws one chart between top and the canvas's present end.
func (b *canvas) axes(c Chart, x axis, top int, labelled bool) {
	bottom := b.y
	x.pixelFrom, x.pixelTo = float64(b.left), float64(b.width-b.right)
	y := c.height()
	y.pixelFrom, y.pixelTo = float64(bottom), float64(top)
	for _, span := range c.Spans {
		from, to := x.at(max(span.From, x.from)), x.at(min(span.To, x.to))
		if to > from {
			b.add(`<rect class="shade" x="%s" y="%d" width="%s" height="%d"/>`, px(from), top, px(to-from), bottom-top)
			b.text((from+to)/2, float64(top-7), "tick middle", span.Name)
		}
	}
	for _, v := range x.ticks(b.ticks) {
		at := x.at(v)
		b.add(`<line class="grid" x1="%s" x2="%s" y1="%d" y2="%d"/>`, px(at), px(at), top, bottom)
		if labelled {
			b.text(at, float64(bottom+18), "tick middle", number(v))
		}
	}
	for _, v := range y.ticks(min(b.ticks, (bottom-top)/30)) {
		at := y.at(v)
		b.add(`<line class="grid" x1="%d" x2="%d" y1="%s" y2="%s"/>`, b.left, b.width-b.right, px(at), px(at))
		b.text(float64(b.left-8), at+4, "tick end", number(v))
	}
	for i, s := range c.Series {
		b.series(s, i, x, y)
	}
}

// finite leaves out what has no place on paper.
func finite(series []Series) []Series {
	drawable := slices.Clone(series)
	for i, s := range drawable {
		drawable[i].Points = slices.DeleteFunc(slices.Clone(s.Points), func(p Point) bool {
			return !placed(p.X) || !placed(p.Y) || !placed(p.Low)
		})
	}
	return drawable
}

func placed(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
