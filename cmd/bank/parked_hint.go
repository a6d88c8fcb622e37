package main

import (
	"fmt"
	"slices"
	"strings"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/retry"
)

// hint tells of values in a filter that nothing matched and that no message of ours can have: mostly a slip of the pen, and "nothing
// matches" would pass for good news. It is no error, because a stranger's message may have any type, and a later version other reasons.
func (f *parkedFilter) hint(term *terminal) {
	var classes []string
	for _, class := range retry.Classes() {
		classes = append(classes, string(class))
	}
	for _, given := range []struct {
		flag     string
		value    filled
		compared func(string) string // as the services do
		known    []string
	}{
		{"reason", f.Reason, strings.ToUpper, retry.Reasons()},
		{"class", f.Class, strings.ToUpper, classes},
		{"type", f.Type, strings.Clone, contract.MessageTypes()},
	} {
		if given.value == "" || slices.Contains(given.known, given.compared(string(given.value))) {
			continue
		}
		_, _ = fmt.Fprintf(term.err, "bank: --%s %s is none that we know; there are %s\n", given.flag, foreign(string(given.value)), strings.Join(given.known, ", "))
	}
}
