package service

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/caarlos0/env/v11"
)

// Configuration is a service's configuration struct: it embeds Config.
type Configuration interface{ Common() Config }

// Defaults are a service's own defaults by variable name, e.g. HTTP_ADDR; they win over the envDefault tag.
type Defaults map[string]string

// Invalid is one wrong value: the variable's name and what is wanted instead. The value itself is added by Load, which
// knows the secret ones.
type Invalid struct{ Name, Wanted string }

// Validator is implemented by a configuration struct, or one embedded in it, that has rules beyond its fields' types. The
// rules of all of them are reported together.
type Validator interface{ Validate() []Invalid }

// ConfigError lists every wrong variable at once, one line each.
type ConfigError struct{ Lines []string }

func (e *ConfigError) Error() string {
	return "wrong configuration:\n  " + strings.Join(e.Lines, "\n  ")
}

// ExitCode is that of a wrong configuration.
func (e *ConfigError) ExitCode() int { return exitConfiguration }

// Load reads a configuration struct from an environment of "NAME=value" lines. An empty value counts as unset, as compose
// files write it. The error is a *ConfigError.
func Load[C Configuration](environ []string, defaults Defaults) (C, error) {
	var cfg C
	values := make(map[string]string)
	for name, value := range defaults {
		values[name] = value
	}
	for _, line := range environ {
		if name, value, _ := strings.Cut(line, "="); value != "" {
			values[name] = value
		}
	}

	var wrong []Invalid
	fields := variables(reflect.TypeFor[C](), defaults)
	if err := env.ParseWithOptions(&cfg, env.Options{Environment: values}); err != nil {
		wrong = append(wrong, unparsed(err, fields)...)
	}
	wrong = append(wrong, findings(reflect.ValueOf(cfg))...)
	wrong = append(wrong, tracingFindings(values)...)
	if len(wrong) == 0 {
		return cfg, nil
	}
	return cfg, describe(wrong, fields, values)
}

// variable is one field of a configuration struct.
type variable struct {
	field, name, standard, meaning string
	required, secret               bool
	kind                           reflect.Type
}

// variables lists the fields of a configuration struct that are read from the environment, embedded structs included.
func variables(t reflect.Type, defaults Defaults) (all []variable) {
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous && field.Type.Kind() == reflect.Struct {
			all = append(all, variables(field.Type, defaults)...)
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("env"), ",")
		if name == "" {
			continue
		}
		standard := field.Tag.Get("envDefault")
		if own, ok := defaults[name]; ok {
			standard = own
		}
		all = append(all, variable{
			field: field.Name, name: name, standard: standard, meaning: field.Tag.Get("desc"),
			required: strings.Contains(options, "required"), secret: field.Tag.Get("secret") == "true", kind: field.Type,
		})
	}
	return all
}

// unparsed translates the library's errors, which name Go fields and may quote secret values.
func unparsed(err error, fields []variable) (wrong []Invalid) {
	var all env.AggregateError
	if !errors.As(err, &all) {
		return []Invalid{{"environment", err.Error()}}
	}
	for _, err := range all.Errors {
		var parse env.ParseError
		var unset env.VarIsNotSetError
		switch {
		case errors.As(err, &unset):
			wrong = append(wrong, Invalid{unset.Key, "a value: there is no default"})
		case errors.As(err, &parse):
			for _, v := range fields {
				if v.field == parse.Name {
					wrong = append(wrong, Invalid{v.name, wantedOf(v.kind)})
				}
			}
		default:
			wrong = append(wrong, Invalid{"environment", err.Error()})
		}
	}
	return wrong
}

func wantedOf(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "a duration such as 500ms, 5s or 24h"
	case reflect.TypeFor[[]time.Duration]():
		return "durations separated by commas, such as 1s,5s,25s"
	case reflect.TypeFor[Switch]():
		return "on or off"
	case reflect.TypeFor[LogFormat]():
		return "json or text"
	case reflect.TypeFor[slog.Level]():
		return "debug, info, warn or error"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "what --help says"
}

// findings asks the struct and those embedded in it for their own rules. Embedded ones are asked by themselves, since Go
// promotes a Validate method only when it is the only one.
func findings(cfg reflect.Value) (wrong []Invalid) {
	if v, ok := cfg.Interface().(Validator); ok {
		wrong = v.Validate()
	}
	for i := range cfg.NumField() {
		if f := cfg.Type().Field(i); f.Anonymous && f.IsExported() && f.Type.Kind() == reflect.Struct {
			wrong = append(wrong, findings(cfg.Field(i))...)
		}
	}
	return wrong
}

// describe writes one line for each wrong variable, in the order of the struct. The first finding about a variable
// counts: what a rule says about a value that was not even read would mislead.
func describe(wrong []Invalid, fields []variable, values map[string]string) *ConfigError {
	first := make(map[string]string)
	var names []string
	for _, w := range wrong {
		if _, seen := first[w.Name]; !seen {
			first[w.Name] = w.Wanted
			names = append(names, w.Name)
		}
	}
	result := &ConfigError{}
	line := func(name, value string) {
		result.Lines = append(result.Lines, fmt.Sprintf("%s%s: wanted %s", name, value, first[name]))
		delete(first, name)
	}
	for _, v := range fields {
		if _, bad := first[v.name]; !bad {
			continue
		}
		switch value, set := values[v.name]; {
		case !set && v.standard == "":
			line(v.name, " is not set")
		case v.secret:
			line(v.name, " (value not shown)")
		case !set:
			line(v.name, fmt.Sprintf("=%q (the default)", v.standard))
		default:
			line(v.name, fmt.Sprintf("=%q", value))
		}
	}
	for _, name := range names { // whatever belongs to no field
		if _, left := first[name]; !left {
			continue
		}
		switch value := values[name]; {
		case value == "":
			line(name, "")
		case tracingSecret(name, value):
			line(name, " (value not shown)")
		default:
			line(name, fmt.Sprintf("=%q", value))
		}
	}
	return result
}

// writeHelp prints the table of variables.
func writeHelp[C Configuration](w io.Writer, name string, defaults Defaults) {
	fmt.Fprintf(w, "Usage: %s [--help | --health]\n\nIt is configured by its environment:\n\n", name)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "VARIABLE\tDEFAULT\tMEANING")
	for _, v := range variables(reflect.TypeFor[C](), defaults) {
		standard := v.standard
		switch {
		case standard == "" && v.required:
			standard = "(required)"
		case standard == "":
			standard = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", v.name, standard, v.meaning)
	}
	_ = table.Flush() // to a terminal or a pipe: nobody is left to be told
	fmt.Fprint(w, `
Spans are exported when OTEL_EXPORTER_OTLP_ENDPOINT is set; the other standard OTEL_ variables apply.
--health asks /readyz on HTTP_ADDR and exits 0 when the service is ready, else 1.
`)
}
