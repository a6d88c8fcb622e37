package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// headerFlags are the headers given as name=value. A message has each name once, so a second one would silently take the place of the first.
type headerFlags map[string]string

// Decode implements kong.MapperValue; it is called for each time that the flag is given.
func (h *headerFlags) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("name=value", &text); err != nil {
		return err
	}
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" {
		return fmt.Errorf("expected name=value but got %q", text)
	}
	if _, twice := (*h)[name]; twice {
		return fmt.Errorf("%s is given twice; a message has each header once", name)
	}
	if *h == nil {
		*h = headerFlags{}
	}
	(*h)[name] = value
	return nil
}
