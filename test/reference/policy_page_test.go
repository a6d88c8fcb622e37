package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/banking/internal/policy"
)

const policyIntroduction = `<!-- Written by "go generate ./test/reference". Change internal/policy, not this page. -->

# The failure policy, in figures

What [the failure policy](failure-policy.md) comes to: how long messages wait, what jitter does, how attempts multiply, what each damper
is good for, and what the same decisions look like on other platforms. No figure on this page was typed: they and the drawings are
computed by ` + "`pkg/retry`" + `, which the services run, on a simulated clock, and a test computes them again. The console's *Policy* page shows
the same with other settings, and so does ` + "`bin/bank policy`" + `.

Real are the decision, the delays, the jitters, the breaker, the budget and the rate limit. A model is the world around them: messages
that arrive by chance, one consumer with eight workers, and a dependency that answers in 20 ms, takes a second's work at once and refuses
what is more, until it is down. It shows what follows from the policy, not how fast anything is; for that there are
[measurements](benchmarks.md).
`

// policyPage is docs/reference/policy.md and its drawings, by file name.
func policyPage(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	var b strings.Builder
	b.WriteString(policyIntroduction)
	for _, p := range policy.Plots() {
		report, err := p.Compute(nil)
		if err != nil {
			t.Fatal(err)
		}
		drawing := "policy-" + p.Name + ".svg"
		files[drawing] = report.Drawing.SVG()
		fmt.Fprintf(&b, "\n## %s\n\n![%s](%s)\n\n%s\n", report.Title, report.About, drawing, report.See)
		for _, table := range report.Tables {
			fmt.Fprintf(&b, "\n%s:\n\n%s", table.Caption, table.Markdown())
		}
		fmt.Fprintf(&b, "\n%s\n\n> %s\n\n", report.Means, report.Interview)
		var settings []string
		for _, s := range p.Settings {
			settings = append(settings, fmt.Sprintf("`--%s` (%s)", s.Name, s.Bounds()))
		}
		fmt.Fprintf(&b, "With other settings: `bin/bank policy %s`, %s.\n", p.Name, strings.Join(settings, ", "))
	}
	files["policy.md"] = b.String()
	return files
}

// Not parallel: with -update it writes.
func TestPolicyPage(t *testing.T) {
	folder := filepath.Join("..", "..", "docs", "reference")
	files := policyPage(t)
	size := 0
	for name, want := range files {
		path := filepath.Join(folder, name)
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not what is computed; run go generate ./test/reference", path)
		}
		size += len(want)
	}
	if size > 150_000 { // drawings are kept in the repository because they are small
		t.Errorf("the page and its drawings are %d bytes", size)
	}
	kept, err := filepath.Glob(filepath.Join(folder, "policy-*.svg"))
	if err != nil || len(kept) != len(files)-1 {
		t.Errorf("%d drawings are kept, %d are shown: %v %v", len(kept), len(files)-1, kept, err)
	}
}
