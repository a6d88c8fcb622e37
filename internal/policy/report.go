package policy

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"example.com/banking/internal/plot"
)

// Report is a plot, computed: a drawing, the figures in it, and what they mean.
type Report struct {
	Plot      string            `json:"plot"`
	Title     string            `json:"title"`
	Settings  map[string]string `json:"settings"`  // as given or by default
	About     string            `json:"about"`     // the drawing in words, for those who do not see it
	See       string            `json:"see"`       // what to look at
	Means     string            `json:"means"`     // what follows from it
	Interview string            `json:"interview"` // the same in a sentence that one can say
	Tables    []Table           `json:"tables"`    // the figures, for people
	Figures   any               `json:"figures"`   // the same, for programs; durations in seconds

	Drawing plot.Drawing `json:"-"`
}

// Table is some figures with their headings.
type Table struct {
	Caption string     `json:"caption"`
	Columns []Column   `json:"columns"`
	Rows    [][]string `json:"rows"` // the first cell names the row
}

// Column is the heading of a column.
type Column struct {
	Name   string `json:"name"`
	Number bool   `json:"number"` // its cells are to be compared, and stand at the right
}

func columns(names ...string) (all []Column) {
	for _, name := range names {
		plain, number := strings.CutPrefix(name, "#")
		all = append(all, Column{plain, number})
	}
	return all
}

// Markdown writes the table for a document.
func (t Table) Markdown() string {
	var b strings.Builder
	row := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	var names, marks []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
		if c.Number {
			marks = append(marks, "---:")
		} else {
			marks = append(marks, "---")
		}
	}
	row(names)
	row(marks)
	for _, cells := range t.Rows {
		row(cells)
	}
	return b.String()
}

// random yields numbers in [0, 1), the same ones for the same seed. what keeps two uses of a seed apart.
func random(seed int, what uint64) func() float64 {
	return rand.New(rand.NewPCG(uint64(seed), what)).Float64
}

// span writes a duration as people do: 250 ms, 5 s, 1 min 30 s.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return decimal(d.Seconds()) + " s"
	}
	d = d.Round(time.Second)
	text := strconv.Itoa(int(d/time.Minute)) + " min"
	if rest := d % time.Minute; rest > 0 {
		text += " " + decimal(rest.Seconds()) + " s"
	}
	return text
}

// decimal writes a number with one digit after the point, if that is not 0.
func decimal(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// count writes a whole number in groups of three.
func count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// messages and their like are one or many.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + one + "s"
}
