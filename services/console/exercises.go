package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"example.com/banking/exercises"
	"example.com/banking/pkg/service"
	"example.com/banking/services/console/markdown"
	"example.com/banking/services/console/runs"
	"example.com/banking/services/console/upstream"
	"github.com/labstack/echo/v4"

	pages "example.com/banking/docs/exercises"
)

// lookAround is how long a run from the page waits before it puts things back, unless somebody lets it go on. It is long enough to read,
// and short enough that what was forgotten is gone before the next visitor wonders about it.
const lookAround = 10 * time.Minute

// exercisePages shows the exercises to anybody, and lets who is signed in run them. See package runs for why it is not the console that
// runs them.
type exercisePages struct {
	runs     *runs.Runs
	sessions *sessions
	log      *slog.Logger
}

func (p *exercisePages) register(e *echo.Echo) {
	e.GET("/api/exercises", p.list)
	e.GET("/api/exercises/:number", p.show)
	e.POST("/api/exercises/:number/run", p.act("run", func(number int) error {
		_, err := p.runs.Start(number)
		return err
	}))
	e.POST("/api/exercises/:number/stop", p.act("stop", p.runs.Stop))
	e.POST("/api/exercises/:number/continue", p.act("continue", p.runs.Continue))
}

// exerciseView is an exercise in the list.
type exerciseView struct {
	Number       int              `json:"number"`
	Title        string           `json:"title"`
	Question     string           `json:"question"`
	TakesSeconds float64          `json:"takesSeconds"`
	Needs        []exercises.Need `json:"needs"`
}

// exercisePage is one with its page.
type exercisePage struct {
	exerciseView
	Possible bool              `json:"possible"` // it can be run from here
	Sections []exerciseSection `json:"sections"`
}

type exerciseSection struct {
	Name   string           `json:"name"`
	Blocks []markdown.Block `json:"blocks"`
}

func viewOf(e exercises.Exercise) exerciseView {
	return exerciseView{e.Number, e.Title, e.Question, e.Takes.Seconds(), append([]exercises.Need{}, e.Needs...)}
}

func (p *exercisePages) list(c echo.Context) error {
	items := []exerciseView{}
	for _, e := range exercises.All() {
		items = append(items, viewOf(e))
	}
	return sendJSON(c, struct {
		Items    []exerciseView `json:"items"`
		Possible bool           `json:"possible"`
	}{items, p.runs.Possible()})
}

func (p *exercisePages) show(c echo.Context) error {
	e, err := exerciseOf(c)
	if err != nil {
		return err
	}
	page, err := pages.Read(e.Number, e.Name)
	if err != nil {
		return err
	}
	answer := exercisePage{exerciseView: viewOf(e), Possible: p.runs.Possible()}
	for _, name := range pages.Sections() {
		answer.Sections = append(answer.Sections, exerciseSection{name, markdown.Blocks(page.Section(name))})
	}
	return sendJSON(c, answer)
}

// act gives an order about the run of an exercise, for who is signed in. What becomes of it is told by events.
func (p *exercisePages) act(verb string, order func(number int) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		signedIn, err := p.sessions.need(c)
		if err != nil {
			return err
		}
		e, err := exerciseOf(c)
		if err != nil {
			return err
		}
		if err := order(e.Number); err != nil {
			return orderRefused(c, err)
		}
		p.log.Info("an order about an exercise", "exercise", e.Number, "order", verb, "operator", signedIn.operator)
		return c.NoContent(http.StatusNoContent)
	}
}

func orderRefused(c echo.Context, err error) error {
	var silent *upstream.Silent
	var refusal *upstream.Refusal
	switch {
	case errors.Is(err, runs.ErrNoKeeper):
		return service.NewProblem(http.StatusNotImplemented, "Exercises cannot be run from here: "+err.Error()+".")
	case errors.Is(err, runs.ErrBusy), errors.Is(err, runs.ErrNotRunning):
		return service.Conflict(sentence(err.Error()))
	case errors.As(err, &silent):
		return away(c, err)
	case errors.As(err, &refusal) && refusal.Status == http.StatusConflict:
		return service.Conflict(sentence(refusal.Detail))
	case errors.As(err, &refusal) && refusal.Status == http.StatusUnauthorized:
		return service.NewProblem(http.StatusBadGateway, "The bank's keeper does not take the console's admin token: they were started with different ones.")
	case errors.As(err, &refusal):
		return service.NewProblem(http.StatusBadGateway, sentence(err.Error()))
	}
	return err
}

// exerciseOf finds the exercise that the path names.
func exerciseOf(c echo.Context) (exercises.Exercise, error) {
	text := c.Param("number")
	number, err := strconv.Atoi(text)
	e, known := exercises.Find(number)
	if err != nil || !known || strconv.Itoa(number) != text {
		return e, service.NotFound(fmt.Sprintf("There is no such exercise; they are numbered 1 to %d.", len(exercises.All())))
	}
	return e, nil
}

// sentence makes one of an error's text.
func sentence(text string) string {
	first, length := utf8.DecodeRuneInString(text)
	if length == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + text[length:] + "."
}
