package service

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

const (
	standardLimit = 50
	largestLimit  = 200
)

// Page is what a client asks of a list.
type Page struct {
	Limit int     // 1 to 200, 50 when not given
	After *Cursor // nil: from the start
}

// PageOf reads limit and after from the query; malformed ones are a 400.
func PageOf(c echo.Context) (Page, error) {
	page := Page{Limit: standardLimit}
	text, given, err := QueryParam(c, "limit")
	if err != nil {
		return Page{}, err
	}
	if given {
		limit, err := strconv.ParseUint(text, 10, 16)
		if err != nil || limit < 1 || limit > largestLimit {
			return Page{}, BadRequest("The query is not acceptable.", FieldError{"limit", "must be a whole number from 1 to 200"})
		}
		page.Limit = int(limit)
	}
	if text, given, err = QueryParam(c, "after"); err != nil {
		return Page{}, err
	}
	if given {
		cursor, err := ParseCursor(text)
		if err != nil {
			return Page{}, BadRequest("The query is not acceptable.", FieldError{"after", "must be the next of an earlier answer"})
		}
		page.After = &cursor
	}
	return page, nil
}

// QueryParam reads one parameter of the query and says whether it was given. A parameter given twice is a 400, and so is a query that
// cannot be read as a whole: the standard library's Query drops what it does not understand, so that a client with a
// slip in its filter would get an answer to another question.
func QueryParam(c echo.Context, name string) (value string, given bool, err error) {
	query, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return "", false, BadRequest("The query cannot be read: a percent sign must be followed by two hexadecimal digits, and parameters are separated by &.")
	}
	switch values := query[name]; len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", false, BadRequest("The query is not acceptable.", FieldError{name, "must be given once"})
}

// Cursor is the place of a row in a list that is ordered by time and id. Clients get it as an opaque text.
type Cursor struct {
	Time time.Time // to the microsecond, as PostgreSQL keeps it
	ID   uuid.UUID
}

// cursorVersion lets a later form be told from this one, and a text that is no cursor from a cursor.
const cursorVersion = 1

// String encodes the cursor for the client.
func (c Cursor) String() string {
	raw := binary.BigEndian.AppendUint64([]byte{cursorVersion}, uint64(c.Time.UnixMicro()))
	return base64.RawURLEncoding.EncodeToString(append(raw, c.ID[:]...))
}

// ParseCursor reads what String wrote.
func ParseCursor(text string) (Cursor, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != 1+8+16 || raw[0] != cursorVersion {
		return Cursor{}, errors.New("not a cursor")
	}
	at := time.UnixMicro(int64(binary.BigEndian.Uint64(raw[1:9]))).UTC()
	if at.Year() < 1 || at.Year() > 9999 { // made up, and beyond what PostgreSQL takes as a time
		return Cursor{}, errors.New("not a cursor")
	}
	return Cursor{Time: at, ID: uuid.UUID(raw[9:])}, nil
}

// List is the answer to a list call. Next is the cursor of the following page, null on the last one.
type List[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
}

// ListOf makes the answer from rows of which the query took page.Limit+1: the one too many tells that there is a next page
// without counting.
func ListOf[T any](page Page, rows []T, cursor func(T) Cursor) List[T] {
	list := List[T]{Items: rows}
	if len(rows) > page.Limit {
		list.Items = rows[:page.Limit]
		next := cursor(rows[page.Limit-1]).String()
		list.Next = &next
	}
	if list.Items == nil {
		list.Items = []T{} // [], whatever library writes it
	}
	return list
}
