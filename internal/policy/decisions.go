package policy

import "example.com/banking/pkg/retry"

// Decisions is the decision table as it runs; the first row that fits decides.
func Decisions() Table {
	t := Table{Caption: "The first row that fits decides", Columns: columns("class", "when", "action", "delay or reason", "with RETRY_CLASSIFY=off")}
	for _, r := range retry.Rules() {
		class, outcome, off := string(r.Class), string(r.Tier)+r.Reason, "the same"
		if class == "" {
			class = "any"
		}
		if outcome == "" {
			outcome = "no attempt spent"
		}
		if r.Classified {
			off = "skipped"
		}
		t.Rows = append(t.Rows, []string{class, string(r.When), r.Action.String(), outcome, off})
	}
	return t
}
