package main

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"example.com/banking/pkg/service"
	"github.com/labstack/echo/v4"
	"golang.org/x/time/rate"
)

const (
	sessionTime     = 8 * time.Hour // a shift
	mostSessions    = 1000
	longestOperator = 60 // characters
)

// sessions are who is signed in. They live in memory: who signed in before a restart signs in again.
type sessions struct {
	others []string // told to the page with who is signed in, because it needs both before it can show anything
	token  [32]byte // of ADMIN_TOKEN
	on     bool     // there is an ADMIN_TOKEN
	clock  func() time.Time
	wrong  *rate.Limiter // wrong tokens that may be tried
	m      sync.Mutex
	active map[string]session
}

// session is one browser that was shown the admin token. The token itself never goes to the browser, nor does it stay there.
type session struct {
	operator string // who acts, for the audit
	expires  time.Time
}

func newSessions(token string, clock func() time.Time) *sessions {
	return &sessions{
		token: sha256.Sum256([]byte(token)), on: token != "", clock: clock,
		wrong: rate.NewLimiter(rate.Every(2*time.Second), 10), active: map[string]session{},
	}
}

func (s *sessions) register(e *echo.Echo) {
	e.GET("/api/session", s.show)
	e.POST("/api/session", s.open)
	e.DELETE("/api/session", s.end)
}

// sessionView is what a page may know of its session.
type sessionView struct {
	SignedIn  bool       `json:"signedIn"`
	Operator  string     `json:"operator,omitzero"`
	ExpiresAt *time.Time `json:"expiresAt,omitzero"`
	Available bool       `json:"available"` // whether one can sign in at all
	Others    []string   `json:"others"`    // the services beside account and transfer, whose quarantines there are too
}

func (s *sessions) show(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	found, ok := s.of(c)
	view := sessionView{SignedIn: ok, Operator: found.operator, Available: s.on, Others: append([]string{}, s.others...)}
	if ok {
		at := found.expires.UTC().Truncate(time.Second)
		view.ExpiresAt = &at
	}
	return c.JSON(http.StatusOK, view)
}

func (s *sessions) open(c echo.Context) error {
	var body struct {
		Token    string `json:"token"`
		Operator string `json:"operator"`
	}
	if err := service.DecodeJSON(c, &body); err != nil {
		return err
	}
	if !s.on {
		return service.Forbidden("Nobody can sign in: the console was started without ADMIN_TOKEN.")
	}
	body.Operator = strings.TrimSpace(body.Operator)
	if utf8.RuneCountInString(body.Operator) > longestOperator || strings.ContainsFunc(body.Operator, unicode.IsControl) {
		return service.BadRequest("The name is not acceptable.", service.FieldError{Field: "operator", Message: "must have at most 60 printable characters"})
	}
	if s.wrong.Tokens() < 1 { // before looking at the token: else the right one would be told by its other answer
		problem := service.NewProblem(http.StatusTooManyRequests, "Too many wrong tokens were tried. Wait a few seconds.")
		problem.RetryAfter = 2 * time.Second
		return problem
	}
	given := sha256.Sum256([]byte(strings.TrimSpace(body.Token)))
	if subtle.ConstantTimeCompare(given[:], s.token[:]) != 1 {
		s.wrong.Allow()
		return service.Unauthorized("This is not the admin token.")
	}
	id, opened := rand.Text(), session{operator: body.Operator, expires: s.clock().Add(sessionTime)}
	s.keep(id, opened)
	c.SetCookie(s.cookie(c, id, int(sessionTime/time.Second)))
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.NoContent(http.StatusNoContent)
}

func (s *sessions) end(c echo.Context) error {
	if cookie, err := c.Cookie(cookieName(c)); err == nil {
		s.m.Lock()
		delete(s.active, cookie.Value)
		s.m.Unlock()
	}
	c.SetCookie(s.cookie(c, "", -1))
	return c.NoContent(http.StatusNoContent)
}

// keep adds a session; those that have expired make room, and if need be the one that expires next.
func (s *sessions) keep(id string, opened session) {
	s.m.Lock()
	defer s.m.Unlock()
	next, now := "", s.clock()
	for known, old := range s.active {
		if !old.expires.After(now) {
			delete(s.active, known)
		} else if next == "" || old.expires.Before(s.active[next].expires) {
			next = known
		}
	}
	if len(s.active) >= mostSessions {
		delete(s.active, next)
	}
	s.active[id] = opened
}

// cookie is strict: a link from another site does not carry it, and no script can read it.
func (s *sessions) cookie(c echo.Context, id string, age int) *http.Cookie {
	return &http.Cookie{
		Name: cookieName(c), Value: id, Path: "/", MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: c.IsTLS(),
	}
}

// cookieName has the port in it. Cookies know hosts only, so that two banks on one machine would sign each other out.
func cookieName(c echo.Context) string {
	name := "console-session"
	if _, port, err := net.SplitHostPort(c.Request().Host); err == nil {
		name += "-" + port
	}
	return name
}

// of answers the session of who calls.
func (s *sessions) of(c echo.Context) (session, bool) {
	cookie, err := c.Cookie(cookieName(c))
	if err != nil {
		return session{}, false
	}
	s.m.Lock()
	defer s.m.Unlock()
	found, ok := s.active[cookie.Value]
	if !ok || !found.expires.After(s.clock()) {
		delete(s.active, cookie.Value)
		return session{}, false
	}
	return found, true
}

// need refuses who is not signed in.
func (s *sessions) need(c echo.Context) (session, error) {
	found, ok := s.of(c)
	switch {
	case ok:
		return found, nil
	case !s.on:
		return found, service.Forbidden("Administration is switched off: the console was started without ADMIN_TOKEN.")
	}
	return found, service.Unauthorized("Sign in with the admin token first.")
}
