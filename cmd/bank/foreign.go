package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// foreign makes text of somebody else's harmless for a terminal, on one line: what would move the cursor, change colours, type
// into the shell or turn the direction of writing shows as an escape of Go's instead of taking effect.
func foreign(text string) string { return escaped(text, false) }

// foreignLines is the same for text that keeps its lines and tabs.
func foreignLines(text string) string { return escaped(text, true) }

func escaped(text string, lines bool) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case lines && (r == '\n' || r == '\t'), unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default: // control characters beyond ASCII, and format characters such as the overrides of direction
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[size:]
	}
	return b.String()
}

// printableJSON passes JSON on to a terminal with the same care: what is not printable becomes an escape of JSON's own, so that the
// document says what it said. JSON escapes the control characters of ASCII itself, but neither DEL nor those beyond ASCII.
type printableJSON struct {
	to   io.Writer
	part []byte // the beginning of a character whose end has not come yet
}

func (w *printableJSON) Write(p []byte) (int, error) {
	text := append(w.part, p...)
	var b []byte
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		switch {
		case r < 0x7f, r != utf8.RuneError && unicode.IsPrint(r):
			b = append(b, text[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
		text = text[size:]
	}
	w.part = slices.Clone(text)
	if _, err := w.to.Write(b); err != nil {
		return 0, err
	}
	return len(p), nil
}

// short cuts text to so many characters.
func short(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:limit-1]) + "…"
}
