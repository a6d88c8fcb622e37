// Package service is what every main of ours shares: reading the environment, logging, the database pool and its
// migrations, the HTTP edge, telemetry, and starting and stopping in order.
//
// A service is one call of [Main], which reads the configuration and hands it to the service's run function. That function
// builds its parts by hand, in reading order, and ends with [Run], which starts the parts and, when the process is told to
// stop, ends them one after another in reverse order. Nothing here knows what a service does; a part that only one
// service needs belongs there.
package service
