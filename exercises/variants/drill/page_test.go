package drill

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var reference = regexp.MustCompile("\\[`([A-Za-z]+)`\\]\\(([^)]+\\.go)\\)")

// folder is where the pages of the exercises are.
var folder = filepath.Join("..", "..", "..", "docs", "exercises")

func readPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(folder, "13-wrong-variants.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// Each variant is set against the real services. (That what is named is there, test/reference checks of all pages.)
func TestPageNamesTheRealServices(t *testing.T) {
	t.Parallel()
	page := readPage(t)
	services := 0
	for _, link := range reference.FindAllStringSubmatch(page, -1) {
		if strings.HasPrefix(link[2], "../../pkg/") {
			services++
		}
	}
	if services < len(variants) {
		t.Errorf("the page names %d places in the real services, and there are %d variants", services, len(variants))
	}
	for _, v := range variants {
		if !strings.Contains(page, "`"+v.Name+"`") {
			t.Errorf("the page does not name %s", v.Name)
		}
	}
}
