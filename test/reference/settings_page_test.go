package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

const settingsIntroduction = `<!-- Written by "go generate ./test/reference". Change the configuration structs, not this page. -->

# Settings

The environment of the services, read from the structs that read it; ` + "`--help`" + ` of each prints the same. Every wrong value is reported at once, in one message,
with exit code 2. An empty value counts as unset. Values marked *secret* are in no message and no log.

Spans are exported when ` + "`OTEL_EXPORTER_OTLP_ENDPOINT`" + ` is set; the other standard ` + "`OTEL_`" + ` variables apply. ` + "`GOGC`" + ` and the other variables of the Go runtime, too; without
` + "`GOMEMLIMIT`" + ` a service limits itself to 36 MiB beside its program, or twice what lives in it.
`

// setting is one variable.
type setting struct{ name, standard, meaning string }

// TestSettingsPage keeps docs/reference/settings.md equal to the structs. Not parallel: with -update it writes.
func TestSettingsPage(t *testing.T) {
	path := filepath.Join(root, "docs", "reference", "settings.md")
	var b strings.Builder
	b.WriteString(settingsIntroduction)
	section := func(title, about string, settings []setting) {
		if len(settings) < 4 && title != "Of account" {
			t.Fatalf("%s: only %d settings are found", title, len(settings))
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| variable | default | meaning |\n| --- | --- | --- |\n", title, about)
		for _, s := range settings {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.name, s.standard, strings.ReplaceAll(s.meaning, "|", "\\|"))
		}
	}
	common := settingsOf(t, filepath.Join("pkg", "service", "config.go"), "Config")
	for i := range common {
		if common[i].name == "HTTP_ADDR" { // each service has its own
			common[i].standard = "`" + strings.Join([]string{listens(t, "account"), listens(t, "transfer"), listens(t, "console")}, "`, `") + "`"
		}
	}
	section("Of all services", "The default of `HTTP_ADDR` is that of account, transfer and console, in this order.", common)
	section("Of account and transfer", "What takes messages has these.", settingsOf(t, filepath.Join("pkg", "service", "config.go"), "MessagingConfig"))
	section("Of account", "It waits in the process.", settingsOf(t, filepath.Join("services", "account", "config.go"), "config"))
	section("Of transfer", "It waits at the broker.", settingsOf(t, filepath.Join("services", "transfer", "config.go"), "config"))
	section("Of the console", "What it watches.", settingsOf(t, filepath.Join("services", "console", "config.go"), "config"))
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Errorf("%s is not what the services read; run go generate ./test/reference", path)
	}
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// settingsOf reads the tags of a struct, those of embedded ones not.
func settingsOf(t *testing.T, file, name string) (settings []setting) {
	t.Helper()
	ast.Inspect(parse(t, file), func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			if field.Tag == nil {
				continue
			}
			text, err := strconv.Unquote(field.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			tag := reflect.StructTag(text)
			variable, options, _ := strings.Cut(tag.Get("env"), ",")
			standard := "none"
			if given := tag.Get("envDefault"); given != "" {
				standard = "`" + given + "`"
			} else if strings.Contains(options, "required") {
				standard = "required"
			}
			meaning := tag.Get("desc")
			if tag.Get("secret") != "" {
				meaning += " (*secret*)"
			}
			settings = append(settings, setting{variable, standard, meaning})
		}
		return false
	})
	return settings
}

// listens reads a service's own default of HTTP_ADDR.
func listens(t *testing.T, service string) (address string) {
	t.Helper()
	ast.Inspect(parse(t, filepath.Join("services", service, "config.go")), func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.BasicLit); ok && key.Value == strconv.Quote("HTTP_ADDR") {
				address = literal(pair.Value)
			}
		}
		return true
	})
	if address == "" {
		t.Fatalf("%s has no default for HTTP_ADDR", service)
	}
	return address
}
