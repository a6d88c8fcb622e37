// Package interview is the questions of docs/interview, for the command and for whoever wants to ask them: the same files that people
// read here.
package interview

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

//go:embed *.md
var files embed.FS

// The sections of a question, in the order in which they stand.
const (
	Short   = "30 seconds"
	Long    = "3 minutes"
	Further = "Follow-ups"
	Wrong   = "Wrong answers"
	Proof   = "Proof"
)

// Sections lists them.
func Sections() []string { return []string{Short, Long, Further, Wrong, Proof} }

// Group is a file of questions.
type Group struct {
	Name  string `json:"name"`  // as in its file's name: "sagas"
	Title string `json:"title"` // "Sagas"
	File  string `json:"file"`  // below docs/interview
}

// Question is one question with its answers, in Markdown.
type Question struct {
	Number    int      `json:"number"`
	Group     string   `json:"group"` // the name of its group
	Question  string   `json:"question"`
	Short     string   `json:"short"`
	Long      string   `json:"long"`
	FollowUps []string `json:"followUps"`
	Wrong     []string `json:"wrong"`
	Code      []Code   `json:"code"`
	Exercises []int    `json:"exercises"` // their numbers

	sections map[string]string
}

// Section is the Markdown under one of the headings.
func (q Question) Section(name string) string { return q.sections[name] }

// Code is where the proof of an answer stands.
type Code struct {
	Symbol string `json:"symbol"` // "Policy.Decide"
	File   string `json:"file"`   // from the root of the repository
}

var (
	groupFile = regexp.MustCompile(`^\d+-([a-z]+)\.md$`)
	heading   = regexp.MustCompile(`^(\d+)\. (.+)$`)
	link      = regexp.MustCompile(`\[([^\[\]]+)\]\(([^)\s]+)\)`)
	exercise  = regexp.MustCompile(`^exercise (\d+)$`)
)

// Read returns all groups and questions in their order. An error says which part of which question is missing.
func Read() ([]Group, []Question, error) {
	names, err := fs.Glob(files, "[0-9]*.md")
	if err != nil {
		return nil, nil, fmt.Errorf("list the questions: %w", err)
	}
	var groups []Group
	var questions []Question
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, nil, fmt.Errorf("read questions: %w", err)
		}
		match := groupFile.FindStringSubmatch(name)
		parts := strings.Split(string(text), "\n## ")
		title, isTitle := strings.CutPrefix(strings.TrimSpace(parts[0]), "# ")
		if match == nil || !isTitle {
			return nil, nil, fmt.Errorf("%s does not begin with the title of its group, or is no number and name", name)
		}
		groups = append(groups, Group{Name: match[1], Title: title, File: name})
		for _, part := range parts[1:] {
			q, err := parse(part)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", name, err)
			}
			q.Group = match[1]
			questions = append(questions, q)
		}
	}
	return groups, questions, nil
}

func parse(text string) (Question, error) {
	parts := strings.Split(text, "\n### ")
	head := heading.FindStringSubmatch(strings.TrimSpace(parts[0]))
	if head == nil {
		return Question{}, fmt.Errorf("%.60q is no number and question", parts[0])
	}
	q := Question{Question: head[2]}
	q.Number, _ = strconv.Atoi(head[1])
	sections := map[string]string{}
	for i, part := range parts[1:] {
		name, content, _ := strings.Cut(part, "\n")
		if i >= len(Sections()) || name != Sections()[i] || strings.TrimSpace(content) == "" {
			return q, fmt.Errorf("question %d: its sections are %q, in this order, and none is empty; not %q", q.Number, Sections(), name)
		}
		sections[name] = strings.TrimSpace(content)
	}
	if len(sections) != len(Sections()) {
		return q, fmt.Errorf("question %d has %d sections of %q", q.Number, len(sections), Sections())
	}
	q.sections = sections
	q.Short, q.Long = sections[Short], sections[Long]
	q.FollowUps, q.Wrong = items(sections[Further]), items(sections[Wrong])
	for _, l := range link.FindAllStringSubmatch(sections[Proof], -1) {
		if number := exercise.FindStringSubmatch(l[1]); number != nil {
			n, _ := strconv.Atoi(number[1])
			q.Exercises = append(q.Exercises, n)
		} else if strings.HasSuffix(l[2], ".go") {
			q.Code = append(q.Code, Code{Symbol: strings.Trim(l[1], "`"), File: fromRoot(l[2])})
		}
	}
	return q, nil
}

// items are the items of a list; an item may go on over several lines.
func items(list string) []string {
	var found []string
	for item := range strings.SplitSeq("\n"+list, "\n- ") {
		if item = strings.TrimSpace(item); item != "" {
			found = append(found, item)
		}
	}
	return found
}

func fromRoot(target string) string { return path.Join("docs", "interview", target) }

// Plain is Markdown as it is read in a terminal: a link becomes its text, with the file behind it when it is code.
func Plain(text string) string {
	text = link.ReplaceAllStringFunc(text, func(l string) string {
		parts := link.FindStringSubmatch(l)
		if strings.HasSuffix(parts[2], ".go") {
			return parts[1] + " (" + fromRoot(parts[2]) + ")"
		}
		return parts[1]
	})
	return strings.NewReplacer("`", "", "**", "", "*", "").Replace(text)
}
