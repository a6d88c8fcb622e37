package markdown_test

import (
	"reflect"
	"strings"
	"testing"

	"example.com/banking/services/console/markdown"

	pages "example.com/banking/docs/exercises"
)

func text(s string) markdown.Span { return markdown.Span{Kind: "text", Text: s} }
func code(s string) markdown.Span { return markdown.Span{Kind: "code", Text: s} }
func around(kind string, inner ...markdown.Span) markdown.Span {
	return markdown.Span{Kind: kind, Spans: inner}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	link := around("link", code("right"))
	link.To = "../a.go"
	for given, want := range map[string][]markdown.Span{
		"":                        {},
		"plain":                   {text("plain")},
		"a `x*y` b":               {text("a "), code("x*y"), text(" b")},
		"**no** and *never `*`*":  {around("strong", text("no")), text(" and "), around("em", text("never "), code("*"))},
		"see [`right`](../a.go).": {text("see "), link, text(".")},
		"2 * 3 * 4, `open":        {text("2 * 3 * 4, `open")},
		"[not a link] (here)":     {text("[not a link] (here)")},
		"[a](b c)":                {text("[a](b c)")},
		"<b>&amp;</b>":            {text("<b>&amp;</b>")},
		"ends with *":             {text("ends with *")},
	} {
		if got := markdown.Spans(given); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v, want %+v", given, got, want)
		}
	}
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	got := markdown.Blocks("one\n two\n\n```sh\na | b\n\n# no heading\n```\n| h | i |\n| --- | :-: |\n| 1 | `2` |\n### under\n- a\n  b\n- c\n\n1. d\n2. e\n3.f\n```\nnot closed")
	want := []markdown.Block{
		{Kind: "paragraph", Spans: []markdown.Span{text("one two")}},
		{Kind: "code", Code: "a | b\n\n# no heading"},
		{Kind: "table", Rows: [][][]markdown.Span{{{text("h")}, {text("i")}}, {{text("1")}, {code("2")}}}},
		{Kind: "heading", Spans: []markdown.Span{text("under")}},
		{Kind: "list", Items: [][]markdown.Span{{text("a b")}, {text("c")}}},
		{Kind: "numbered", Items: [][]markdown.Span{{text("d")}, {text("e")}}},
		{Kind: "paragraph", Spans: []markdown.Span{text("3.f")}},
		{Kind: "code", Code: "not closed"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// Every page is understood: no mark of Markdown is left in what people read, and nothing of a text is lost.
func TestEveryPageIsUnderstood(t *testing.T) {
	t.Parallel()
	files, err := pages.Files()
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		var number int
		for _, digit := range name[:2] {
			number = number*10 + int(digit-'0')
		}
		page, err := pages.Read(number, strings.TrimSuffix(name[3:], ".md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range pages.Sections() {
			var read reader
			read.blocks(markdown.Blocks(page.Section(section)))
			for _, mark := range []string{"**", "](", "```", "`", "|", "\n#"} {
				if strings.Contains(read.text.String(), mark) {
					t.Errorf("%s, %s: %q is left in\n%s", name, section, mark, read.text.String())
				}
			}
			if got, want := letters(read.all.String()), letters(page.Section(section)); got != want {
				t.Errorf("%s, %s: read\n%s\nwant\n%s", name, section, got, want)
			}
		}
	}
}

// reader collects what is read of a page: texts apart from code.
type reader struct{ text, all strings.Builder }

func (r *reader) blocks(blocks []markdown.Block) {
	for _, b := range blocks {
		r.spans(b.Spans)
		r.all.WriteString(b.Code)
		for _, item := range b.Items {
			r.spans(item)
		}
		for _, row := range b.Rows {
			for _, cell := range row {
				r.spans(cell)
			}
		}
	}
}

func (r *reader) spans(spans []markdown.Span) {
	for _, s := range spans {
		if s.Kind == "text" {
			r.text.WriteString(s.Text)
		}
		r.all.WriteString(s.Text)
		r.spans(s.Spans)
		r.all.WriteString(s.To)
	}
}

// letters are what is left of a text without the marks, and without the numbers and languages that Markdown knows and readers do not see.
func letters(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(text, "```sh", "")) {
		if _, rest, item := strings.Cut(line, ". "); item && line[0] >= '1' && line[0] <= '9' && strings.Index(line, ". ") == 1 {
			line = rest
		}
		for _, c := range line {
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
				kept.WriteRune(c)
			}
		}
	}
	return kept.String()
}
