package load_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/banking/internal/load"
)

func TestBurstGetsOverWhateverTheServiceDoes(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	url := service(t, func(w http.ResponseWriter, n int, _ order) {
		switch n {
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 4:
			panic(http.ErrAbortHandler) // the connection ends without an answer
		case 6:
			<-over
		case 8:
			w.Header().Set("Connection", "close")
			accept(w, n)
		case 9:
			w.WriteHeader(http.StatusAccepted)
			for _, part := range []string{`{"id"`, `:"in parts"}`} {
				_, _ = w.Write([]byte(part))
				w.(http.Flusher).Flush()
			}
		default:
			accept(w, n)
		}
	})
	t.Cleanup(func() { close(over) }) // before the server is closed
	r, err := load.Burst(t.Context(), load.Config{URL: url + "/", Accounts: accounts, Currency: "EUR", Timeout: 2 * time.Second}, 12, 1)
	if err != nil || r.Sent != 12 || r.Accepted != 9 || r.Failed != 3 || r.TimedOut != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// What a burst sends is what every client sends, one connection for each.
func TestBurstSpeaksHTTP(t *testing.T) {
	t.Parallel()
	var m sync.Mutex
	from := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.Lock()
		defer m.Unlock()
		from[r.RemoteAddr]++
		if r.Method != http.MethodPost || r.URL.Path != "/bank/transfers" || r.Header.Get("Content-Type") != "application/json" || r.Host != r.Context().Value(http.LocalAddrContextKey).(interface{ String() string }).String() {
			t.Errorf("%s %s with %v to %s", r.Method, r.URL, r.Header, r.Host)
		}
		accept(w, 1)
	}))
	defer s.Close()
	r, err := load.Burst(t.Context(), load.Config{URL: s.URL + "/bank", Accounts: accounts, Currency: "EUR"}, 60, 3)
	if err != nil || r.Accepted != 60 || len(from) > 3 {
		t.Errorf("%d connections, %+v, %v", len(from), r, err)
	}
}

func TestBurstWantsPlainHTTP(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"https://127.0.0.1:1", "127.0.0.1:1", "", "http://", "http://%"} {
		r, err := load.Burst(t.Context(), load.Config{URL: url, Accounts: accounts, Currency: "EUR"}, 1, 1)
		if err == nil || r.Sent != 0 || url == "https://127.0.0.1:1" && !strings.Contains(err.Error(), "http://") {
			t.Errorf("%q: %+v, %v", url, r, err)
		}
	}
}
