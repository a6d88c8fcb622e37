package main

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

type parkedShow struct {
	parkedFilter `embed:""`
}

// wholeParked is one quarantined message with everything in it.
type wholeParked struct {
	parkedMessage
	Headers map[string]jsontext.Value `json:"headers"`
	Deaths  []struct {
		Queue       string     `json:"queue"`
		Reason      string     `json:"reason"`
		Count       int64      `json:"count"`
		FirstAt     *time.Time `json:"firstAt"`
		Exchange    string     `json:"exchange"`
		RoutingKeys []string   `json:"routingKeys"`
	} `json:"deaths"`
	Properties map[string]jsontext.Value `json:"properties"`
	Exchange   string                    `json:"exchange"`
	RoutingKey string                    `json:"routingKey"`
	Body       parkedBody                `json:"body"`
}

type parkedBody struct {
	Size   int     `json:"size"`
	Text   *string `json:"text"`
	Base64 *string `json:"base64"`
}

func (c *parkedShow) Run(ctx context.Context, to *endpoints, out *output, term *terminal) error {
	rows := &parkedRows{out: out, whole: true}
	err := c.list(ctx, to, rows)
	if rows.shown == 0 {
		c.hint(term)
	}
	if err == nil && rows.shown == 0 {
		return errors.New("nothing in quarantine matches")
	}
	return err
}

func (m *wholeParked) print(out *output) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(out, "%-14s %s\n", name, value)
		}
	}
	fmt.Fprintln(out, out.strong(foreign(m.Key)))
	line("queue", foreign(m.Queue))
	line("type", foreign(m.Type))
	line("transfer", foreign(m.TransferID))
	line("given up", strings.TrimSpace(fmt.Sprintf("%s  %s  %s", out.bad(foreign(m.Reason)), foreign(m.Class), when(m.ParkedAt))))
	if m.Service != "" {
		line("by", fmt.Sprintf("%s, after %s, the first at %s", foreign(m.Service), executions(m.Attempts), when(m.FirstFailedAt)))
	}
	line("error", foreign(m.Error))
	line("came from", foreign(m.OriginQueue))
	if m.OriginRoutingKey != "" {
		line("published to", fmt.Sprintf("exchange %q, key %s", foreign(m.OriginExchange), foreign(m.OriginRoutingKey)))
	}
	if m.ReplayCount > 0 {
		line("replayed", fmt.Sprintf("%d times so far", m.ReplayCount))
	}
	if len(m.Deaths) > 0 {
		fmt.Fprintln(out, "\nlaps, as the broker counted them")
		for _, d := range m.Deaths {
			fmt.Fprintf(out, "  %d × %s out of %s, first %s, come by exchange %q with key %s\n", d.Count, foreign(d.Reason), foreign(d.Queue), when(d.FirstAt),
				foreign(d.Exchange), foreign(strings.Join(d.RoutingKeys, ", ")))
		}
	}
	printTable(out, "properties", m.Properties)
	printTable(out, "headers", m.Headers)
	m.Body.print(out)
}

func when(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.UTC().Format(time.RFC3339) + " (" + ago(at) + ")"
}

func printTable(out *output, title string, table map[string]jsontext.Value) {
	if len(table) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", title)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		value := string(table[name])
		var text string
		if json.Unmarshal(table[name], &text) == nil {
			value = text
		}
		fmt.Fprintf(out, "  %s: %s\n", foreign(name), foreign(value))
	}
}

// print shows the body as it came and, when it is JSON, once more for people.
func (b *parkedBody) print(out *output) {
	switch {
	case b.Text != nil:
		fmt.Fprintf(out, "\nbody, %d bytes of text\n%s\n", b.Size, foreignLines(*b.Text))
		pretty := jsontext.Value(*b.Text)
		if pretty.Indent(jsontext.WithIndent("  ")) == nil && string(pretty) != *b.Text {
			fmt.Fprintf(out, "\nthe same, indented\n%s\n", foreignLines(string(pretty)))
		}
	case b.Base64 != nil:
		raw, err := base64.StdEncoding.DecodeString(*b.Base64)
		if err != nil {
			fmt.Fprintf(out, "\nbody, %d bytes, unreadable: %v\n", b.Size, err)
			return
		}
		fmt.Fprintf(out, "\nbody, %d bytes that are no text\n%s", b.Size, hex.Dump(raw))
	}
}

func executions(n int64) string {
	if n == 1 {
		return "1 execution"
	}
	return fmt.Sprintf("%d executions", n)
}
