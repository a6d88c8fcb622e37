// Package pages is the text of the exercises, for the command and for whoever wants to show it: the same files that people read here.
package pages

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.md
var files embed.FS

// The sections of a page, in the order in which they stand.
const (
	Question  = "Question"
	Predict   = "Predict"
	Do        = "Do"
	See       = "What you see"
	Why       = "Why"
	Repair    = "Replay and repair"
	Check     = "Check"
	Interview = "Interview question"
)

// Sections lists them.
func Sections() []string {
	return []string{Question, Predict, Do, See, Why, Repair, Check, Interview}
}

// Page is one exercise as people read it.
type Page struct {
	File  string // "01-poison.md"
	Title string // without the number
	Text  string // all of it, Markdown

	sections map[string]string
}

// Section is the text under one of the headings.
func (p Page) Section(name string) string { return p.sections[name] }

// Read returns the page of an exercise.
func Read(number int, name string) (Page, error) {
	p := Page{File: fmt.Sprintf("%02d-%s.md", number, name), sections: map[string]string{}}
	content, err := files.ReadFile(p.File)
	if err != nil {
		return p, fmt.Errorf("page of exercise %d: %w", number, err)
	}
	p.Text = string(content)
	head, rest, _ := strings.Cut(p.Text, "\n## ")
	title, _, _ := strings.Cut(head, "\n")
	if p.Title = strings.TrimPrefix(title, fmt.Sprintf("# %d. ", number)); p.Title == title {
		return p, fmt.Errorf("%s does not begin with its number and title", p.File)
	}
	for part := range strings.SplitSeq(rest, "\n## ") {
		heading, text, _ := strings.Cut(part, "\n")
		p.sections[heading] = strings.TrimSpace(text)
	}
	return p, nil
}

// Files lists the names of all pages, README.md aside.
func Files() ([]string, error) {
	names, err := fs.Glob(files, "[0-9]*.md")
	if err != nil {
		return nil, fmt.Errorf("list the pages: %w", err)
	}
	return names, nil
}

// Index is README.md.
func Index() string {
	content, err := files.ReadFile("README.md")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(content)
}
