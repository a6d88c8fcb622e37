package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var (
	written     = regexp.MustCompile("(?m)^bank .*$|`bank [^`…]*`")
	placeholder = regexp.MustCompile(`<[^>]*>`)
	word        = regexp.MustCompile(`"[^"]*"|\S+`)
)

// Nobody has time to find out at night that a runbook means another command.
func TestRunbooksNameCommandsThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	found := written.FindAllString(string(page), -1)
	if len(found) < 20 {
		t.Fatalf("only %d commands: %q", len(found), found)
	}
	for _, line := range found {
		line, _, _ = strings.Cut(strings.Trim(line, "`"), "#") // a comment
		line, _, _ = strings.Cut(line, " > ")                  // a file for the output
		args := word.FindAllString(placeholder.ReplaceAllString(line, "x"), -1)
		for i := range args {
			args[i] = strings.Trim(args[i], `"`)
		}
		parser, err := kong.New(&commands{}, kong.Exit(func(int) {}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(args[1:]); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}
