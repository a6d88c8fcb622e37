package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// stream makes a call whose answer is {"items": […], …}, and visits each item as it comes: such an answer may take as long as a run over
// thousands of messages. The other members are read into rest.
func (a *api) stream(ctx context.Context, method, path string, body any, visit func(jsontext.Value) error, rest any, headers ...string) error {
	if a.unknown != nil {
		return a.unknown
	}
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.base+path, reader)
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := (&http.Client{}).Do(request) // no deadline: ctx ends it
	if err != nil {
		return fmt.Errorf("the %s service does not answer: %w", a.name, err)
	}
	defer response.Body.Close()
	if response.StatusCode >= 400 {
		refusal := &problem{Status: response.StatusCode, Title: http.StatusText(response.StatusCode)}
		_ = json.UnmarshalRead(response.Body, refusal) // what is no problem document is told by its status alone
		return fmt.Errorf("the %s service refuses: %w", a.name, refusal)
	}
	others, err := readItems(jsontext.NewDecoder(response.Body), visit)
	if err == nil {
		err = json.Unmarshal(others, rest)
	}
	var own visitError
	switch {
	case errors.As(err, &own):
		return own.error
	case err != nil:
		return fmt.Errorf("the answer of the %s service breaks off: %w", a.name, err)
	}
	return nil
}

// visitError is an error of who looks at the items, not of the answer.
type visitError struct{ error }

// readItems visits the items and answers the other members as an object.
func readItems(d *jsontext.Decoder, visit func(jsontext.Value) error) (jsontext.Value, error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	others := []byte{'{'}
	for d.PeekKind() == '"' {
		name, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		if string(name) == `"items"` && d.PeekKind() == '[' {
			if err := eachElement(d, visit); err != nil {
				return nil, err
			}
			continue
		}
		if len(others) > 1 {
			others = append(others, ',')
		}
		others = append(append(others, name...), ':')
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		others = append(others, value...)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	return append(others, '}'), nil
}

func eachElement(d *jsontext.Decoder, visit func(jsontext.Value) error) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		if err := visit(value.Clone()); err != nil {
			return visitError{err}
		}
	}
	_, err := d.ReadToken()
	return err
}
