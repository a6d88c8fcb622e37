package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"example.com/banking/internal/plot"
	"example.com/banking/internal/policy"
	"example.com/banking/pkg/service"
	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"
)

// policyPage serves the plots of the Policy page. They are computed here, by what the services run; the page shows what it gets. Anybody
// who can open the console may ask, as there is nothing of the bank in them.
type policyPage struct {
	m       sync.Mutex // held while computing, so that many who ask keep one processor busy at most
	reports map[string]policy.Report
}

// mostReports is how many are kept; what was asked for with the settings of the page is nearly always among them.
const mostReports = 64

// drawingPolicy lets a drawing bring its style sheet along and nothing else, also when it is opened by itself.
var drawingPolicy = "default-src 'none'; style-src " + plot.StyleSource() + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'"

func (p *policyPage) register(e *echo.Echo) {
	e.GET("/api/policy", p.list)
	e.GET("/api/policy/:plot", p.report)
	e.GET("/api/policy/:plot/drawing", p.drawing)
}

func (p *policyPage) list(c echo.Context) error {
	return sendJSON(c, struct {
		Plots     []policy.Plot `json:"plots"`
		Decisions policy.Table  `json:"decisions"`
	}{policy.Plots(), policy.Decisions()})
}

func (p *policyPage) report(c echo.Context) error {
	settings, err := settingsOf(c)
	if err != nil {
		return err
	}
	report, err := p.compute(c.Param("plot"), settings)
	if err != nil {
		return err
	}
	return sendJSON(c, report)
}

func (p *policyPage) drawing(c echo.Context) error {
	settings, err := settingsOf(c)
	if err != nil {
		return err
	}
	width, given := settings["width"]
	delete(settings, "width")
	if given && width != "wide" && width != "narrow" {
		return service.BadRequest("The query is not acceptable.", service.FieldError{Field: "width", Message: "must be wide or narrow"})
	}
	report, err := p.compute(c.Param("plot"), settings)
	if err != nil {
		return err
	}
	svg := report.Drawing.SVG()
	if width == "narrow" {
		svg = report.Drawing.NarrowSVG()
	}
	c.Response().Header().Set("Content-Security-Policy", drawingPolicy)
	return sendTagged(c, "image/svg+xml", []byte(svg))
}

// compute computes a plot, or finds it among those that were computed before: the same settings give the same plot.
func (p *policyPage) compute(name string, settings map[string]string) (policy.Report, error) {
	found, known := policy.Find(name)
	if !known {
		return policy.Report{}, service.NotFound("There is no such plot; GET /api/policy lists them.")
	}
	key := name + "?" + encoded(settings)
	p.m.Lock()
	defer p.m.Unlock()
	if report, kept := p.reports[key]; kept {
		return report, nil
	}
	report, err := found.Compute(settings)
	var invalid policy.InvalidSettings
	if errors.As(err, &invalid) {
		wrong := make([]service.FieldError, len(invalid))
		for i, one := range invalid {
			wrong[i] = service.FieldError{Field: one.Setting, Message: one.Wanted}
		}
		return policy.Report{}, service.BadRequest("The query is not acceptable.", wrong...)
	}
	if err != nil {
		return policy.Report{}, err
	}
	if p.reports == nil || len(p.reports) >= mostReports {
		p.reports = map[string]policy.Report{}
	}
	p.reports[key] = report
	return report, nil
}

// settingsOf reads the query.
func settingsOf(c echo.Context) (map[string]string, error) {
	if _, _, err := service.QueryParam(c, ""); err != nil { // of what cannot be read there are no names
		return nil, err
	}
	settings := map[string]string{}
	for name := range c.QueryParams() {
		value, _, err := service.QueryParam(c, name)
		if err != nil {
			return nil, err
		}
		settings[name] = value
	}
	return settings, nil
}

func encoded(settings map[string]string) string {
	values := url.Values{}
	for name, value := range settings {
		values.Set(name, value)
	}
	return values.Encode()
}

func sendJSON(c echo.Context, document any) error {
	content, err := json.Marshal(document, json.Deterministic(true))
	if err != nil {
		return err
	}
	return sendTagged(c, echo.MIMEApplicationJSON, content)
}

// sendTagged lets the browser keep what it got and ask whether it is still the same: a new console may compute something else.
func sendTagged(c echo.Context, mime string, content []byte) error {
	sum := sha256.Sum256(content)
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, mime)
	header.Set(echo.HeaderCacheControl, "no-cache")
	header.Set("ETag", `"`+base64.RawURLEncoding.EncodeToString(sum[:9])+`"`)
	http.ServeContent(c.Response(), c.Request(), "", time.Time{}, bytes.NewReader(content))
	return nil
}
