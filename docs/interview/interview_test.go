package interview

import (
	"slices"
	"strings"
	"testing"

	"example.com/banking/exercises"
)

func TestEveryQuestionIsWhole(t *testing.T) {
	t.Parallel()
	groups, questions, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	if len(groups) != 5 || len(questions) < 30 {
		t.Errorf("%d groups with %d questions", len(groups), len(questions))
	}
	inGroup, asked := map[string]int{}, map[string]bool{}
	for i, q := range questions {
		inGroup[q.Group]++
		if q.Number != i+1 {
			t.Errorf("question %d has the number %d", i+1, q.Number)
		}
		if asked[q.Question] {
			t.Errorf("%d is asked twice: %s", q.Number, q.Question)
		}
		asked[q.Question] = true
		short, long := len(strings.Fields(q.Short)), len(strings.Fields(q.Long))
		if short < 20 || short > 80 { // thirty seconds
			t.Errorf("%d: the short answer has %d words", q.Number, short)
		}
		if long < 90 || long > 400 || long < 2*short { // three minutes
			t.Errorf("%d: the long answer has %d words, the short one %d", q.Number, long, short)
		}
		if len(q.FollowUps) < 2 || len(q.Wrong) < 2 {
			t.Errorf("%d has %d follow-ups and %d wrong answers", q.Number, len(q.FollowUps), len(q.Wrong))
		}
		for _, item := range slices.Concat(q.FollowUps, q.Wrong) {
			said, why, answered := strings.Cut(strings.TrimPrefix(item, "*"), "* ")
			if !answered || said == "" || why == "" {
				t.Errorf("%d: %q is no *question or claim* with an answer behind it", q.Number, item)
			}
		}
		if len(q.Code) == 0 || len(q.Exercises) == 0 {
			t.Errorf("%d is proved by %d places in the code and %d exercises", q.Number, len(q.Code), len(q.Exercises))
		}
		for _, n := range q.Exercises {
			if _, known := exercises.Find(n); !known {
				t.Errorf("%d: there is no exercise %d", q.Number, n)
			}
		}
	}
	for _, g := range groups {
		if inGroup[g.Name] < 6 {
			t.Errorf("%s has %d questions", g.Title, inGroup[g.Name])
		}
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	const whole = "7. Why?\n### 30 seconds\na\n### 3 minutes\nb\n### Follow-ups\n- *c* d\n### Wrong answers\n- *e* f\n### Proof\n[`g`](../../h.go)\n"
	if q, err := parse(whole); err != nil || q.Number != 7 || q.Code[0] != (Code{Symbol: "g", File: "h.go"}) {
		t.Errorf("%+v %v", q, err)
	}
	for spoil, want := range map[string]string{
		"7. Why?":                      "no number and question",
		"### 3 minutes\nb\n":           "question 7",
		"### Proof\n[`g`](../../h.go)": "question 7 has 4 sections",
		"a\n":                          "none is empty",
	} {
		if _, err := parse(strings.Replace(whole, spoil, "", 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %q: %v", spoil, err)
		}
	}
}

func TestPlainTextHasNoMarkup(t *testing.T) {
	t.Parallel()
	got := Plain("See [`Policy.Decide`](../../pkg/retry/policy.go) and [ADR 20](../adr/0020.md): *never* `x`.")
	if want := "See Policy.Decide (pkg/retry/policy.go) and ADR 20: never x."; got != want {
		t.Errorf("%q", got)
	}
}
