package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"example.com/banking/exercises"
	"example.com/banking/internal/invariants"

	pages "example.com/banking/docs/exercises"
)

// exerciseCommand lists, shows and runs what is in package exercises.
type exerciseCommand struct {
	List exerciseList `cmd:"" help:"All exercises, with what they need and how long they take."`
	Show exerciseShow `cmd:"" help:"The page of an exercise: question, what to do, what to see, why."`
	Run  exerciseRun  `cmd:"" help:"Break the running bank, prove that it broke and that it recovered, put everything back."`
}

type exerciseList struct{}

// exerciseItem is an exercise in a list.
type exerciseItem struct {
	Number       int      `json:"number"`
	Name         string   `json:"name"`
	Title        string   `json:"title"`
	Question     string   `json:"question"`
	Needs        []string `json:"needs"`
	TakesSeconds float64  `json:"takesSeconds"`
	Page         string   `json:"page"`
}

func exerciseItems() []exerciseItem {
	var items []exerciseItem
	for _, e := range exercises.All() {
		needs := []string{}
		for _, need := range e.Needs {
			needs = append(needs, string(need))
		}
		items = append(items, exerciseItem{e.Number, e.Name, e.Title, e.Question, needs, e.Takes.Seconds(),
			fmt.Sprintf("docs/exercises/%02d-%s.md", e.Number, e.Name)})
	}
	return items
}

func (*exerciseList) Run(out *output) error {
	items := exerciseItems()
	if out.json {
		return out.document(items)
	}
	var rows [][]string
	for _, e := range items {
		rows = append(rows, []string{fmt.Sprint(e.Number), e.Title, fmt.Sprintf("%.0f s", e.TakesSeconds), strings.Join(e.Needs, ", "), e.Page})
	}
	if err := out.table([]string{"NO", "EXERCISE", "TAKES", "NEEDS", "PAGE"}, rows); err != nil {
		return err
	}
	fmt.Fprintf(out, "\ncontrol: a bank from \"make up\" (or \"bank up\"). faults: the same, or services with FAULTS=on.\nbank exercise show 1 · bank exercise run 1\n")
	return nil
}

// exerciseNumber is which exercise is meant.
type exerciseNumber struct {
	Number int `arg:"" help:"Number of the exercise."`
}

func (n exerciseNumber) find() (exercises.Exercise, pages.Page, error) {
	e, ok := exercises.Find(n.Number)
	if !ok {
		return e, pages.Page{}, fmt.Errorf("there is no exercise %d: see \"bank exercise list\"", n.Number)
	}
	page, err := pages.Read(e.Number, e.Name)
	return e, page, err
}

type exerciseShow struct{ exerciseNumber }

func (c *exerciseShow) Run(out *output) error {
	e, page, err := c.find()
	if err != nil {
		return err
	}
	if !out.json {
		_, err := fmt.Fprint(out, page.Text)
		return err
	}
	sections := map[string]string{}
	for _, name := range pages.Sections() {
		sections[name] = page.Section(name)
	}
	return out.document(map[string]any{"number": e.Number, "title": page.Title, "sections": sections, "text": page.Text})
}

// breakable is the running bank as the exercises want it. logs is the folder with the services' logs, "" when it is elsewhere.
func breakable(to *endpoints, dir string) *exercises.Bank {
	logs, lock := "", ""
	if to.ControlURL != "" { // a bank of this folder, and not of a container
		logs, lock = filepath.Join(dir, "logs"), filepath.Join(dir, "exercise.lock")
	}
	return &exercises.Bank{
		AccountURL: to.AccountURL, TransferURL: to.TransferURL, AMQPURL: to.AMQPURL, ManagementURL: to.ManagementURL,
		AccountDatabaseURL: to.AccountDatabaseURL, TransferDatabaseURL: to.TransferDatabaseURL, AdminToken: to.AdminToken,
		ControlURL: to.ControlURL, LockFile: lock, Logs: logs,
		Verify: func(ctx context.Context) (invariants.Report, error) { return verify(ctx, to, time.Minute) },
	}
}

// errExercise says that a run did not pass; why has been told.
var errExercise = errors.New("the exercise has not passed")
