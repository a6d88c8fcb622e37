package main

import (
	"fmt"
	"strings"

	"example.com/banking/internal/policy"
)

// textWidth is how wide paragraphs are printed.
const textWidth = 100

// printPlot prints a plot for people: its figures, and what to make of them.
func printPlot(out *output, r policy.Report) error {
	fmt.Fprintf(out, "%s\n\n", out.strong(r.Title))
	for _, t := range r.Tables {
		fmt.Fprintln(out, out.faint(t.Caption))
		if err := printFigures(out, t); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	for _, part := range []struct{ name, text string }{{"What to see", r.See}, {"What it means", r.Means}, {"In an interview", r.Interview}} {
		fmt.Fprintf(out, "%s\n%s\n\n", out.faint(part.name), wrap(part.text, textWidth, ""))
	}
	var settings []string
	if p, known := policy.Find(r.Plot); known {
		for _, s := range p.Settings {
			settings = append(settings, fmt.Sprintf("--%s=%s", s.Name, r.Settings[s.Name]))
		}
	}
	_, err := fmt.Fprintf(out, "Computed with %s\n", strings.Join(settings, " "))
	return err
}

// printFigures prints figures in columns, and what is made of sentences in paragraphs.
func printFigures(out *output, t policy.Table) error {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = strings.ToUpper(c.Name)
	}
	if !wordy(t) {
		return out.table(names, t.Rows)
	}
	for _, row := range t.Rows {
		fmt.Fprintln(out, out.strong(row[0]))
		for i, cell := range row[1:] {
			name := ""
			if len(row) > 2 {
				name = t.Columns[i+1].Name + ": "
			}
			fmt.Fprintln(out, wrap(name+cell, textWidth, "  "))
		}
	}
	return nil
}

// wordy says whether a table is too wide for columns.
func wordy(t policy.Table) bool {
	width := 0
	for i := range t.Columns {
		widest := 0
		for _, row := range t.Rows {
			widest = max(widest, len([]rune(row[i])))
		}
		width += widest + 2
	}
	return width > 160
}

// wrap breaks a text into lines of so many characters at most, where words allow it.
func wrap(text string, width int, indent string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case column == 0:
			b.WriteString(indent)
			column = len(indent)
		case column+1+n > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
