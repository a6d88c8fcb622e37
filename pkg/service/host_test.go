package service_test

import (
	"net/http"
	"testing"

	"example.com/banking/pkg/service"
	"github.com/labstack/echo/v4"
)

// A page of another site whose name leads to 127.0.0.1 by now is of the same origin as the service: only the name tells.
func TestOnLoopbackOnlyItsOwnNamesAreAnswered(t *testing.T) {
	t.Parallel()
	routes := func(h *service.HTTP) {
		h.Echo.Any("/money", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	}
	here := serve(t, service.HTTPConfig{}, routes)
	everywhere := serveOn(t, "0.0.0.0:0", service.HTTPConfig{}, routes)
	for host, own := range map[string]bool{
		"localhost": true, "localhost:8081": true, "LOCALHOST:1": true, "127.0.0.1": true, "127.0.0.1:9": true, "127.1.2.3:80": true, "[::1]": true, "[::1]:8080": true,
		"evil.example": false, "evil.example:8081": false, "localhost.evil.example": false, "127.0.0.1.evil.example:80": false, "account:8081": false,
		"192.0.2.1:8081": false, "[2001:db8::1]:80": false,
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			want := http.StatusNoContent
			if !own {
				want = http.StatusMisdirectedRequest
			}
			// What a browser says of a page that it takes for ours.
			headers := []string{"Origin", "http://" + host, "Sec-Fetch-Site", "same-origin"}
			got := callAs(t, host, method, here+"/money", headers...)
			if got.status != want {
				t.Errorf("%s as %s on loopback: %d, want %d", method, host, got.status, want)
			}
			if !own && method == http.MethodPost {
				wantProblem(t, got, http.StatusMisdirectedRequest)
			}
			// As in a container, whose names others give.
			if got := callAs(t, host, method, everywhere+"/money", headers...); got.status != http.StatusNoContent {
				t.Errorf("%s as %s on every interface: %d", method, host, got.status)
			}
		}
	}
}
