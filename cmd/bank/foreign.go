package main

import (
	"fmt"
	"strings"
	"unicode"
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

// short cuts text to so many characters.
func short(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:limit-1]) + "…"
}
