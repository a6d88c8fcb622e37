package main

import (
	"fmt"
	"strconv"

	"example.com/banking/docs/interview"
	"example.com/banking/pkg/service"
	"example.com/banking/services/console/markdown"
	"github.com/labstack/echo/v4"
)

// interviewPages shows the questions of docs/interview.
type interviewPages struct {
	groups    []interview.Group
	questions []interview.Question
}

func newInterviewPages() (*interviewPages, error) {
	groups, questions, err := interview.Read()
	if err != nil {
		return nil, fmt.Errorf("read the interview: %w", err)
	}
	return &interviewPages{groups, questions}, nil
}

func (p *interviewPages) register(e *echo.Echo) {
	e.GET("/api/interview", p.list)
	e.GET("/api/interview/:number", p.show)
}

// questionView is a question in the list.
type questionView struct {
	Number   int    `json:"number"`
	Group    string `json:"group"` // its title
	Question string `json:"question"`
}

// questionPage is one with its answers.
type questionPage struct {
	questionView
	Sections []questionSection `json:"sections"`
}

type questionSection struct {
	Name   string           `json:"name"`
	Blocks []markdown.Block `json:"blocks"`
}

func (p *interviewPages) viewOf(q interview.Question) questionView {
	title := q.Group
	for _, g := range p.groups {
		if g.Name == q.Group {
			title = g.Title
		}
	}
	return questionView{q.Number, title, q.Question}
}

func (p *interviewPages) list(c echo.Context) error {
	items := []questionView{}
	for _, q := range p.questions {
		items = append(items, p.viewOf(q))
	}
	return sendJSON(c, struct {
		Items []questionView `json:"items"`
	}{items})
}

func (p *interviewPages) show(c echo.Context) error {
	text := c.Param("number")
	for _, q := range p.questions {
		if strconv.Itoa(q.Number) != text {
			continue
		}
		answer := questionPage{questionView: p.viewOf(q)}
		for _, name := range interview.Sections() {
			answer.Sections = append(answer.Sections, questionSection{name, markdown.Blocks(q.Section(name))})
		}
		return sendJSON(c, answer)
	}
	return service.NotFound(fmt.Sprintf("There is no such question; they are numbered 1 to %d.", len(p.questions)))
}
