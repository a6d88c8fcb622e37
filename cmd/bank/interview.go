package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-isatty"

	"example.com/banking/docs/interview"
)

// interviewCommand asks what docs/interview has. It needs no bank to run.
type interviewCommand struct {
	Group    string `placeholder:"NAME" help:"Only this group: sagas, idempotency, retry, delivery or operations."`
	Question int    `placeholder:"N" help:"Only the question with this number."`
	Count    int    `placeholder:"N" help:"At most so many."`
	Seed     uint64 `placeholder:"N" help:"The same order again; it is printed at the end. Without it a random one."`
	List     bool   `help:"List the questions, without answers."`
}

func (c *interviewCommand) Run(ctx context.Context, out *output) error {
	groups, all, err := interview.Read()
	if err != nil {
		return err
	}
	questions, err := c.choose(groups, all)
	if err != nil {
		return err
	}
	seed := c.Seed
	if seed == 0 {
		seed = uint64(rand.Uint32N(1_000_000)) + 1
	}
	if !c.List {
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(questions), func(i, j int) { questions[i], questions[j] = questions[j], questions[i] })
	}
	if c.Count > 0 {
		questions = questions[:min(c.Count, len(questions))]
	}
	switch {
	case out.json:
		return out.document(questions)
	case c.List:
		return listQuestions(out, questions)
	}
	i := &interviewer{out: out}
	if isatty.IsTerminal(os.Stdin.Fd()) && out.terminal {
		i.listen(ctx, os.Stdin)
	}
	for n, q := range questions {
		if !i.ask(ctx, q, n+1, len(questions)) {
			break
		}
	}
	if ctx.Err() == nil && len(questions) > 1 {
		fmt.Fprintln(out, out.faint(fmt.Sprintf("The same order again: --seed %d", seed)))
	}
	return nil
}

// choose takes the questions that are meant.
func (c *interviewCommand) choose(groups []interview.Group, all []interview.Question) ([]interview.Question, error) {
	if c.Count < 0 {
		return nil, fmt.Errorf("--count must be 1 or more")
	}
	var names []string
	known := c.Group == ""
	for _, g := range groups {
		names = append(names, g.Name)
		known = known || g.Name == c.Group
	}
	if !known {
		return nil, fmt.Errorf("there is no group %.60q; the groups are %s", c.Group, strings.Join(names, ", "))
	}
	chosen := []interview.Question{}
	for _, q := range all {
		if (c.Group == "" || q.Group == c.Group) && (c.Question == 0 || q.Number == c.Question) {
			chosen = append(chosen, q)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("there is no such question %d: see \"bank interview --list\"", c.Question)
	}
	return chosen, nil
}

func listQuestions(out *output, questions []interview.Question) error {
	var rows [][]string
	for _, q := range questions {
		rows = append(rows, []string{fmt.Sprint(q.Number), q.Group, q.Question})
	}
	return out.table([]string{"NO", "GROUP", "QUESTION"}, rows)
}

// interviewer asks, and waits for the Enter key where somebody is there to press it.
type interviewer struct {
	out     *output
	pressed <-chan struct{} // a key was pressed; closed at the end of the input; nil: nobody is there
}

// listen reads lines from the terminal. The goroutine ends with the program: a read of a terminal cannot be interrupted.
func (i *interviewer) listen(ctx context.Context, keys io.Reader) {
	pressed := make(chan struct{})
	i.pressed = pressed
	go func() {
		defer close(pressed)
		reader := bufio.NewReader(keys)
		for {
			if _, err := reader.ReadString('\n'); err != nil {
				return
			}
			select {
			case pressed <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
}

// ask asks one question; it answers false when nobody wants to go on.
func (i *interviewer) ask(ctx context.Context, q interview.Question, n, of int) bool {
	if n > 1 {
		fmt.Fprintln(i.out)
	}
	fmt.Fprintf(i.out, "%s\n%s\n", i.out.faint(fmt.Sprintf("%d of %d · question %d · %s", n, of, q.Number, q.Group)), i.out.strong(interview.Plain(q.Question)))
	if !i.wait(ctx, "Say your answer aloud. Enter: in thirty seconds") {
		return false
	}
	fmt.Fprintf(i.out, "\n%s\n", lines(q.Short, ""))
	if !i.wait(ctx, "Enter: in three minutes") {
		return false
	}
	fmt.Fprintf(i.out, "\n%s\n", lines(q.Long, ""))
	i.list("They will ask", q.FollowUps)
	i.list("Wrong answers, and why", q.Wrong)
	var proof []string
	for _, code := range q.Code {
		proof = append(proof, code.Symbol+"  "+code.File)
	}
	for _, exercise := range q.Exercises {
		proof = append(proof, fmt.Sprintf("bank exercise run %d", exercise))
	}
	i.list("See it", proof)
	return n == of || i.wait(ctx, "Enter: the next question, Ctrl-C: enough")
}

func (i *interviewer) list(title string, items []string) {
	fmt.Fprintf(i.out, "\n%s\n", i.out.strong(title))
	for _, item := range items {
		fmt.Fprintf(i.out, "- %s\n", lines(item, "  "))
	}
}

// lineWidth is what reads well, and fits most terminals.
const lineWidth = 96

// lines is a text as it is read in a terminal: its paragraphs in lines of one width, those behind a first one indented.
func lines(text, indent string) string {
	var paragraphs []string
	for paragraph := range strings.SplitSeq(interview.Plain(text), "\n\n") {
		var full []string
		line := ""
		for word := range strings.FieldsSeq(paragraph) {
			if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > lineWidth {
				full, line = append(full, line), ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		paragraphs = append(paragraphs, strings.Join(append(full, line), "\n"+indent))
	}
	return strings.Join(paragraphs, "\n\n"+indent)
}

func (i *interviewer) wait(ctx context.Context, why string) bool {
	if i.pressed == nil {
		return ctx.Err() == nil
	}
	fmt.Fprintf(i.out, "\n%s ", i.out.faint(why))
	select {
	case _, open := <-i.pressed:
		return open
	case <-ctx.Done():
		fmt.Fprintln(i.out)
		return false
	}
}
