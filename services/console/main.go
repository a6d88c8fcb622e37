// Command console is the operator's web page over both services: what flows, what is stuck, what would page somebody, and what can be
// done about it. It owns no data. It asks the services and the broker what it shows, and only while somebody looks.
//
// Follow one figure through the files: watch/sources.go says where it is asked for and how often, watch/hub.go keeps the last
// answer and knows who wants it, events.go sends what changed to the page, and static/ draws it. http.go lets the page act;
// sessions.go says who may.
package main

import "example.com/banking/pkg/service"

func main() { service.Main(serviceName, defaults, run) }
