// Package plot draws small charts as SVG: lines, steps and bars over numeric axes. It is all that the documentation and the console's
// plots need, and what it writes depends on its input alone, so a drawing can be compared with the one that is kept.
//
// A chart follows the reader's light or dark mode, tells its series apart by dashes as well as by colour, and says what it shows in
// words for those who do not see it.
package plot

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Kind is how a series is drawn.
type Kind int

// The kinds.
const (
	Line Kind = iota // points joined
	Step             // each value holds until the next point
	Bars             // one bar for each point, as wide as the distance to the next
)

// Point is one value at one place.
type Point struct{ X, Y float64 }

// Series is one thing that is shown.
type Series struct {
	Name   string
	Kind   Kind
	Points []Point // by ascending X
}

// Chart is a drawing with one pair of axes.
type Chart struct {
	Title  string
	About  string // what it shows, in words; for screen readers
	XLabel string
	YLabel string
	LogY   bool // powers of ten at equal distances; values below 1 are drawn at 1
	Series []Series
}

// The drawing's measures, in pixels.
const (
	width, height            = 720, 360
	left, right, top, bottom = 64, 16, 64, 48
	maxTicks                 = 8
)

// SVG draws the chart. Without any point the axes go from 0 to 1.
func (c Chart) SVG() string {
	c.Series = finite(c.Series)
	x, y := c.axes()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" class="plot" role="img">`+"\n", width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<desc>%s</desc>\n%s", html.EscapeString(c.Title), html.EscapeString(c.About), style)
	text(&b, left, 22, "title", c.Title)
	for _, v := range x.ticks() {
		at := x.at(v)
		fmt.Fprintf(&b, `<line class="grid" x1="%s" x2="%s" y1="%d" y2="%d"/>`+"\n", px(at), px(at), top, height-bottom)
		text(&b, at, height-bottom+18, "tick middle", number(v))
	}
	for _, v := range y.ticks() {
		at := y.at(v)
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%s" y2="%s"/>`+"\n", left, width-right, px(at), px(at))
		text(&b, left-8, at+4, "tick end", number(v))
	}
	text(&b, (left+width-right)/2, height-8, "tick middle", c.XLabel)
	text(&b, left, top-10, "tick", c.YLabel)
	for i, s := range c.Series {
		s.draw(&b, i, x, y)
	}
	c.legend(&b)
	b.WriteString("</svg>\n")
	return b.String()
}

// finite leaves out what has no place on paper.
func finite(series []Series) []Series {
	drawable := slices.Clone(series)
	for i, s := range drawable {
		drawable[i].Points = slices.DeleteFunc(slices.Clone(s.Points), func(p Point) bool {
			return math.IsNaN(p.X) || math.IsInf(p.X, 0) || math.IsNaN(p.Y) || math.IsInf(p.Y, 0)
		})
	}
	return drawable
}

// style gives the colours; those of the series are told apart by people who confuse red and green too. All of it is bound to the
// class plot, because a drawing that stands inside a page shares its style sheet with the page.
const style = `<style>
.plot text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.plot .title { font-size: 16px; font-weight: 600 }
.plot .tick { fill: #59636e; font-size: 12px }
.plot .middle { text-anchor: middle }
.plot .end { text-anchor: end }
.plot .grid { stroke: #d1d9e0; stroke-width: 1 }
.plot .line { fill: none; stroke-width: 2 }
.plot .bar { fill-opacity: .55 }
.plot .s0 { stroke: #0969da } .plot .f0 { fill: #0969da }
.plot .s1 { stroke: #bc4c00; stroke-dasharray: 6 3 } .plot .f1 { fill: #bc4c00 }
.plot .s2 { stroke: #1a7f37; stroke-dasharray: 2 3 } .plot .f2 { fill: #1a7f37 }
.plot .s3 { stroke: #8250df; stroke-dasharray: 10 3 2 3 } .plot .f3 { fill: #8250df }
@media (prefers-color-scheme: dark) {
.plot text { fill: #f0f6fc } .plot .tick { fill: #9198a1 } .plot .grid { stroke: #3d444d }
.plot .s0 { stroke: #4493f8 } .plot .f0 { fill: #4493f8 } .plot .s1 { stroke: #f0883e } .plot .f1 { fill: #f0883e }
.plot .s2 { stroke: #3fb950 } .plot .f2 { fill: #3fb950 } .plot .s3 { stroke: #ab7df8 } .plot .f3 { fill: #ab7df8 }
}
</style>
`

// colours is how many series can be told apart; further ones begin anew.
const colours = 4

func (s Series) draw(b *strings.Builder, i int, x, y axis) {
	if len(s.Points) == 0 {
		return
	}
	if s.Kind == Bars {
		for n, p := range s.Points {
			from, to := x.at(p.X), x.at(s.next(n))
			fmt.Fprintf(b, `<rect class="bar f%d" x="%s" y="%s" width="%s" height="%s"/>`+"\n",
				i%colours, px(from), px(y.at(p.Y)), px(to-from), px(y.at(y.from)-y.at(p.Y)))
		}
		return
	}
	fmt.Fprintf(b, `<path class="line s%d" d="`, i%colours)
	for n, p := range s.Points {
		switch {
		case n == 0:
			fmt.Fprintf(b, "M%s %s", px(x.at(p.X)), px(y.at(p.Y)))
		case s.Kind == Step:
			fmt.Fprintf(b, "H%sV%s", px(x.at(p.X)), px(y.at(p.Y)))
		default:
			fmt.Fprintf(b, "L%s %s", px(x.at(p.X)), px(y.at(p.Y)))
		}
	}
	b.WriteString(`"/>` + "\n")
}

// next is where the bar of point n ends.
func (s Series) next(n int) float64 {
	switch {
	case n+1 < len(s.Points):
		return s.Points[n+1].X
	case n > 0:
		return s.Points[n].X + s.Points[n].X - s.Points[n-1].X
	}
	return s.Points[n].X + 1
}

func (c Chart) legend(b *strings.Builder) {
	at := float64(left)
	for i, s := range c.Series {
		if s.Kind == Bars {
			fmt.Fprintf(b, `<rect class="bar f%d" x="%s" y="32" width="20" height="10"/>`+"\n", i%colours, px(at))
		} else {
			fmt.Fprintf(b, `<path class="line s%d" d="M%s 37h20"/>`+"\n", i%colours, px(at))
		}
		text(b, at+26, 41, "", s.Name)
		at += 44 + 7*float64(len([]rune(s.Name)))
	}
}

func (c Chart) axes() (x, y axis) {
	x, y = axis{pixelFrom: left, pixelTo: width - right}, axis{pixelFrom: height - bottom, pixelTo: top, log: c.LogY}
	first := true
	for _, s := range c.Series {
		for n, p := range s.Points {
			if first {
				x.from, x.to, first = p.X, p.X, false
			}
			x.from, x.to = min(x.from, p.X), max(x.to, p.X)
			if s.Kind == Bars {
				x.to = max(x.to, s.next(n))
			}
			y.to = max(y.to, p.Y)
			y.from = min(y.from, p.Y)
		}
	}
	if y.log {
		y.from = 1
	}
	if x.to <= x.from {
		x.to = x.from + 1
	}
	if y.to <= y.from {
		y.to = y.from + 1
	}
	return x, y
}

// axis leads from values to pixels.
type axis struct {
	from, to           float64
	pixelFrom, pixelTo float64
	log                bool
}

func (a axis) at(v float64) float64 {
	share := (v - a.from) / (a.to - a.from)
	if a.log {
		share = math.Log10(max(v, 1)) / math.Log10(max(a.to, 10))
	}
	return a.pixelFrom + share*(a.pixelTo-a.pixelFrom)
}

// ticks are round values, as many as can be read.
func (a axis) ticks() (ticks []float64) {
	if a.log {
		for v := 1.0; v <= max(a.to, 10); v *= 10 {
			ticks = append(ticks, v)
		}
		return ticks
	}
	rough := (a.to - a.from) / maxTicks
	step := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, times := range []float64{1, 2, 5, 10} {
		if step*times >= rough {
			step *= times
			break
		}
	}
	for n := math.Ceil(a.from / step); n*step <= a.to+step/1e6; n++ {
		ticks = append(ticks, n*step)
	}
	return ticks
}

func text(b *strings.Builder, x, y float64, class, content string) {
	if content != "" {
		fmt.Fprintf(b, `<text class="%s" x="%s" y="%s">%s</text>`+"\n", class, px(x), px(y), html.EscapeString(content))
	}
}

// px writes a place in pixels, as short as it is exact enough.
func px(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// number writes a value at an axis.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
