// Package ledger is account's judgement: which movements of money are allowed, what each is recorded as, and what is said about it.
//
// A transfer reaches account as up to three requests: debit the source, credit the destination, or give the money back. They
// may come twice, late, or in the wrong order. For each transfer account keeps a leg, the record of what it has decided; a
// request is looked up in a table by the leg's state, so that it moves money at most once and is answered the same way every
// time. Between debit and credit the money is in transit. Every movement is two entries that add up to zero.
//
// The package is pure: it changes what it is given in memory and says what to store and what to send. A refusal is a business
// answer and never an error; an error means that nothing was decided.
package ledger
