package service

import (
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

// DecodeJSON reads the request's body, one JSON object, into the struct that v points to, strictly: a missing body, other
// JSON, trailing data, a member given twice, invalid UTF-8 or a member of a wrong type is a 400 that names the member where
// there is one; a member in another letter case is an unknown one, and unknown ones are ignored. Members that were not
// there stay as they are; demanding them is the caller's task (see FieldErrors).
func DecodeJSON(c echo.Context, v any) error { return nil }

// PathID reads a path parameter that must be a UUID; anything else names nothing and is a 404.
func PathID(c echo.Context, name string) (uuid.UUID, error) { return uuid.UUID{}, nil }
