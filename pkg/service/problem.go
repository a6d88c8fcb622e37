package service

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
)

// Problem is an error answer as RFC 9457 describes it. Handlers return it as their error.
type Problem struct {
	Type   string       `json:"type"` // "about:blank": the title is that of the status
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Detail string       `json:"detail,omitempty"`
	Errors []FieldError `json:"errors,omitempty"` // what is wrong with the body, member by member

	RetryAfter time.Duration `json:"-"` // becomes the Retry-After header, in whole seconds
	Cause      error         `json:"-"` // for the log, never for the client
}

// FieldError says what is wrong with one member of a body. Field is its name, inner ones after dots.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// FieldErrors collects what is wrong with a body, so that all of it is answered at once.
type FieldErrors []FieldError

// Add notes one finding.
func (f *FieldErrors) Add(field, message string) { *f = append(*f, FieldError{field, message}) }

// Err is the 400 with all findings, or nil when there are none.
func (f FieldErrors) Err() error {
	if len(f) == 0 {
		return nil
	}
	return BadRequest("The body is not acceptable.", f...)
}

// retryAfter is how long a client should wait when a server we need is away: long enough for a restart to get on, short
// enough not to be noticed by a person.
const retryAfter = 2 * time.Second

// statusClientGone is nginx's number for a client that did not wait for its answer; only logs and metrics see it.
const statusClientGone = 499

// NewProblem makes a problem of any status; detail is written for the client.
func NewProblem(status int, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

// BadRequest is a 400.
func BadRequest(detail string, errors ...FieldError) *Problem {
	p := NewProblem(http.StatusBadRequest, detail)
	p.Errors = errors
	return p
}

// Unauthorized is a 401.
func Unauthorized(detail string) *Problem { return NewProblem(http.StatusUnauthorized, detail) }

// Forbidden is a 403.
func Forbidden(detail string) *Problem { return NewProblem(http.StatusForbidden, detail) }

// NotFound is a 404.
func NotFound(detail string) *Problem { return NewProblem(http.StatusNotFound, detail) }

// Conflict is a 409.
func Conflict(detail string) *Problem { return NewProblem(http.StatusConflict, detail) }

// TooLarge is a 413.
func TooLarge(detail string) *Problem {
	return NewProblem(http.StatusRequestEntityTooLarge, detail)
}

// Unprocessable is a 422.
func Unprocessable(detail string) *Problem {
	return NewProblem(http.StatusUnprocessableEntity, detail)
}

// Unavailable is a 503 with Retry-After; cause is logged.
func Unavailable(detail string, cause error) *Problem {
	p := NewProblem(http.StatusServiceUnavailable, detail)
	p.RetryAfter, p.Cause = retryAfter, cause
	return p
}

func (p *Problem) Error() string {
	text := fmt.Sprintf("%d %s", p.Status, p.Title)
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	if p.Cause != nil {
		text += ": " + p.Cause.Error()
	}
	return text
}

func (p *Problem) Unwrap() error { return p.Cause }

// problemOf finds the answer to any error that a handler, a middleware or the router returned.
func (h *HTTP) problemOf(c echo.Context, err error) *Problem {
	var problem *Problem
	var routing *echo.HTTPError
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.As(err, &routing):
		return routingProblem(c, routing)
	}
	if h.cfg.Problem != nil {
		if problem = h.cfg.Problem(err); problem != nil {
			return problem
		}
	}
	switch {
	case errors.Is(c.Request().Context().Err(), context.Canceled):
		return NewProblem(statusClientGone, "")
	case errors.Is(err, context.Canceled) && h.hurried.Err() != nil:
		if !mayRepeat(c.Request(), err) {
			return Unavailable("The service is stopping, and it is not known whether this was done: look before you make the same call again.", err)
		}
		return Unavailable("The service is stopping; the same call may be made again.", err)
	case errors.Is(err, context.DeadlineExceeded), TransientDB(err):
		if !mayRepeat(c.Request(), err) {
			return Unavailable("The database does not answer, and it is not known whether this was done: look before you make the same call again.", err)
		}
		return Unavailable("The database is not available right now; the same call may be made again.", err)
	}
	problem = NewProblem(http.StatusInternalServerError, "Something went wrong here; the log has the reason.")
	problem.Cause = err
	return problem
}

func routingProblem(c echo.Context, err *echo.HTTPError) *Problem {
	switch err.Code {
	case http.StatusNotFound:
		return NotFound("There is nothing at this path.")
	case http.StatusMethodNotAllowed:
		return NewProblem(err.Code, c.Request().Method+" is not possible here; the Allow header says what is.")
	}
	p := NewProblem(err.Code, "")
	p.Cause = err.Internal
	return p
}

// answerError writes an error as problem+json. It is the only place where an error becomes a status.
func (h *HTTP) answerError(err error, c echo.Context) {
	if c.Response().Committed {
		return // the answer is under way already
	}
	p := h.problemOf(c, err)
	h.logProblem(c, p)
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, "application/problem+json")
	if p.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	}
	writeJSON(c, p.Status, p)
}

func (h *HTTP) logProblem(c echo.Context, p *Problem) {
	if p.Status < http.StatusInternalServerError {
		return
	}
	attrs := []any{"method", c.Request().Method, "route", c.Path(), "status", p.Status, "error", p.Error()}
	if p.Status == http.StatusServiceUnavailable {
		h.cfg.Logger.WarnContext(c.Request().Context(), "request could not be served", attrs...)
		return
	}
	h.cfg.Logger.ErrorContext(c.Request().Context(), "request failed", attrs...)
}
