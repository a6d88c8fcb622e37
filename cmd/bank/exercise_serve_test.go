package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/banking/exercises"
)

// What the door refuses is refused before anything is touched, and says why.
func TestTheDoorOfTheExercises(t *testing.T) {
	t.Parallel()
	d := &exerciseDoor{bank: &exercises.Bank{}} // of which nothing is known, so that a run ends at once
	mux := http.NewServeMux()
	d.register(mux)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	expect := func(path string, status int, says string) {
		t.Helper()
		response, err := http.Post(server.URL+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != status || !strings.Contains(string(body), says) {
			t.Errorf("%s: %d %s, %v; want %d and %q", path, response.StatusCode, body, err, status, says)
		}
	}
	expect("/exercises/99/run", http.StatusNotFound, "there is no exercise 99")
	expect("/exercises/one/stop", http.StatusNotFound, "has a number")
	expect("/exercises/1/run?look=2h", http.StatusBadRequest, "look must be a duration up to 1h")
	expect("/exercises/1/run?outage=-1s", http.StatusBadRequest, "outage must be a duration up to 10m")
	for _, order := range []string{"stop", "continue"} {
		expect("/exercises/1/"+order, http.StatusConflict, "exercise 1 is not running")
	}
	expect("/exercises/1/run?look=1m", http.StatusOK, `"reason":"UNFIT"`)
	expect("/exercises/1/run", http.StatusOK, `"kind":"ended"`) // the door is free again

	var told []string
	d.begin(&doorRun{number: 2, stop: func() { told = append(told, "stop") }, goOn: func() { told = append(told, "continue") }})
	expect("/exercises/1/run", http.StatusConflict, "exercise 2 is running")
	expect("/exercises/1/stop", http.StatusConflict, "exercise 1 is not running")
	expect("/exercises/2/continue", http.StatusNoContent, "")
	expect("/exercises/2/stop", http.StatusNoContent, "")
	if got := strings.Join(told, " "); got != "continue stop" {
		t.Errorf("the run was told %q", got)
	}
}
