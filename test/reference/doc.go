// Package reference keeps reference pages equal to the code. The text of docs/reference/failure-policy.md is written by hand; the
// decision table in it is printed from the rules that run, and every other table must name what the code names, no more and no less.
// docs/reference/policy.md and its drawings are computed as a whole; asyncapi.yaml, errors.md, topology.md, settings.md and metrics.md are read
// from the code as a whole. What all pages name (symbols of the code, files) must be there.
//
//go:generate go test -run TestDecisions|TestPolicyPage|TestAsyncAPI$|TestErrorsPage|TestTopologyPage|TestSettingsPage|TestMetricsPage . -update
package reference
