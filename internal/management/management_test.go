package management_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/banking/internal/management"
)

// api answers one call after the other with these statuses, then with 200 and a document.
func api(t *testing.T, statuses ...int) (address string, calls *int) {
	t.Helper()
	calls = new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*calls++
		if name, password, ok := r.BasicAuth(); !ok || name != "operator" || password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if *calls <= len(statuses) {
			w.WriteHeader(statuses[*calls-1])
			return
		}
		_, _ = w.Write([]byte(`{"name": "account.transfer-requested", "name": "banking.dead-letters"}`))
	}))
	t.Cleanup(server.Close)
	return strings.Replace(server.URL, "http://", "http://operator:secret@", 1), calls
}

// A queue that goes while it is described is a 500. Whoever listed queues at that moment must not be told that the broker is broken.
func TestAnErrorOfTheServerIsAskedAgain(t *testing.T) {
	t.Parallel()
	address, calls := api(t, http.StatusInternalServerError, http.StatusServiceUnavailable)
	var queue struct {
		Name string `json:"name"`
	}
	if err := management.New(address).Get(t.Context(), "/api/queues/banking", &queue); err != nil {
		t.Fatal(err)
	}
	if queue.Name != "banking.dead-letters" || *calls != 3 {
		t.Errorf("read %q in %d calls", queue.Name, *calls)
	}
}

func TestAServerThatFailsForGoodIsAnError(t *testing.T) {
	t.Parallel()
	address, calls := api(t, 500, 500, 500, 500, 500)
	err := management.New(address).Put(t.Context(), "/api/vhosts/banking", struct{}{})
	if err == nil || !strings.Contains(err.Error(), "answered PUT /api/vhosts/banking with 500 Internal Server Error") {
		t.Errorf("Put() = %v", err)
	}
	if *calls != 5 {
		t.Errorf("asked %d times", *calls)
	}
}

func TestWhoGoesAwayIsNotKept(t *testing.T) {
	t.Parallel()
	address, calls := api(t, 500, 500, 500, 500, 500)
	ctx, cancel := context.WithCancel(t.Context())
	client := management.New(address)
	cancel()
	if err := client.Get(ctx, "/api/overview", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Get() = %v, want %v", err, context.Canceled)
	}
	if *calls > 1 {
		t.Errorf("asked %d times", *calls)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	t.Parallel()
	address, calls := api(t, http.StatusNotFound, http.StatusNotFound)
	if err := management.New(address).Get(t.Context(), "/api/queues/banking/x", nil); !errors.Is(err, management.ErrNotFound) {
		t.Errorf("Get() = %v, want %v", err, management.ErrNotFound)
	}
	if err := management.New(address).Delete(t.Context(), "/api/queues/banking/x"); err != nil {
		t.Errorf("Delete() = %v", err)
	}
	if *calls != 2 {
		t.Errorf("asked %d times", *calls)
	}
}

// An address without credentials gets those of the broker; its own come first.
func TestCredentials(t *testing.T) {
	t.Parallel()
	address, _ := api(t)
	for _, client := range []*management.Client{
		management.New(strings.Replace(address, "operator:secret@", "", 1)+"/").WithUser("operator", "secret"),
		management.New(address).WithUser("guest", "guest"),
	} {
		if err := client.Get(t.Context(), "/api/overview", nil); err != nil {
			t.Error(err)
		}
	}
}

// Errors are printed and logged.
func TestNoErrorHoldsThePassword(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://operator:secret@127.0.0.1:1", "http://operator:secret@%zz", "http://operator:secret@127.0.0.1:secret", "operator:secret@"} {
		err := management.New(address).WithUser("operator", "secret").Get(t.Context(), "/api/overview", nil)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("Get() of %s = %v", address, err)
		}
	}
}
