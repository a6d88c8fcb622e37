package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/banking/internal/policy"
	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json"
)

func bankPolicy(t *testing.T, args ...string) (code int, out, complaints string) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = run(t.Context(), append([]string{"--dir", t.TempDir(), "policy"}, args...), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// Every plot is a command, and every setting of it a flag; no flag does nothing.
func TestEveryPlotIsACommand(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&commands{})
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string][]string{}
	for _, group := range parser.Model.Children {
		if group.Name == "policy" {
			for _, command := range group.Children {
				flags[command.Name] = []string{}
				for _, flag := range command.Flags {
					if flag.Name != "svg" {
						flags[command.Name] = append(flags[command.Name], flag.Name)
					}
				}
			}
		}
	}
	delete(flags, "list")
	delete(flags, "decisions")
	for _, p := range policy.Plots() {
		var settings, args []string
		for _, s := range p.Settings {
			settings = append(settings, s.Name)
			value := s.Default
			if len(s.Choices) == 0 {
				value = fmt.Sprint(s.Least + 1)
			}
			args = append(args, "--"+s.Name+"="+value)
		}
		if !slices.Equal(flags[p.Name], settings) {
			t.Errorf("%s has the flags %v and the settings %v", p.Name, flags[p.Name], settings)
		}
		delete(flags, p.Name)
		code, out, complaints := bankPolicy(t, append([]string{p.Name}, args...)...)
		if code != 0 || complaints != "" || !strings.HasPrefix(out, p.Title) || !strings.HasSuffix(out, "Computed with "+strings.Join(args, " ")+"\n") {
			t.Errorf("%s: %d %s %s", p.Name, code, complaints, out)
		}
	}
	if len(flags) > 0 {
		t.Errorf("commands without a plot: %v", flags)
	}
}

func TestPolicyAsJSONAndSVG(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "amplification.svg")
	code, out, complaints := bankPolicy(t, "amplification", "--layers=3", "--attempts=3", "--svg", file, "--json")
	if code != 0 || complaints != "" {
		t.Fatalf("%d %s", code, complaints)
	}
	var report struct {
		Settings map[string]string `json:"settings"`
		Figures  []struct {
			Layers int `json:"layers"`
			Each   int `json:"each"`
		} `json:"figures"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if len(report.Figures) != 3 || report.Figures[2].Each != 27 || report.Settings["requests"] != "1000" {
		t.Errorf("got %+v", report)
	}
	svg, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(svg), "<svg ") || !strings.Contains(string(svg), "3 layers of 3 attempts each make 27") {
		t.Errorf("%v: %.300s", err, svg)
	}
}

func TestPolicyRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args, complaint string
		code            int
	}{
		{"storm --messages=0 --jitter=much", "policy storm: messages must be a whole number from 1 to 10,000; jitter must be one of full, equal, decorrelated, consumer, tiers", 1},
		{"dampers --outage=1h", "policy dampers: outage must be a whole number from 1 to 60", 1},
		{"delays --svg /nowhere/at/all.svg", "the drawing was not written: open /nowhere/at/all.svg", 1},
		{"delays --colour=red", "unknown flag --colour", 2},
		{"weather", "unexpected argument weather", 2},
	} {
		code, out, complaints := bankPolicy(t, strings.Fields(c.args)...)
		if code != c.code || out != "" || !strings.Contains(complaints, c.complaint) {
			t.Errorf("%s: %d %q %q, want %d and %q", c.args, code, out, complaints, c.code, c.complaint)
		}
	}
}

func TestPolicyListAndDecisions(t *testing.T) {
	t.Parallel()
	if _, out, _ := bankPolicy(t, "list"); strings.Count(out, "\n") != 1+len(policy.Plots()) || !strings.Contains(out, "--messages=1000") {
		t.Errorf("list:\n%s", out)
	}
	if _, out, _ := bankPolicy(t, "decisions"); strings.Count(out, "\n") != 1+len(policy.Decisions().Rows) || !strings.Contains(out, "NOT_FOUND_AGED") {
		t.Errorf("decisions:\n%s", out)
	}
	var table policy.Table
	if _, out, _ := bankPolicy(t, "decisions", "--json"); json.Unmarshal([]byte(out), &table) != nil || len(table.Rows) != len(policy.Decisions().Rows) {
		t.Errorf("decisions:\n%s", out)
	}
}
