package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"example.com/banking/pkg/service"
	"github.com/go-json-experiment/json"
)

const (
	alice = "0191a3b0-0000-7000-8000-00000000000a"
	bob   = "0191a3b0-0000-7000-8000-00000000000b"
)

// members is a body of POST /transfers with some members replaced; "" leaves one out.
func members(changes ...string) string {
	all := [][2]string{
		{"sourceAccountId", `"` + alice + `"`}, {"destinationAccountId", `"` + bob + `"`}, {"amountMinor", "2500"}, {"currency", `"EUR"`},
	}
	for i := 0; i < len(changes); i += 2 {
		replaced := false
		for j := range all {
			if all[j][0] == changes[i] {
				all[j][1], replaced = changes[i+1], true
			}
		}
		if !replaced {
			all = append(all, [2]string{changes[i], changes[i+1]})
		}
	}
	var parts []string
	for _, m := range all {
		if m[1] != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", m[0], m[1]))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func parse(t *testing.T, body string) (newTransfer, error) {
	t.Helper()
	var raw newTransferBody
	if err := json.Unmarshal([]byte(body), &raw); err != nil {
		t.Fatal(err)
	}
	return raw.parse()
}

func TestNewTransferNamesEveryWrongMember(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body   string
		fields string // wrong ones in order, "" for none
	}{
		"complete":                    {members(), ""},
		"largest amount":              {members("amountMinor", "9223372036854775807"), ""},
		"smallest amount":             {members("amountMinor", "1"), ""},
		"id in capitals":              {members("sourceAccountId", strings.ToUpper(`"`+alice+`"`)), ""},
		"reference of 140 characters": {members("reference", `"`+strings.Repeat("€", 140)+`"`), ""},
		"empty reference":             {members("reference", `""`), ""},
		"unknown member":              {members("colour", `"red"`), ""},

		"nothing":               {`{}`, "sourceAccountId destinationAccountId amountMinor currency"},
		"everything null":       {members("sourceAccountId", "null", "destinationAccountId", "null", "amountMinor", "null", "currency", "null", "reference", "null"), "sourceAccountId destinationAccountId amountMinor currency reference"},
		"everything wrong":      {members("sourceAccountId", `"x"`, "destinationAccountId", "7", "amountMinor", `"5"`, "currency", `"eur"`, "reference", "[]"), "sourceAccountId destinationAccountId amountMinor currency reference"},
		"same account":          {members("destinationAccountId", `"`+alice+`"`), "destinationAccountId"},
		"same in other case":    {members("destinationAccountId", strings.ToUpper(`"`+alice+`"`)), "destinationAccountId"},
		"id in braces":          {members("sourceAccountId", `"{`+alice+`}"`), "sourceAccountId"},
		"id without hyphens":    {members("sourceAccountId", `"`+strings.ReplaceAll(alice, "-", "")+`"`), "sourceAccountId"},
		"member in other case":  {strings.Replace(members(), "amountMinor", "AmountMinor", 1), "amountMinor"},
		"amount with fraction":  {members("amountMinor", "2500.0"), "amountMinor"},
		"amount with exponent":  {members("amountMinor", "1e3"), "amountMinor"},
		"amount as text":        {members("amountMinor", `"2500"`), "amountMinor"},
		"amount negative":       {members("amountMinor", "-1"), "amountMinor"},
		"amount zero":           {members("amountMinor", "0"), "amountMinor"},
		"amount negative zero":  {members("amountMinor", "-0"), "amountMinor"},
		"amount over int64":     {members("amountMinor", "9223372036854775808"), "amountMinor"},
		"amount of 400 digits":  {members("amountMinor", strings.Repeat("9", 400)), "amountMinor"},
		"amount true":           {members("amountMinor", "true"), "amountMinor"},
		"currency of two":       {members("currency", `"EU"`), "currency"},
		"currency with accents": {members("currency", `"ÉUR"`), "currency"},
		"reference too long":    {members("reference", `"`+strings.Repeat("€", 141)+`"`), "reference"},
		"reference with NUL":    {members("reference", `"a\u0000b"`), "reference"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(t, c.body)
			var fields []string
			var problem *service.Problem
			if errors.As(err, &problem) {
				if problem.Status != http.StatusBadRequest {
					t.Errorf("status %d, want 400", problem.Status)
				}
				for _, e := range problem.Errors {
					fields = append(fields, e.Field)
				}
			} else if err != nil {
				t.Fatalf("%v is no problem", err)
			}
			if got := strings.Join(fields, " "); got != c.fields {
				t.Errorf("wrong are %q, want %q", got, c.fields)
			}
		})
	}
}

func TestNewTransferHashIgnoresSpelling(t *testing.T) {
	t.Parallel()
	hash := func(body string) []byte {
		asked, err := parse(t, body)
		if err != nil {
			t.Fatal(err)
		}
		return asked.hash()
	}
	reference := func(text string) string { return members("reference", text) }
	for name, pair := range map[string]struct {
		a, b string
		same bool
	}{
		"white space":         {members(), " {\n" + members()[1:], true},
		"order":               {`{"currency":"EUR","amountMinor":2500,"destinationAccountId":"` + bob + `","sourceAccountId":"` + alice + `"}`, members(), true},
		"letter case of ids":  {members(), members("sourceAccountId", strings.ToUpper(`"`+alice+`"`)), true},
		"unknown member":      {members(), members("colour", `"red"`), true},
		"escapes":             {reference(`"a"`), reference(`"\u0061"`), true},
		"amount":              {members(), members("amountMinor", "2501"), false},
		"currency":            {members(), members("currency", `"USD"`), false},
		"direction":           {members(), members("sourceAccountId", `"`+bob+`"`, "destinationAccountId", `"`+alice+`"`), false},
		"reference":           {reference(`"a"`), reference(`"b"`), false},
		"absent and empty":    {members(), reference(`""`), false},
		"reference of spaces": {reference(`"a"`), reference(`"a "`), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if same := bytes.Equal(hash(pair.a), hash(pair.b)); same != pair.same {
				t.Errorf("%s and %s: same %v, want %v", pair.a, pair.b, same, pair.same)
			}
		})
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values []string
		ok     bool
	}{
		"none":               {nil, true},
		"one character":      {[]string{"k"}, true},
		"255 characters":     {[]string{strings.Repeat("é", 255)}, true},
		"empty":              {[]string{""}, false},
		"256 characters":     {[]string{strings.Repeat("é", 256)}, false},
		"twice":              {[]string{"a", "a"}, false},
		"not UTF-8":          {[]string{"\xff"}, false},
		"a space in between": {[]string{"a b"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := parseIdempotencyKey(c.values)
			if (err == nil) != c.ok {
				t.Errorf("%v, want ok %v", err, c.ok)
			}
			if c.ok && (key != nil) != (len(c.values) == 1) {
				t.Errorf("key is %v", key)
			}
		})
	}
}
