package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is something about a plot that can be chosen: a whole number within bounds, or one of some words.
type Setting struct {
	Name    string   `json:"name"`
	Label   string   `json:"label"`
	Default string   `json:"default"`
	Least   int      `json:"least"`
	Most    int      `json:"most"`
	Choices []string `json:"choices,omitempty"`
}

// Invalid says what is wrong with one setting.
type Invalid struct{ Setting, Wanted string }

// InvalidSettings is all that is wrong with some settings.
type InvalidSettings []Invalid

func (e InvalidSettings) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Setting + " " + one.Wanted
	}
	return strings.Join(lines, "; ")
}

// Bounds says what a setting may be.
func (s Setting) Bounds() string {
	if len(s.Choices) > 0 {
		return "one of " + strings.Join(s.Choices, ", ")
	}
	return fmt.Sprintf("a whole number from %s to %s", count(s.Least), count(s.Most))
}

func (s Setting) takes(text string) bool {
	if len(s.Choices) > 0 {
		return slices.Contains(s.Choices, text)
	}
	n, err := strconv.Atoi(text)
	return err == nil && n >= s.Least && n <= s.Most && strconv.Itoa(n) == text
}

// values are checked settings.
type values map[string]string

func (v values) word(name string) string { return v[name] }

func (v values) number(name string) int {
	n, err := strconv.Atoi(v[name])
	if err != nil {
		panic("policy: setting " + name + " was not checked")
	}
	return n
}

func (v values) seconds(name string) time.Duration {
	return time.Duration(v.number(name)) * time.Second
}

// read checks what was given; what was not has its default.
func read(settings []Setting, given map[string]string) (values, error) {
	read := values{}
	var wrong InvalidSettings
	for _, s := range settings {
		text, ok := given[s.Name]
		switch {
		case !ok:
			text = s.Default
		case !s.takes(text):
			wrong = append(wrong, Invalid{s.Name, "must be " + s.Bounds()})
		}
		read[s.Name] = text
	}
	var unknown []string
	for name := range given {
		if _, known := read[name]; !known {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		names := make([]string, len(settings))
		for i, s := range settings {
			names[i] = s.Name
		}
		wrong = append(wrong, Invalid{name, "is no setting of this plot; it has " + strings.Join(names, ", ")})
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return read, nil
}
