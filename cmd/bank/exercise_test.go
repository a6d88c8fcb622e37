package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	pages "example.com/banking/docs/exercises"
	"example.com/banking/exercises"
)

var ourCommand = regexp.MustCompile("bin/bank [^\n`|)]*")

// Who follows a page must not meet a command that is not there.
func TestExercisesNameCommandsThatExist(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"README.md": pages.Index()}
	for _, e := range exercises.All() {
		page, err := pages.Read(e.Number, e.Name)
		if err != nil {
			t.Fatal(err)
		}
		texts[page.File] = page.Text
	}
	for file, text := range texts {
		found := ourCommand.FindAllString(text, -1)
		if len(found) < 2 { // to run it, and to verify
			t.Errorf("%s has %d commands", file, len(found))
		}
		for _, line := range found {
			args := word.FindAllString(placeholder.ReplaceAllString(line, "x"), -1)
			for i := range args {
				args[i] = strings.Trim(args[i], `",.:`)
			}
			parser, err := kong.New(&commands{}, kong.Exit(func(int) {}), kong.Writers(new(strings.Builder), new(strings.Builder)))
			if err != nil {
				t.Fatal(err)
			}
			// The name of a group alone, such as `bin/bank service`, is not whole and not wrong.
			if _, err := parser.Parse(args[1:]); err != nil && !strings.HasPrefix(err.Error(), "expected one of") {
				t.Errorf("%s: %s: %v", file, line, err)
			}
		}
	}
}

// The list and the page need no bank.
func TestExercisesAreListedAndShown(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{"list": "The poison event", "show 1": "poison-1"} {
		var out, complaints strings.Builder
		if code := run(t.Context(), append([]string{"--dir", t.TempDir(), "exercise"}, strings.Fields(command)...), &out, &complaints); code != 0 ||
			!strings.Contains(out.String(), want) {
			t.Errorf("%s: exit code %d, %s%s", command, code, out.String(), complaints.String())
		}
	}
	for command, want := range map[string]string{"show 99": "there is no exercise 99", "run 1": "not known"} {
		var out, complaints strings.Builder
		if code := run(t.Context(), append([]string{"--dir", t.TempDir(), "exercise"}, strings.Fields(command)...), &out, &complaints); code != 1 ||
			!strings.Contains(out.String()+complaints.String(), want) {
			t.Errorf("%s: exit code %d, %s%s", command, code, out.String(), complaints.String())
		}
	}
}
