package service

import (
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

// Page is what a client asks of a list.
type Page struct {
	Limit int     // 1 to 200, 50 when not given
	After *Cursor // nil: from the start
}

// Cursor is the place of a row in a list that is ordered by time and id. Clients get it as an opaque text.
type Cursor struct {
	Time time.Time // to the microsecond, as PostgreSQL keeps it
	ID   uuid.UUID
}

// String encodes the cursor for the client.
func (c Cursor) String() string { return "" }

// ParseCursor reads what String wrote.
func ParseCursor(text string) (Cursor, error) { return Cursor{}, nil }

// PageOf reads limit and after from the query; malformed ones are a 400.
func PageOf(c echo.Context) (Page, error) { return Page{}, nil }

// List is the answer to a list call. Next is the cursor of the following page, null on the last one.
type List[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
}

// ListOf makes the answer from rows of which the query took page.Limit+1: the one too many tells that there is a next page
// without counting.
func ListOf[T any](page Page, rows []T, cursor func(T) Cursor) List[T] { return List[T]{} }
