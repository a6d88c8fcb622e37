// Package messaging moves messages between a service and RabbitMQ without losing one and without trusting one.
//
// Three things in it have a life of their own. A Session owns the connections to the broker and makes all of it anew when
// anything breaks. A Consumer takes deliveries from one queue, in batches, through a Handler, and carries out what
// retry.Policy decides about those that failed: it is the only place that acks, nacks, waits or quarantines. Session.Publish
// sends messages and reports what became of each. Everything else is data: the Envelope is the body of a message, a Topology
// is what a service declares, a Road is where failed messages go.
//
// Two things protect the messages from what is around them. Dampers (a breaker, a budget for retries, a rate) keep a consumer
// from spending the attempts of every message on a dependency that is sick. A message that was handed out before may be the
// one that ended the process, or took the database down: it runs alone, and its start is noted where that outlives the process
// (Starts).
//
// The package knows nothing of accounts or transfers.
package messaging
