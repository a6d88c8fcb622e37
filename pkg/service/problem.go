package service

import "time"

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
func (f FieldErrors) Err() error { return nil }

// NewProblem makes a problem of any status; detail is written for the client.
func NewProblem(status int, detail string) *Problem { return &Problem{Status: status, Detail: detail} }

// BadRequest is a 400.
func BadRequest(detail string, errors ...FieldError) *Problem { return nil }

// Unauthorized is a 401.
func Unauthorized(detail string) *Problem { return nil }

// Forbidden is a 403.
func Forbidden(detail string) *Problem { return nil }

// NotFound is a 404.
func NotFound(detail string) *Problem { return nil }

// Conflict is a 409.
func Conflict(detail string) *Problem { return nil }

// TooLarge is a 413.
func TooLarge(detail string) *Problem { return nil }

// Unprocessable is a 422.
func Unprocessable(detail string) *Problem { return nil }

// Unavailable is a 503 with Retry-After; cause is logged.
func Unavailable(detail string, cause error) *Problem { return nil }

func (p *Problem) Error() string { return p.Detail }

func (p *Problem) Unwrap() error { return p.Cause }
