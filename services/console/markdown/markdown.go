// Package markdown reads the part of Markdown that the pages of the exercises are written in, into a tree that the console's page makes
// elements of. There is no HTML on the way: what looks like markup in a text is a text, for whoever shows the tree.
//
// It knows paragraphs, headings, lists, tables and fenced code, and inside of them code, emphasis, strong emphasis and links. What
// it does not know stays text.
package markdown

import (
	"regexp"
	"strings"
)

// Block is a piece of a text that stands on lines of its own.
type Block struct {
	Kind  string     `json:"kind"`           // paragraph, heading, code, list, numbered or table
	Spans []Span     `json:"spans,omitzero"` // of a paragraph and a heading
	Code  string     `json:"code,omitzero"`
	Items [][]Span   `json:"items,omitzero"` // of a list
	Rows  [][][]Span `json:"rows,omitzero"`  // of a table; the first is its head
}

// Span is a piece of a line.
type Span struct {
	Kind  string `json:"kind"`           // text, code, em, strong or link
	Text  string `json:"text,omitzero"`  // of text and code
	Spans []Span `json:"spans,omitzero"` // of all others
	To    string `json:"to,omitzero"`    // of a link, as it is written
}

var (
	heading  = regexp.MustCompile(`^#{1,6} +`)
	bullet   = regexp.MustCompile(`^[-*] +`)
	numbered = regexp.MustCompile(`^[0-9]+\. +`)
	ruler    = regexp.MustCompile(`^\|[-| :]+\|$`) // between a table's head and its rows
)

// Blocks reads a text.
func Blocks(text string) []Block {
	var blocks []Block
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); {
		line := lines[i]
		switch {
		case strings.TrimSpace(line) == "":
			i++
		case strings.HasPrefix(line, "```"):
			end := i + 1
			for end < len(lines) && !strings.HasPrefix(lines[end], "```") {
				end++
			}
			blocks = append(blocks, Block{Kind: "code", Code: strings.Join(lines[i+1:end], "\n")})
			i = end + 1
		case strings.HasPrefix(line, "|"):
			var table Block
			table, i = readTable(lines, i)
			blocks = append(blocks, table)
		case heading.MatchString(line):
			blocks = append(blocks, Block{Kind: "heading", Spans: Spans(heading.ReplaceAllString(line, ""))})
			i++
		case bullet.MatchString(line):
			var list Block
			list, i = readList(lines, i, "list", bullet)
			blocks = append(blocks, list)
		case numbered.MatchString(line):
			var list Block
			list, i = readList(lines, i, "numbered", numbered)
			blocks = append(blocks, list)
		default:
			from := i
			for i++; i < len(lines) && !begins(lines[i]); i++ {
			}
			blocks = append(blocks, Block{Kind: "paragraph", Spans: Spans(joined(lines[from:i]))})
		}
	}
	return blocks
}

// begins says whether something else than the rest of a paragraph begins with the line.
func begins(line string) bool {
	return strings.TrimSpace(line) == "" || strings.HasPrefix(line, "```") || strings.HasPrefix(line, "|") ||
		heading.MatchString(line) || bullet.MatchString(line)
}

func joined(lines []string) string {
	trimmed := make([]string, len(lines))
	for i, line := range lines {
		trimmed[i] = strings.TrimSpace(line)
	}
	return strings.Join(trimmed, " ")
}

func readTable(lines []string, i int) (Block, int) {
	table := Block{Kind: "table"}
	for ; i < len(lines) && strings.HasPrefix(lines[i], "|"); i++ {
		line := strings.TrimSpace(lines[i])
		if ruler.MatchString(line) {
			continue
		}
		var row [][]Span
		for cell := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|") {
			row = append(row, Spans(strings.TrimSpace(cell)))
		}
		table.Rows = append(table.Rows, row)
	}
	return table, i
}

// readList reads the items, each with the indented lines below it.
func readList(lines []string, i int, kind string, mark *regexp.Regexp) (Block, int) {
	list := Block{Kind: kind}
	for i < len(lines) && mark.MatchString(lines[i]) {
		from := i
		for i++; i < len(lines) && strings.HasPrefix(lines[i], "  "); i++ {
		}
		item := append([]string{mark.ReplaceAllString(lines[from], "")}, lines[from+1:i]...)
		list.Items = append(list.Items, Spans(joined(item)))
	}
	return list, i
}

// Spans reads what stands in one line, or in lines that belong together.
func Spans(text string) []Span {
	spans := []Span{}
	plain := 0 // what stands before it has been read
	take := func(to int, s Span, rest int) {
		if to > plain {
			spans = append(spans, Span{Kind: "text", Text: text[plain:to]})
		}
		if rest > to {
			spans = append(spans, s)
		}
		plain = rest
	}
	for i := 0; i < len(text); {
		s, length := spanAt(text, i)
		if length == 0 {
			i++
			continue
		}
		take(i, s, i+length)
		i += length
	}
	take(len(text), Span{}, len(text))
	return spans
}

// spanAt reads the span that begins at i; its length is 0 when none does.
func spanAt(text string, i int) (Span, int) {
	rest := text[i:]
	switch {
	case rest[0] == '`':
		if end := strings.IndexByte(rest[1:], '`'); end > 0 {
			return Span{Kind: "code", Text: rest[1 : 1+end]}, end + 2
		}
	case strings.HasPrefix(rest, "**"):
		if end := closing(rest[2:], "**"); end > 0 {
			return Span{Kind: "strong", Spans: Spans(rest[2 : 2+end])}, end + 4
		}
	case rest[0] == '*' && len(rest) > 1 && rest[1] != ' ':
		if end := closing(rest[1:], "*"); end > 0 {
			return Span{Kind: "em", Spans: Spans(rest[1 : 1+end])}, end + 2
		}
	case rest[0] == '[':
		middle := closing(rest[1:], "](")
		if middle <= 0 {
			break
		}
		to, _, closed := strings.Cut(rest[1+middle+2:], ")")
		if closed && !strings.ContainsAny(to, " []") {
			return Span{Kind: "link", Spans: Spans(rest[1 : 1+middle]), To: to}, 1 + middle + 2 + len(to) + 1
		}
	}
	return Span{}, 0
}

// closing finds the mark outside of code.
func closing(text, mark string) int {
	code := false
	for i := range len(text) {
		if text[i] == '`' {
			code = !code
		}
		if !code && strings.HasPrefix(text[i:], mark) {
			return i
		}
	}
	return -1
}
