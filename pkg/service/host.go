package service

import (
	"net"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// refuseForeignHost keeps a page of another site from becoming ours: its owner lets its name lead to 127.0.0.1 after the browser has
// loaded it (DNS rebinding), and from then on it calls a service on this machine as its own origin, which no check of origins refuses, and
// reads the answers. The browser still says by which name it came. On the loopback interface nobody has reason to use any name but
// the machine's own for itself, so nothing else is answered there, reads included. Anywhere else a service cannot know its names.
func (h *HTTP) refuseForeignHost(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if h.loopback && !namesLoopback(c.Request().Host) {
			return NewProblem(http.StatusMisdirectedRequest, "This service listens on this machine only and answers only who calls it localhost, "+
				"127.0.0.1 or [::1]. A proxy in front of it must send one of them as Host.")
		}
		return next(c)
	}
}

// listensOnLoopback says whether an address can be reached from this machine only.
func listensOnLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// namesLoopback says whether a Host header, its port aside, is a name of the loopback interface. No browser leaves it out.
func namesLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	return host == "" || strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
