package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Not parallel: it works in a folder of its own.
func TestNewServiceSaysWhatItHasMade(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module example.com/banking\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(root, "docs")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below) // anywhere in the checkout
	make := func(args ...string) (code int, out, complaints string) {
		var stdout, stderr strings.Builder
		code = run(t.Context(), append([]string{"new-service"}, args...), &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	code, out, complaints := make("fees", "--consumes=a.b,c.d", "--retry=tiered")
	if code != 0 || complaints != "" || !strings.Contains(out, "services/fees/consumer.go") || !strings.Contains(out, "make up") {
		t.Fatalf("code %d, %s%s", code, out, complaints)
	}
	for line := range strings.Lines(out) {
		if path, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "  "); indented && !strings.Contains(path, " ") {
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("it says that it has made %s: %v", path, err)
			}
		}
	}
	for want, args := range map[string][]string{
		"services/fees is there already":  {"fees"},
		"port 8083 is that of fees":       {"loans", "--port=8083"},
		"2 to 30 small letters":           {"Loans"},
		"is a pattern":                    {"loans", "--consumes=accounts.account.*"},
		"--to and --require belong to":    {"loans", "--to=x"},
		"must be one of":                  {"loans", "--retry=never"},
		"choose a folder outside it with": {"loans", "--module=example.org/loans"},
	} {
		if code, out, complaints := make(args...); code == 0 || out != "" || !strings.Contains(complaints, want) {
			t.Errorf("%v: code %d, %s%s; want %q", args, code, out, complaints, want)
		}
	}
}
