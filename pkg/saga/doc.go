// Package saga holds the two small mechanisms from which the services' state machines are made.
//
// Messages come late, twice, and in the wrong order. There are two ways to be indifferent to that. A service that only
// remembers what it has been told keeps a set of facts and derives its status from the set: Process. A service that
// decides something keeps a record of the decision and looks up what to do in a table of record state and request: Table. The
// first is how transfer works, the second how account works.
//
// Both are data. The same data is executed in production, enumerated and broken on purpose in the proofs, and
// printed as the reference documentation. The package does no I/O and knows no clock.
package saga
