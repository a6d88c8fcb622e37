// Package lifecycle is transfer's memory of the process: what it has been told about a transfer, what that makes of the
// transfer, and what it asks for next.
//
// A transfer is a set of facts, each told by account or by the sweeper. Its status is a function of the set, so it does not matter
// in which order the facts come or how often. When the status changes, and only then, the transfer says something: it asks for
// the credit, asks for the money back, or announces the end.
//
// The package is pure: store and consumer only carry what it says.
package lifecycle
