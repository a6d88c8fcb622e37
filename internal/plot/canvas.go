package plot

import (
	"fmt"
	"html"
	"strings"
)

// sheet is what a drawing is drawn on; measures are in pixels.
type sheet struct {
	width, left, right int
	chart, panel       int // heights of a single chart's and of a panel's axes
	ticks              int // on an axis, at most
}

var (
	wide   = sheet{width: 720, left: 64, right: 16, chart: 248, panel: 74, ticks: 8}
	narrow = sheet{width: 360, left: 48, right: 14, chart: 210, panel: 70, ticks: 5}
)

// canvas is a drawing that is being made, from the top down.
type canvas struct {
	sheet
	about, title string
	body         strings.Builder
	y            int // where it ends so far
}

func newCanvas(s sheet, title, about string) *canvas {
	b := &canvas{sheet: s, title: title, about: about}
	lines := b.wrapped(title, 9.6)
	b.y = 22
	for i, line := range lines {
		if i > 0 {
			b.y += 20
		}
		b.text(float64(b.margin()), float64(b.y), "title", line)
	}
	return b
}

// margin is where what belongs to no axis begins.
func (s sheet) margin() int {
	if s.width < 500 {
		return 8
	}
	return s.left
}

func (b *canvas) add(format string, args ...any) {
	fmt.Fprintf(&b.body, format, args...)
	b.body.WriteByte('\n')
}

// text writes at a place.
func (b *canvas) text(x, y float64, class, content string) {
	if content != "" {
		b.add(`<text class="%s" x="%s" y="%s">%s</text>`, class, px(x), px(y), html.EscapeString(content))
	}
}

// line goes down and writes there; nothing, where there is nothing to write.
func (b *canvas) line(down, x int, class, content string) {
	if content == "" {
		return
	}
	b.y += down
	b.text(float64(x), float64(b.y), class, content)
}

// end is the whole drawing.
func (b *canvas) end() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" class="plot" role="img">`+"\n", b.width, b.y+8) +
		fmt.Sprintf("<title>%s</title>\n<desc>%s</desc>\n", html.EscapeString(b.title), html.EscapeString(b.about)) +
		"<style>" + rules + "</style>\n" + b.body.String() + "</svg>\n"
}

// wrapped breaks a text into lines that fit; a letter is about so wide.
func (s sheet) wrapped(text string, letter float64) []string {
	most := int(float64(s.width-s.margin()-s.right) / letter)
	var lines []string
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		if last >= 0 && len([]rune(lines[last]))+1+len([]rune(word)) <= most {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// legend names the series, in as many rows as they need.
func (b *canvas) legend(series []Series) {
	at := float64(b.margin())
	b.y += 19
	for i, s := range series {
		wide := 44 + 7*float64(len([]rune(s.Name)))
		if i > 0 && at+wide-18 > float64(b.width) {
			at, b.y = float64(b.margin()), b.y+18
		}
		b.sample(s.Kind, i, at)
		b.text(at+26, float64(b.y), "", s.Name)
		at += wide
	}
}

// sample draws a piece of a series, 20 pixels wide.
func (b *canvas) sample(kind Kind, i int, at float64) {
	switch kind {
	case Bars:
		b.add(`<rect class="bar f%d" x="%s" y="%d" width="20" height="10"/>`, i%colours, px(at), b.y-9)
	case Band:
		b.add(`<rect class="band f%d s%d" x="%s" y="%d" width="20" height="10"/>`, i%colours, i%colours, px(at), b.y-9)
	case held:
		b.add(`<path class="held s%d" d="M%s %dh20"/>`, i%colours, px(at), b.y-4)
	default:
		b.add(`<path class="line s%d" d="M%s %dh20"/>`, i%colours, px(at), b.y-4)
	}
	if kind == Marks {
		b.mark(i, at+10, float64(b.y-4))
	}
}

// colours is how many series can be told apart; further ones begin anew.
const colours = 4

// mark is a point of a series, in a shape of its own.
func (b *canvas) mark(i int, x, y float64) {
	shape := [colours]string{
		"M%s %sm-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", // circle
		"M%s %sm-4 -4h8v8h-8z",                      // square
		"M%s %sm0 -5l5 9h-10z",                      // triangle
		"M%s %sm0 -5l5 5l-5 5l-5 -5z",               // diamond
	}[i%colours]
	b.add(`<path class="mark f%d s%d" d="`+shape+`"/>`, i%colours, i%colours, px(x), px(y))
}
