package service

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"github.com/labstack/echo/v4"
)

const adminPrefix = "/admin"

// guardAdmin lets only calls with the token through to what is under /admin. Without a token nobody is let in: an open
// admin interface must be a decision, never a forgotten variable. It guards the paths, not a group of routes, so that
// who has no token does not learn which paths and methods there are.
func guardAdmin(token string) echo.MiddlewareFunc {
	wanted := sha256.Sum256([]byte(token))
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if !underAdmin(c.Path()) && !underAdmin(c.Request().URL.Path) {
				return next(c)
			}
			if token == "" {
				return Forbidden("Administration is switched off: ADMIN_TOKEN is not set.")
			}
			scheme, given, _ := strings.Cut(c.Request().Header.Get(echo.HeaderAuthorization), " ")
			// Hashes have one length, so that the time taken tells nothing about the token's.
			got := sha256.Sum256([]byte(strings.TrimSpace(given)))
			if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], wanted[:]) != 1 {
				c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Bearer realm="admin"`)
				return Unauthorized("This call needs the admin token as a bearer token.")
			}
			return next(c)
		}
	}
}

func underAdmin(path string) bool {
	return path == adminPrefix || strings.HasPrefix(path, adminPrefix+"/")
}
