package service

import (
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// tracingVariable is one of OpenTelemetry's standard variables, and what of it we can follow.
type tracingVariable struct {
	wanted string
	valid  func(value string) bool
}

// tracingVariables are those that the span exporter reads. It would go on with a default where one is wrong, and the spans would be
// missed on the day they are needed.
var tracingVariables = func() map[string]tracingVariable {
	all := map[string]tracingVariable{
		"OTEL_TRACES_EXPORTER": {"otlp or none", oneOf("otlp", "none")},
		"OTEL_TRACES_SAMPLER": {"always_on, always_off, traceidratio, or one of them with parentbased_ before it",
			oneOf("always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio")},
		"OTEL_TRACES_SAMPLER_ARG":  {"a number from 0 to 1", isShare},
		"OTEL_RESOURCE_ATTRIBUTES": {"name=value pairs separated by commas", arePairs},
		"OTEL_SDK_DISABLED":        {"true or false", oneOf("true", "false")},
	}
	for _, kind := range []string{"OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"} {
		all[kind+"ENDPOINT"] = tracingVariable{"http://host:port or https://host:port", isEndpoint}
		all[kind+"PROTOCOL"] = tracingVariable{"http/protobuf, the only one that is spoken here", oneOf("http/protobuf")}
		all[kind+"TIMEOUT"] = tracingVariable{"milliseconds, a whole number above 0", isCount(1)}
		all[kind+"COMPRESSION"] = tracingVariable{"gzip or none", oneOf("gzip", "none")}
		all[kind+"HEADERS"] = tracingVariable{"name=value pairs separated by commas", arePairs}
		for _, file := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
			all[kind+file] = tracingVariable{"a file that can be read", isFile}
		}
	}
	for _, name := range []string{"SCHEDULE_DELAY", "EXPORT_TIMEOUT", "MAX_QUEUE_SIZE", "MAX_EXPORT_BATCH_SIZE"} {
		all["OTEL_BSP_"+name] = tracingVariable{"a whole number above 0", isCount(1)}
	}
	for _, name := range []string{"ATTRIBUTE_VALUE_LENGTH", "ATTRIBUTE_COUNT", "SPAN_ATTRIBUTE_VALUE_LENGTH", "SPAN_ATTRIBUTE_COUNT",
		"SPAN_EVENT_COUNT", "EVENT_ATTRIBUTE_COUNT", "SPAN_LINK_COUNT", "LINK_ATTRIBUTE_COUNT"} {
		all["OTEL_"+name+"_LIMIT"] = tracingVariable{"a whole number, or -1 for no limit", isCount(-1)}
	}
	return all
}()

// tracingFindings are the OTEL_ variables that are wrong. One that only names a protocol or a compression which others speak is none as long
// as nothing is exported: such variables are often set for all programs of a machine.
func tracingFindings(values map[string]string) (wrong []Invalid) {
	if values["OTEL_SDK_DISABLED"] == "true" {
		return nil
	}
	exports := tracingEnabled(func(name string) string { return values[name] })
	for _, name := range slices.Sorted(maps.Keys(tracingVariables)) {
		value := values[name]
		if value == "" || tracingVariables[name].valid(value) {
			continue
		}
		if !exports && (value == "grpc" || value == "http/json" || name == "OTEL_TRACES_EXPORTER" || strings.Contains(name, "_CERTIFICATE") || strings.Contains(name, "_KEY")) {
			continue
		}
		wrong = append(wrong, Invalid{name, tracingVariables[name].wanted})
	}
	return wrong
}

// tracingSecret says whether a value of OpenTelemetry's must not be shown: headers hold tokens, and a URL may hold a password.
func tracingSecret(name, value string) bool {
	return strings.HasSuffix(name, "_HEADERS") || strings.HasSuffix(name, "_ENDPOINT") && strings.Contains(value, "@")
}

func oneOf(known ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(known, strings.ToLower(strings.TrimSpace(value))) }
}

func isShare(value string) bool {
	share, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return err == nil && share >= 0 && share <= 1
}

func isCount(least int) func(string) bool {
	return func(value string) bool {
		n, err := strconv.Atoi(value)
		return err == nil && n >= least
	}
}

func isEndpoint(value string) bool {
	u, err := url.Parse(value)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

func isFile(value string) bool {
	file, err := os.Open(value)
	if err != nil {
		return false
	}
	_ = file.Close()
	return true
}

func arePairs(value string) bool {
	for pair := range strings.SplitSeq(value, ",") {
		name, content, found := strings.Cut(pair, "=")
		if _, err := url.PathUnescape(content); !found || err != nil || strings.TrimSpace(name) == "" || strings.ContainsAny(strings.TrimSpace(name), " \t:") {
			return false
		}
	}
	return true
}
