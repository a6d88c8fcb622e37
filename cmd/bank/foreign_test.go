package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

func TestJSONOnATerminalIsPrintableAndSaysTheSame(t *testing.T) {
	t.Parallel()
	const text = "é \u009b31m \u202egpj.exe \x7f 日本 \U000e0041 \U0001f600 \x1b"
	var plain, shown strings.Builder
	if err := newOutput(&plain, true).document(map[string]string{text: text}); err != nil {
		t.Fatal(err)
	}
	w := &printableJSON{to: &shown}
	for i := range plain.Len() { // characters may come in pieces
		if n, err := fmt.Fprint(w, plain.String()[i:i+1]); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := shown.String(); strings.ContainsAny(got, "\u009b\u202e\x7f\x1b\U000e0041") || !strings.Contains(got, "日本") || !strings.Contains(got, `\udb40\udc41`) {
		t.Errorf("shown is %q", got)
	}
	var back map[string]string
	if err := json.Unmarshal([]byte(shown.String()), &back); err != nil || back[text] != text {
		t.Errorf("it says %q, %v", back, err)
	}
}
