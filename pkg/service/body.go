package service

import (
	"bytes"
	"encoding"
	"errors"
	"io"
	"net/http"
	"reflect"

	"example.com/banking/pkg/contract"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

const (
	bodyLimit       = 1 << 20 // bytes
	bodyLimitDetail = "The body is larger than 1 MiB."
	// How much of a refused body is still taken off the line, in bytes. A connection closed on a client that is still
	// sending is reset, and the reset overtakes the answer: the client would never see its 413.
	bodyDrain = 8 << 20
)

// limitBody reads the body of every request and refuses one over the limit. Routes that want no body are no exception:
// what stays unread on a connection gets it reset. An announced length is refused before anything is kept; a chunked
// body announces none.
func limitBody(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if r.ContentLength > bodyLimit {
			return refuseBody(r)
		}
		if r.ContentLength != 0 {
			body, err := readBody(r)
			if err != nil {
				return err
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		return next(c)
	}
}

func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyLimit+1))
	switch {
	case len(body) > bodyLimit:
		return nil, refuseBody(r)
	case err != nil:
		problem := BadRequest("The body could not be read to its end.")
		problem.Cause = err
		return nil, problem
	}
	return body, nil
}

func refuseBody(r *http.Request) *Problem {
	if r.Header.Get("Expect") == "" { // else the client waits before it sends anything
		_, _ = io.CopyN(io.Discard, r.Body, bodyDrain)
	}
	return TooLarge(bodyLimitDetail)
}

// DecodeJSON reads the request's body, one JSON object, into the struct that v points to, strictly: a missing body, other
// JSON, trailing data, a member given twice, invalid UTF-8 or a member of a wrong type is a 400 that names the member where
// there is one; a member in another letter case is an unknown one, and unknown ones are ignored. Members that were not
// there stay as they are; demanding them is the caller's task (see FieldErrors).
func DecodeJSON(c echo.Context, v any) error {
	body, err := readBody(c.Request())
	if err != nil {
		return err
	}
	switch value := jsontext.Value(body); {
	case len(bytes.TrimSpace(body)) == 0:
		return BadRequest("The body is missing; a JSON object is wanted.")
	case value.Kind() != '{':
		return BadRequest("The body must be a JSON object.")
	}
	if err := json.Unmarshal(body, v); err != nil {
		return malformed(err)
	}
	return nil
}

func malformed(err error) *Problem {
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		return BadRequest("A member of the body has a wrong type or value.", FieldError{
			Field: contract.MemberName(semantic.JSONPointer), Message: semanticMessage(semantic),
		})
	}
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		if errors.Is(syntactic, jsontext.ErrDuplicateName) {
			return BadRequest("A member of the body is given twice.", FieldError{
				Field: contract.MemberName(syntactic.JSONPointer), Message: "is given twice",
			})
		}
		return BadRequest("The body is not one JSON object: " + syntactic.Err.Error() + ".")
	}
	return BadRequest("The body is not one JSON object.")
}

// semanticMessage avoids the library's own words, which name Go types.
func semanticMessage(err *json.SemanticError) string {
	if err.Err != nil && err.JSONKind == jsontext.KindInvalid {
		return err.Err.Error()
	}
	if wanted := wantedJSON(err.GoType); wanted != "" {
		return "must be " + wanted
	}
	if err.Err != nil {
		return err.Err.Error()
	}
	return "has a wrong type"
}

func wantedJSON(t reflect.Type) string {
	switch {
	case t == nil:
		return ""
	case t == reflect.TypeFor[uuid.UUID]():
		return "a UUID"
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return "a text of the right form"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return wantedJSON(t.Elem())
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "an integer within 64 bits"
	case reflect.Float32, reflect.Float64:
		return "a number up to 1e308"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return ""
}

// PathID reads a path parameter that must be a UUID; anything else names nothing and is a 404.
func PathID(c echo.Context, name string) (uuid.UUID, error) {
	id, ok := contract.ParseID(c.Param(name))
	if !ok {
		return uuid.UUID{}, NotFound("There is nothing with this id.")
	}
	return id, nil
}

// strictJSON writes answers with the library that also reads requests, so that a type's one way of being JSON counts.
type strictJSON struct{}

func (strictJSON) Serialize(c echo.Context, v any, _ string) error {
	return json.MarshalWrite(c.Response(), v, jsontext.AllowInvalidUTF8(true))
}

func (strictJSON) Deserialize(c echo.Context, v any) error { return DecodeJSON(c, v) }

// writeJSON sends an answer whose content type is set already. The client may be gone, and nobody is left to be told. Text of others that
// is not UTF-8 (PostgreSQL's start-up errors come in the server's own encoding) is mended instead of cutting the answer off.
func writeJSON(c echo.Context, status int, v any) {
	c.Response().WriteHeader(status)
	_ = json.MarshalWrite(c.Response(), v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}
