package plot

import (
	"math"
	"strconv"
)

// axis leads from values to pixels.
type axis struct {
	from, to           float64
	pixelFrom, pixelTo float64
	log, set           bool
	parts              bool // there is something between whole numbers
}

// with is the x axis when it has to hold a chart, too.
func (a axis) with(c Chart) axis {
	for _, s := range c.Series {
		for n, p := range s.Points {
			if !a.set {
				a.from, a.to, a.set = p.X, p.X, true
			}
			a.from, a.to = min(a.from, p.X), max(a.to, p.X)
			a.parts = a.parts || p.X != math.Trunc(p.X)
			if s.Kind == Bars {
				a.to = max(a.to, s.next(n))
			}
		}
	}
	return a.wide()
}

// height is the y axis of a chart.
func (c Chart) height() axis {
	y := axis{log: c.LogY, to: c.MaxY}
	for _, s := range c.Series {
		for _, p := range s.Points {
			y.from, y.to = min(y.from, p.Y), max(y.to, p.Y)
			if s.Kind == Band {
				y.from, y.to = min(y.from, p.Low), max(y.to, p.Low)
			}
		}
	}
	y.parts = true
	if y.log {
		y.from, y.to = 1, min(math.Pow(10, math.Ceil(math.Log10(max(y.to, 10)))), math.MaxFloat64)
	}
	return y.wide()
}

// wide is the axis with some length, whatever is on it.
func (a axis) wide() axis {
	if a.to <= a.from {
		a.to = a.from + 1
	}
	return a
}

func (a axis) at(v float64) float64 {
	share := (v - a.from) / (a.to - a.from)
	if a.log {
		share = math.Log10(max(v, 1)) / math.Log10(max(a.to, 10))
	}
	return a.pixelFrom + share*(a.pixelTo-a.pixelFrom)
}

// ticks are round values, as many as can be read.
func (a axis) ticks(most int) (ticks []float64) {
	if a.log {
		decades := math.Log10(max(a.to, 10))
		for v := 1.0; v <= max(a.to, 10); v *= math.Pow(10, max(1, math.Ceil(decades/float64(max(most, 2))))) {
			ticks = append(ticks, v)
		}
		return ticks
	}
	rough := (a.to - a.from) / float64(max(most, 2))
	step := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, times := range []float64{1, 2, 5, 10} {
		if step*times >= rough {
			step *= times
			break
		}
	}
	if !a.parts {
		step = max(step, 1)
	}
	for n := math.Ceil(a.from / step); n*step <= a.to+step/1e6; n++ {
		ticks = append(ticks, n*step)
	}
	return ticks
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

// px writes a place in pixels, as short as it is exact enough.
func px(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// number writes a value at an axis.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
