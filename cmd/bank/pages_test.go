package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// markdown reads the pages of a folder below docs, by their path from there.
func markdown(t *testing.T, folder string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	docs := filepath.Join("..", "..", "docs")
	err := filepath.WalkDir(filepath.Join(docs, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(docs, path)
		texts[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

var ourCommand = regexp.MustCompile("bin/bank [^\n`|)]*")

// checkCommands lets the command's own parser read every "bin/bank …" of a page, and says how many there are.
func checkCommands(t *testing.T, page, text string) int {
	t.Helper()
	found := ourCommand.FindAllString(text, -1)
	for _, line := range found {
		line, _, _ = strings.Cut(line, " #") // what a shell leaves out
		args := word.FindAllString(placeholder.ReplaceAllString(line, "x"), -1)
		for i := range args {
			args[i] = strings.Trim(args[i], `",.:;`)
		}
		args = slices.DeleteFunc(args, func(arg string) bool { return arg == "" })
		parser, err := kong.New(&commands{}, kong.Exit(func(int) {}), kong.Writers(new(strings.Builder), new(strings.Builder)))
		if err != nil {
			t.Fatal(err)
		}
		// The name of a group alone, such as `bin/bank service`, is not whole and not wrong.
		if _, err := parser.Parse(args[1:]); err != nil && !strings.HasPrefix(err.Error(), "expected one of") {
			t.Errorf("%s: %s: %v", page, line, err)
		}
	}
	return len(found)
}

// Who follows a page must not meet a command that is not there. (The runbooks write "bank …", and have a test of their own.)
func TestPagesNameCommandsThatExist(t *testing.T) {
	t.Parallel()
	found := 0
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := checkCommands(t, "README.md", string(readme)); n < 20 {
		t.Errorf("README.md has only %d commands", n)
	}
	for page, text := range markdown(t, ".") {
		n := checkCommands(t, page, text)
		if strings.HasPrefix(page, "exercises") && n < 2 { // to run it, and to verify
			t.Errorf("%s has only %d commands", page, n)
		}
		found += n
	}
	if found < 100 {
		t.Errorf("only %d commands", found)
	}
}

var (
	shell    = regexp.MustCompile("(?s)```sh\n(.*?)```")
	makeRule = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
)

// Every line that a walkthrough lets its reader type is one that a test can judge, and is right.
func TestWalkthroughsTypeWhatWorks(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, rule := range makeRule.FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, rule[1])
	}
	lines := 0
	for page, text := range markdown(t, "walkthrough") {
		for _, block := range shell.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(block[1]) {
				lines++
				line = strings.TrimPrefix(strings.TrimSpace(line), "go run ./internal/testenv/hold ")
				args := strings.Fields(line)
				switch {
				case strings.HasPrefix(line, "bin/bank "): // see above
				case strings.HasPrefix(line, "echo '") && strings.HasSuffix(line, "|"):
				case len(args) == 3 && args[0] == "grep" && strings.HasPrefix(args[2], ".bank/logs/"):
				case len(args) == 2 && args[0] == "make" && slices.Contains(targets, args[1]):
				case strings.HasPrefix(line, "go test "):
					checkGoTest(t, page, args[2:])
				default:
					t.Errorf("%s: nothing checks %q", page, line)
				}
			}
		}
	}
	if lines < 15 {
		t.Errorf("only %d lines", lines)
	}
}

// checkGoTest looks for the packages, and for the test that -run names.
func checkGoTest(t *testing.T, page string, args []string) {
	t.Helper()
	test := ""
	if args[0] == "-run" {
		test, args = args[1], args[2:]
	}
	for _, folder := range args {
		files, err := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: there are no tests in %s", page, folder)
		}
		has := func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "\nfunc "+test+"(t *testing.T)")
		}
		if test != "" && !slices.ContainsFunc(files, has) {
			t.Errorf("%s: there is no %s in %s", page, test, folder)
		}
	}
}
