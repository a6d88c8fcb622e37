package exercises_test

import (
	"fmt"
	"strings"
	"testing"

	pages "example.com/banking/docs/exercises"
	"example.com/banking/exercises"
)

// What people read and what runs are about the same thing.
func TestPagesAndExercisesAgree(t *testing.T) {
	t.Parallel()
	files, err := pages.Files()
	if err != nil {
		t.Fatal(err)
	}
	all := exercises.All()
	if len(files) != len(all) {
		t.Errorf("%d pages for %d exercises: %v", len(files), len(all), files)
	}
	for i, e := range all {
		if e.Number != i+1 || e.Takes <= 0 {
			t.Errorf("exercise %d of the list: %+v", i+1, e)
		}
		page, err := pages.Read(e.Number, e.Name)
		if err != nil {
			t.Error(err)
			continue
		}
		if page.Title != e.Title {
			t.Errorf("%s is called %q, the exercise %q", page.File, page.Title, e.Title)
		}
		if words(page.Section(pages.Question)) != words(e.Question) {
			t.Errorf("%s asks\n%s\nthe exercise asks\n%s", page.File, page.Section(pages.Question), e.Question)
		}
		for _, section := range pages.Sections() {
			if len(page.Section(section)) < 20 {
				t.Errorf("%s says next to nothing under %q", page.File, section)
			}
		}
		if command := fmt.Sprintf("bin/bank exercise run %d", e.Number); !strings.Contains(page.Section(pages.Do), command) {
			t.Errorf("%s does not name the command %q", page.File, command)
		}
	}
}

// The index names every page, and says how long an exercise takes as the command does.
func TestIndexNamesEveryPage(t *testing.T) {
	t.Parallel()
	for _, e := range exercises.All() {
		line := fmt.Sprintf("| %d | [%s](%02d-%s.md) | %.0f s |", e.Number, e.Title, e.Number, e.Name, e.Takes.Seconds())
		if !strings.Contains(pages.Index(), line) {
			t.Errorf("the index lacks %s", line)
		}
	}
}

// words is a text without its line breaks, and without the marks of code.
func words(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "`", "")
}
