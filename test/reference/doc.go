// Package reference keeps docs/reference/failure-policy.md equal to the code. Its text is written by hand; the decision table in it
// is printed from the rules that run, and every other table must name what the code names, no more and no less.
//
//go:generate go test -run TestDecisions . -update
package reference
