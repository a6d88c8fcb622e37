package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
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
	packed  []byte // by gzip; nil where that makes it no smaller
	mime    string
	tag     string // changes with the content
}

// files are the page: index.html at /, everything else under /static.
type files struct {
	known map[string]file
	// version changes with any of the files. The page asks for them under it, so that a browser may keep them for good: a new console
	// has other addresses. Modules import each other by relative paths, which stay within the version.
	version string
}

// newFiles packs the files once for the process.
var newFiles = sync.OnceValue(func() files {
	f := files{known: map[string]file{}}
	all := sha256.New()
	err := fs.WalkDir(staticFiles, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := staticFiles.ReadFile(name)
		if err != nil {
			return err
		}
		all.Write(content)
		f.known[strings.TrimPrefix(name, "static/")] = newFile(name, content)
		return nil
	})
	if err != nil {
		panic(err) // the folder is embedded
	}
	f.version = base64.RawURLEncoding.EncodeToString(all.Sum(nil)[:9])
	page, sheet := f.joinSheets(f.known["index.html"].content)
	f.known[joinedSheet] = newFile(joinedSheet, sheet)
	f.known["index.html"] = newFile("index.html", f.index(page))
	return f
})

func newFile(name string, content []byte) file {
	sum := sha256.Sum256(content)
	made := file{content: content, mime: mimeOf(name), tag: base64.RawURLEncoding.EncodeToString(sum[:9])}
	var packed bytes.Buffer
	to, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = to.Write(content)
	}
	if err == nil {
		err = to.Close()
	}
	if err != nil {
		panic(err) // a buffer takes everything
	}
	if packed.Len() < len(content) {
		made.packed = packed.Bytes()
	}
	return made
}

// joinedSheet is the name under which all style sheets of the page are sent.
const joinedSheet = "css/all.css"

var sheetLink = regexp.MustCompile(`\n *<link rel="stylesheet" href="/static/([^"]+)">`)

// joinSheets makes the style sheets that the page names one, in their order, and names that instead: a browser paints nothing before it has
// all of them, and each is a request of its own.
func (f files) joinSheets(page []byte) (joined, sheet []byte) {
	for _, link := range sheetLink.FindAllSubmatch(page, -1) {
		sheet = append(sheet, f.known[string(link[1])].content...)
	}
	first := sheetLink.FindIndex(page)
	joined = slices.Concat(page[:first[0]], []byte("\n  <link rel=\"stylesheet\" href=\"/static/"+joinedSheet+"\">"), sheetLink.ReplaceAll(page[first[0]:], nil))
	return joined, sheet
}

// index makes the page as it is sent: with the version in its addresses, and with all modules named, so that a browser gets them at once and not
// level by level as each tells what it imports.
func (f files) index(page []byte) []byte {
	var preloads strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f.known)) {
		if strings.HasSuffix(name, ".js") && name != "js/app.js" {
			preloads.WriteString("  <link rel=\"modulepreload\" href=\"/static/" + name + "\">\n")
		}
	}
	text := strings.Replace(string(page), "</head>", preloads.String()+"</head>", 1)
	return []byte(strings.ReplaceAll(text, `"/static/`, `"/static/`+f.version+"/"))
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

// register adds the routes; opened is told when somebody opens the page.
func (f files) register(e *echo.Echo, opened func()) {
	e.GET("/", func(c echo.Context) error {
		opened()
		return f.send(c, "index.html", false)
	})
	e.GET("/favicon.ico", func(c echo.Context) error { return f.send(c, "icon.svg", false) })
	e.GET("/static/*", func(c echo.Context) error {
		name, versioned := strings.CutPrefix(c.Param("*"), f.version+"/")
		return f.send(c, name, versioned)
	})
}

// send lets the browser keep what was asked for under its version for good, and else ask each time whether it is still the same: a new
// console brings new files at once.
func (f files) send(c echo.Context, name string, versioned bool) error {
	found, ok := f.known[name]
	if !ok || name == "index.html" && c.Path() != "/" {
		return service.NotFound("There is no such file.")
	}
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, found.mime)
	header.Set(echo.HeaderVary, echo.HeaderAcceptEncoding)
	if versioned {
		header.Set(echo.HeaderCacheControl, "public, max-age=31536000, immutable")
	} else {
		header.Set(echo.HeaderCacheControl, "no-cache")
	}
	content, tag := found.content, found.tag
	if found.packed != nil && strings.Contains(c.Request().Header.Get(echo.HeaderAcceptEncoding), "gzip") {
		header.Set(echo.HeaderContentEncoding, "gzip")
		content, tag = found.packed, tag+"-gzip"
	}
	header.Set("ETag", `"`+tag+`"`)
	http.ServeContent(c.Response(), c.Request(), "", time.Time{}, bytes.NewReader(content))
	return nil
}
