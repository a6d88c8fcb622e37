package service

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"github.com/labstack/echo/v4"
)

// bearer lets calls through that carry the token. Without a token nobody is let in: an open admin interface must be a
// decision, never a forgotten variable.
func bearer(token string) echo.MiddlewareFunc {
	wanted := sha256.Sum256([]byte(token))
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
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
