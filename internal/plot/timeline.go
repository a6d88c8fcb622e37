package plot

import "math"

// Timeline shows what happens on several lanes at the same time.
type Timeline struct {
	Title  string
	About  string // what it shows, in words; for screen readers
	XLabel string
	Kinds  []string // what the kinds of stretches are called, by Stretch.Kind
	Lanes  []Lane
}

// Lane is one line of a timeline.
type Lane struct {
	Name      string
	Stretches []Stretch
	Moments   []Moment
}

// Stretch is something that takes its time.
type Stretch struct {
	From, To float64
	Kind     int  // draws it in that series' colour and dashes
	Held     bool // drawn broad, because it keeps others from going on
}

// Moment is something that happens, with a word beside it.
type Moment struct {
	At    float64
	Shape int // that series' mark
	Label string
}

const laneHeight = 54

// SVG draws the timeline.
func (t Timeline) SVG() string { return t.draw(wide) }

// NarrowSVG draws it for a narrow screen.
func (t Timeline) NarrowSVG() string { return t.draw(narrow) }

func (t Timeline) draw(s sheet) string {
	b := newCanvas(s, t.Title, t.About)
	b.left = s.margin() + 8 // nothing is written left of the lanes
	kinds := make([]Series, len(t.Kinds))
	for i, name := range t.Kinds {
		kinds[i] = Series{Name: name, Kind: t.sample(i)}
	}
	b.legend(kinds)
	top := b.y + 14
	bottom := top + laneHeight*len(t.Lanes)
	x := t.reach()
	x.pixelFrom, x.pixelTo = float64(b.left), float64(b.width-b.right-8)
	for _, v := range x.ticks(b.ticks) {
		at := x.at(v)
		b.add(`<line class="grid" x1="%s" x2="%s" y1="%d" y2="%d"/>`, px(at), px(at), top, bottom)
		b.text(at, float64(bottom+18), "tick middle", number(v))
	}
	for i, lane := range t.Lanes {
		y := float64(top + i*laneHeight + 34)
		b.text(float64(b.margin()), y-20, "name", lane.Name)
		b.lane(lane, x, y)
	}
	b.y = bottom + 40
	b.text(float64(b.left+b.width-b.right)/2, float64(b.y), "tick middle", t.XLabel)
	return b.end()
}

// sample is how the legend shows a kind of stretches.
func (t Timeline) sample(kind int) Kind {
	for _, lane := range t.Lanes {
		for _, s := range lane.Stretches {
			if s.Kind == kind && s.Held {
				return held
			}
		}
	}
	return Line
}

func (t Timeline) reach() axis {
	var x axis
	for _, lane := range t.Lanes {
		for _, s := range lane.Stretches {
			x.to = max(x.to, at(s.To))
		}
		for _, m := range lane.Moments {
			x.to = max(x.to, at(m.At))
		}
	}
	return x.wide()
}

// at is a moment that has a place on paper.
func at(v float64) float64 {
	if !placed(v) {
		return 0
	}
	return min(max(v, 0), math.MaxFloat32)
}

func (b *canvas) lane(lane Lane, x axis, y float64) {
	for _, s := range lane.Stretches {
		class := "line"
		if s.Held {
			class = "held"
		}
		b.add(`<path class="%s s%d" d="M%s %sH%s"/>`, class, s.Kind%colours, px(x.at(at(s.From))), px(y), px(x.at(at(s.To))))
	}
	free := math.Inf(-1) // from where a label hides no other one
	for _, m := range lane.Moments {
		place := x.at(at(m.At))
		b.mark(m.Shape, place, y)
		width := 7 * float64(len([]rune(m.Label)))
		from := min(max(place, float64(b.margin())+width/2), float64(b.width-4)-width/2)
		if from-width/2 >= free {
			b.text(from, y+16, "tick middle", m.Label)
			free = from + width/2 + 3
		}
	}
}
