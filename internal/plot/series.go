package plot

import (
	"fmt"
	"strings"
)

// series draws the i-th series of a chart.
func (b *canvas) series(s Series, i int, x, y axis) {
	if len(s.Points) == 0 {
		return
	}
	switch s.Kind {
	case Bars:
		for n, p := range s.Points {
			from, to, base := x.at(p.X), x.at(s.next(n)), y.at(y.from)
			if top := y.at(p.Y); top != base {
				b.add(`<rect class="bar f%d" x="%s" y="%s" width="%s" height="%s"/>`, i%colours, px(from), px(top), px(to-from), px(base-top))
			}
		}
	case Band:
		b.add(`<path class="band f%d s%d" d="%s"/>`, i%colours, i%colours, outline(s.Points, x, y))
	default:
		b.add(`<path class="line s%d" d="%s"/>`, i%colours, path(s, x, y))
		if s.Kind == Marks {
			for _, p := range s.Points {
				b.mark(i, x.at(p.X), y.at(p.Y))
			}
		}
	}
}

func path(s Series, x, y axis) string {
	var d strings.Builder
	for n, p := range s.Points {
		switch {
		case n == 0:
			fmt.Fprintf(&d, "M%s %s", px(x.at(p.X)), px(y.at(p.Y)))
		case s.Kind == Step:
			fmt.Fprintf(&d, "H%sV%s", px(x.at(p.X)), px(y.at(p.Y)))
		default:
			fmt.Fprintf(&d, "L%s %s", px(x.at(p.X)), px(y.at(p.Y)))
		}
	}
	return d.String()
}

// outline goes along the upper end and back along the lower one.
func outline(points []Point, x, y axis) string {
	var d strings.Builder
	for n, p := range points {
		fmt.Fprintf(&d, "%s%s %s", map[bool]string{true: "M", false: "L"}[n == 0], px(x.at(p.X)), px(y.at(p.Y)))
	}
	for n := len(points) - 1; n >= 0; n-- {
		fmt.Fprintf(&d, "L%s %s", px(x.at(points[n].X)), px(y.at(points[n].Low)))
	}
	return d.String() + "Z"
}
