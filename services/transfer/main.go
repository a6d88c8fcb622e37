// Command transfer is the memory of the saga: it accepts transfers, is told by account what became of each step, and decides
// what is asked for next. It moves no money itself.
//
// Follow one transfer through the files: http.go accepts it, lifecycle says what it asks for, the outbox sends that,
// consumer.go takes the answers, work.go lets the transfer hear them, and sweeper.go turns back what stays open for too
// long. app.go puts the parts together.
package main

import "example.com/banking/pkg/service"

func main() { service.Main(serviceName, defaults, run) }
