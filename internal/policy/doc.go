// Package policy shows what the retry policy does before anybody has to find out in production: how long messages wait, what jitter does
// to a thousand of them that failed together, how attempts multiply through layers, what each damper is good for in an outage, and what the
// same policy looks like on other platforms.
//
// Nothing here is a second account of the policy. Every figure comes from package retry itself (Policy.Decide, Backoff, the jitters,
// Breaker, Budget, RateLimit, Amplification), run on a simulated clock. So a plot that looks wrong is a bug in what the services run. The
// world around it, arrivals and a dependency that fails, is a model, and simulation.go says what is in it.
//
// Everything is a function of its settings, the seed among them: the same settings give the same figures and the same drawing, to the
// letter. The command bank, the console and the documentation show the same reports.
package policy
