package main

import (
	"strings"
	"testing"
)

// The list and the page need no bank.
func TestExercisesAreListedAndShown(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{"list": "The poison event", "show 1": "poison-1"} {
		var out, complaints strings.Builder
		if code := run(t.Context(), append([]string{"--dir", t.TempDir(), "exercise"}, strings.Fields(command)...), &out, &complaints); code != 0 ||
			!strings.Contains(out.String(), want) {
			t.Errorf("%s: exit code %d, %s%s", command, code, out.String(), complaints.String())
		}
	}
	for command, want := range map[string]string{"show 99": "there is no exercise 99", "run 1": "not known"} {
		var out, complaints strings.Builder
		if code := run(t.Context(), append([]string{"--dir", t.TempDir(), "exercise"}, strings.Fields(command)...), &out, &complaints); code != 1 ||
			!strings.Contains(out.String()+complaints.String(), want) {
			t.Errorf("%s: exit code %d, %s%s", command, code, out.String(), complaints.String())
		}
	}
}
