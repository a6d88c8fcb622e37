package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestHeadersAreGivenOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want map[string]string
		says string
	}{
		{[]string{"--header", "a=1", "--header=b=x=y,z;"}, map[string]string{"a": "1", "b": "x=y,z;"}, ""},
		{[]string{"--header", "a="}, map[string]string{"a": ""}, ""},
		{[]string{"--header", "a=1", "--header", "a=2"}, nil, "a is given twice"},
		{[]string{"--header", "a"}, nil, "expected name=value"},
		{[]string{"--header", "=a"}, nil, "expected name=value"},
	} {
		var command publishCommand
		parser, err := kong.New(&command)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parser.Parse(append([]string{"--key", "k"}, c.args...))
		if c.says == "" && (err != nil || !maps.Equal(command.Header, c.want)) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%q: %v, %v", c.args, command.Header, err)
		}
	}
}
