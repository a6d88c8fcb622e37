package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/banking/docs/interview"
)

func bankInterview(t *testing.T, args ...string) (code int, out, complaints string) {
	t.Helper()
	var o, c strings.Builder
	code = run(t.Context(), append([]string{"--dir", t.TempDir(), "interview"}, args...), &o, &c)
	return code, o.String(), c.String()
}

// Where nobody can press a key, everything is printed, in an order that can be had again.
func TestInterviewPrints(t *testing.T) {
	t.Parallel()
	_, first, _ := bankInterview(t, "--group", "sagas", "--seed", "7")
	_, again, _ := bankInterview(t, "--group", "sagas", "--seed", "7")
	_, other, _ := bankInterview(t, "--group", "sagas", "--seed", "8")
	if first != again || first == other {
		t.Errorf("the seed does not decide the order:\n%s", first)
	}
	for _, want := range []string{"1 of 6", "6 of 6", "How do you test a saga?", "They will ask", "Wrong answers", "bank exercise run", "--seed 7"} {
		if !strings.Contains(first, want) {
			t.Errorf("%q is not in\n%s", want, first)
		}
	}
	for line := range strings.Lines(first) {
		if n := utf8.RuneCountInString(line); n > lineWidth+4 && !strings.HasPrefix(line, "- ") {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
	if strings.Contains(first, "](") || strings.Contains(first, "`") {
		t.Errorf("markup is left in\n%s", first)
	}
}

func TestInterviewInJSONAndAsAList(t *testing.T) {
	t.Parallel()
	code, out, _ := bankInterview(t, "--json", "--count", "3")
	var questions []interview.Question
	if err := json.Unmarshal([]byte(out), &questions); err != nil || code != 0 || len(questions) != 3 || len(questions[0].Code) == 0 {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
	if _, out, _ := bankInterview(t, "--list"); strings.Count(out, "\n") < 31 || strings.Contains(out, "They will ask") {
		t.Errorf("%s", out)
	}
	if _, out, _ := bankInterview(t, "--question", "14"); !strings.Contains(out, "when your consumer throws") || strings.Contains(out, "--seed") {
		t.Errorf("%s", out)
	}
	for want, args := range map[string][]string{
		"the groups are sagas": {"--group", "saga"},
		"--list":               {"--question", "99"},
		"--count must be":      {"--count=-1"},
	} {
		if code, _, complaints := bankInterview(t, args...); code != 1 || !strings.Contains(complaints, want) {
			t.Errorf("%v: exit code %d, %s", args, code, complaints)
		}
	}
}

// At a terminal each answer waits for its key, and the end of the input ends it.
func TestInterviewWaitsForKeys(t *testing.T) {
	t.Parallel()
	_, questions, err := interview.Read()
	if err != nil {
		t.Fatal(err)
	}
	q := questions[0]
	long, _, _ := strings.Cut(lines(q.Long, ""), "\n")
	short, _, _ := strings.Cut(lines(q.Short, ""), "\n")
	for keys, want := range map[string]struct{ short, long, next bool }{
		"":       {},
		"\n":     {short: true},
		"\n\n":   {short: true, long: true},
		"\n\n\n": {short: true, long: true, next: true},
	} {
		var told strings.Builder
		i := &interviewer{out: &output{Writer: &told}}
		i.listen(t.Context(), strings.NewReader(keys))
		next := i.ask(t.Context(), q, 1, 2)
		if got := told.String(); strings.Contains(got, short) != want.short || strings.Contains(got, long) != want.long || next != want.next {
			t.Errorf("%d keys: next %v\n%s", len(keys), next, got)
		}
	}
}
