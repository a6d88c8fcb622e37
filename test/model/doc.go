// Package model checks the two services' state machines together, without broker, database or time.
//
// The machines are the real ones, services/account/ledger and services/transfer/lifecycle; only what lies between them is a
// model: a network that delays, reorders, repeats and holds messages, processes that die between commit and ack, a sweeper
// that fires at any time, an operator who freezes accounts at any time. For one transfer every possible run is explored; for
// several that share accounts, random ones. In every state of every run money is conserved and moves at most once, and
// wherever the messages run out the transfer has ended and both services agree how.
//
// A check that finds nothing proves little unless it would find something. So machines are broken on purpose, three by hand and then
// every row of every table in turn, and the check has to notice.
//
// docs/reference/states.md is made here as well, from the tables that were just proved:
//
//go:generate go test -run TestStatesPage . -update
package model
