package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// An account service that dies while a load's accounts are opened, and comes back, costs the load nothing; one that stays away is named, with
// what to do.
func TestLoadAccountsOutliveTheService(t *testing.T) {
	t.Parallel()
	const cut = 0 // in place of a status: the connection is cut
	for name, of := range map[string]struct {
		fails    map[int64]int // what the nth call is answered
		rest     int           // and what all after 4 are
		says     bool
		wantErr  string
		unwanted string
	}{
		"all is well":          {},
		"gone for three":       {fails: map[int64]int{2: cut, 3: cut, 4: 503}, says: true},
		"gone for good":        {fails: map[int64]int{2: cut, 3: 503, 4: 500}, rest: 503, says: true, wantErr: "1 are open. See 'bank service list'"},
		"refused":              {fails: map[int64]int{2: 422}, wantErr: "422", unwanted: "bank service list"},
		"never there at all":   {fails: map[int64]int{1: cut}, wantErr: "account 1 of 3 of the load", unwanted: "bank service list"},
		"refused afterwards":   {fails: map[int64]int{2: cut, 3: 409}, says: true, wantErr: "409", unwanted: "bank service list"},
		"asked for patience":   {fails: map[int64]int{3: 503}, says: true},
		"the first is refused": {fails: map[int64]int{1: 400}, wantErr: "400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				n := calls.Add(1)
				status, fails := of.fails[n]
				if !fails && n > 4 && of.rest != 0 {
					status, fails = of.rest, true
				}
				switch {
				case !fails:
					w.WriteHeader(http.StatusCreated)
				case status == cut:
					panic(http.ErrAbortHandler)
				default:
					w.WriteHeader(status)
				}
			}))
			t.Cleanup(server.Close)
			said := 0
			ids, err := loadAccounts(t.Context(), newAPI("account", server.URL), 3, 700*time.Millisecond, func(string) { said++ })
			switch {
			case of.wantErr == "" && (err != nil || len(ids) != 3 || ids[2] != loadAccountID(2)):
				t.Errorf("got %v, %v", ids, err)
			case of.wantErr != "" && (err == nil || !strings.Contains(err.Error(), of.wantErr) || of.unwanted != "" && strings.Contains(err.Error(), of.unwanted)):
				t.Errorf("got %v, want %q", err, of.wantErr)
			}
			if (said > 0) != of.says || said > 1 {
				t.Errorf("said %d times", said)
			}
		})
	}
}

// Whatever wraps a refusal, it is one.
func TestARefusalIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for status, wanted := range map[int]bool{400: false, 404: false, 409: false, 422: false, 500: true, 503: true} {
		if got := passing(fmt.Errorf("open: %w", &problem{Status: status})); got != wanted {
			t.Errorf("%d passes: %t", status, got)
		}
	}
	if !passing(errors.New("connection refused")) {
		t.Error("no answer does not pass")
	}
}
