// Package retry decides what happens to a message whose handling failed: try again and when, give up and why, or leave it
// alone.
//
// The whole policy in one paragraph: every error has a class, which says whether trying again can help. A message that is
// itself wrong is quarantined at once, because it will be as wrong the next time; what a message refers to and is not there
// may yet come, so it is retried while the message is young; a dependency that does not answer, or asks for less, gets
// time, in growing delays; and what nobody knows is retried like that, and alerts. After a number of attempts, or a day,
// the message is quarantined, where it waits for a person instead of being tried for ever or lost. So much for one message. When
// many fail at the same time it is rarely their fault, and going on would spend the attempts of a whole queue on one
// broken dependency. Hence the dampers, which each consumer has for itself: the Breaker stops it when most messages fail; the
// Budget keeps retries a small share of the work; the RateLimit lowers what it takes when a dependency asks for less.
// Retries happen in one layer only, because layers multiply (Amplification).
//
// The rules are tried from the top, the first that fits decides (Policy.Decide, Rules):
//
//	| class | when | action | delay or reason | with `RETRY_CLASSIFY=off` |
//	| --- | --- | --- | --- | --- |
//	| CANCELLED | always | leave alone | no attempt spent | the same |
//	| VALIDATION | always | quarantine | VALIDATION | skipped |
//	| INVARIANT | always | quarantine | INVARIANT | skipped |
//	| NOT_FOUND | not younger than NOT_FOUND_MAX_AGE | quarantine | NOT_FOUND_AGED | skipped |
//	| any | older than MAX_AGE | quarantine | MAX_AGE | the same |
//	| any | attempt MAX_ATTEMPTS or later | quarantine | MAX_ATTEMPTS | the same |
//	| CONFLICT | always | retry | shortest delay | skipped |
//	| RATE_LIMITED | always | retry | the given delay, else one tier longer | skipped |
//	| any | always | retry | delay n | the same |
//
// The package is pure. It knows no broker and no database, and time and randomness are passed in, so the same decision can be
// read as a table, tested row by row, simulated, and used by every consumer. The packages that talk to a broker carry the
// decision out; handlers steer it by the class of the error they return.
package retry
