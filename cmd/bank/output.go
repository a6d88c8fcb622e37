package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mattn/go-isatty"
)

// output is where a command writes: tables and sentences for people, one JSON document for programs.
type output struct {
	io.Writer
	json     bool
	terminal bool // people are looking
	color    bool
}

func newOutput(to io.Writer, asJSON bool) *output {
	file, isFile := to.(*os.File)
	isTerminal := isFile && isatty.IsTerminal(file.Fd())
	if asJSON && isTerminal {
		to = &printableJSON{to: to}
	}
	return &output{Writer: to, json: asJSON, terminal: isTerminal, color: isTerminal && os.Getenv("NO_COLOR") == ""}
}

// document writes one JSON document.
func (o *output) document(value any) error {
	if err := json.MarshalWrite(o, value, jsontext.WithIndent("  ")); err != nil {
		return err
	}
	_, err := fmt.Fprintln(o)
	return err
}

// line writes one JSON document on one line: the form for documents without end.
func (o *output) line(value any) error {
	if err := json.MarshalWrite(o, value); err != nil {
		return err
	}
	_, err := fmt.Fprintln(o)
	return err
}

// table writes rows under a header, in columns.
func (o *output) table(header []string, rows [][]string) error {
	columns := tabwriter.NewWriter(o, 0, 4, 2, ' ', 0)
	fmt.Fprintln(columns, strings.Join(header, "\t"))
	for _, row := range rows {
		fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	return columns.Flush()
}

// The colours say the same as the words beside them; without a terminal only the words remain.
func (o *output) paint(code, text string) string {
	if !o.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (o *output) good(text string) string   { return o.paint("32", text) }
func (o *output) bad(text string) string    { return o.paint("31;1", text) }
func (o *output) faint(text string) string  { return o.paint("2", text) }
func (o *output) strong(text string) string { return o.paint("1", text) }

// amount writes minor units the way people read them: 2500 EUR in cents is "25.00 EUR".
func amount(minor int64, currency string) string {
	sign := ""
	if minor < 0 {
		sign = "-"
	}
	text := strings.TrimPrefix(fmt.Sprintf("%03d", minor), "-")
	if len(text) < 3 {
		text = strings.Repeat("0", 3-len(text)) + text
	}
	return sign + text[:len(text)-2] + "." + text[len(text)-2:] + " " + currency
}
