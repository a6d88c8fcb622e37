package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"example.com/banking/pkg/service"
	"github.com/labstack/echo/v4"
)

//go:embed static
var staticFiles embed.FS

// secureHeaders are sent with every answer. The page runs only what this server sends as a file: no inline script or style, nothing from
// elsewhere, and no text ever becomes markup (Trusted Types), so that a reference, an owner or an error text that somebody
// put a script into stays text. Nobody may put the page into a frame to have its buttons clicked.
func secureHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	const policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; " +
		"require-trusted-types-for 'script'; trusted-types 'none'"
	return func(c echo.Context) error {
		header := c.Response().Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY") // for what does not know frame-ancestors
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
		return next(c)
	}
}

// file is one embedded file, ready to be sent.
type file struct {
	content []byte
	mime    string
	tag     string // changes with the content
}

// files are the page: index.html at /, everything else under /static.
type files map[string]file

func newFiles() files {
	f := files{}
	err := fs.WalkDir(staticFiles, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := staticFiles.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		f[strings.TrimPrefix(name, "static/")] = file{content, mimeOf(name), `"` + base64.RawURLEncoding.EncodeToString(sum[:9]) + `"`}
		return nil
	})
	if err != nil {
		panic(err) // the folder is embedded
	}
	return f
}

// mimeOf does not ask the machine's tables first: a script of another type than the machine thinks is not run.
func mimeOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}

func (f files) register(e *echo.Echo) {
	e.GET("/", func(c echo.Context) error { return f.send(c, "index.html") })
	e.GET("/favicon.ico", func(c echo.Context) error { return f.send(c, "icon.svg") })
	e.GET("/static/*", func(c echo.Context) error { return f.send(c, c.Param("*")) })
}

// send lets the browser keep the file and ask each time whether it is still the same: a new console brings new files at once.
func (f files) send(c echo.Context, name string) error {
	found, ok := f[name]
	if !ok {
		return service.NotFound("There is no such file.")
	}
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, found.mime)
	header.Set(echo.HeaderCacheControl, "no-cache")
	header.Set("ETag", found.tag)
	http.ServeContent(c.Response(), c.Request(), "", time.Time{}, bytes.NewReader(found.content))
	return nil
}
