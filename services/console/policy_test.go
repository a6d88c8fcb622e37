package main

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"example.com/banking/internal/policy"
	"example.com/banking/pkg/service/openapitest"
	"github.com/chromedp/chromedp/kb"
	"github.com/go-json-experiment/json"
)

func TestPolicyPlots(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	plain := *c
	plain.client = &http.Client{Transport: c.client.Transport} // the document's checker reads no drawings
	c.client.Transport = openapitest.New(t, openAPI, c.client.Transport)
	var list struct {
		Plots []struct {
			Name string `json:"name"`
		} `json:"plots"`
	}
	if got := c.call(t, "GET", "/api/policy", ""); got.status != http.StatusOK || json.Unmarshal([]byte(got.body), &list) != nil {
		t.Fatalf("got %+v", got)
	}
	var names []string
	for _, p := range list.Plots {
		names = append(names, p.Name)
		got := c.call(t, "GET", "/api/policy/"+p.Name, "")
		if got.status != http.StatusOK || !strings.Contains(got.body, `"interview":"`) {
			t.Errorf("%s: %+v", p.Name, got)
		}
		if again := c.call(t, "GET", "/api/policy/"+p.Name, "", "If-None-Match", got.header.Get("ETag")); again.status != http.StatusNotModified {
			t.Errorf("%s, asked again: %d, want 304", p.Name, again.status)
		}
		for _, width := range []string{"wide", "narrow"} {
			checkDrawing(t, plain.call(t, "GET", "/api/policy/"+p.Name+"/drawing?width="+width, ""), width)
		}
	}
	if want := []string{"delays", "jitter", "storm", "amplification", "dampers", "platforms"}; !slices.Equal(names, want) {
		t.Errorf("plots %v, want %v", names, want)
	}
}

// checkDrawing wants an image that the browser may show and in which nothing can run.
func checkDrawing(t *testing.T, got answer, width string) {
	t.Helper()
	guard := got.header.Get("Content-Security-Policy")
	if got.status != http.StatusOK || got.header.Get("Content-Type") != "image/svg+xml" || got.header.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.HasPrefix(guard, "default-src 'none'; style-src 'sha256-") || strings.Contains(guard, "unsafe") {
		t.Errorf("%d %v", got.status, got.header)
	}
	if !strings.Contains(got.body, map[string]string{"wide": `viewBox="0 0 720 `, "narrow": `viewBox="0 0 360 `}[width]) {
		t.Errorf("not %s: %.100s", width, got.body)
	}
	for d := xml.NewDecoder(strings.NewReader(got.body)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && (strings.EqualFold(e.Name.Local, "script") || strings.EqualFold(e.Name.Local, "foreignObject")) {
			t.Errorf("has a %s", e.Name.Local)
		}
	}
}

func TestPolicySettings(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.client.Transport = openapitest.New(t, openAPI, c.client.Transport)
	first := c.call(t, "GET", "/api/policy/storm?messages=100&jitter=equal&seed=7", "")
	if again := c.call(t, "GET", "/api/policy/storm?seed=7&jitter=equal&messages=100", ""); first.status != http.StatusOK || again.body != first.body {
		t.Errorf("the same settings: %d and %d", first.status, again.status)
	}
	if other := c.call(t, "GET", "/api/policy/storm?messages=100&jitter=equal&seed=8", ""); other.body == first.body {
		t.Error("another seed, and the same answer")
	}
	for query, wanted := range map[string][]string{
		"storm?messages=10001&jitter=much":           {`{"field":"messages","message":"must be a whole number from 1 to 10,000"}`, `{"field":"jitter","message":"must be one of full, `},
		"storm?messages=":                            {`"field":"messages"`},
		"storm?seed=1&seed=2":                        {`{"field":"seed","message":"must be given once"}`},
		"storm?colour=red":                           {`{"field":"colour","message":"is no setting of this plot; it has messages, jitter, delay, retries, seed"}`},
		"storm?messages=%zz":                         {"The query cannot be read"},
		"dampers?outage=100000":                      {`{"field":"outage","message":"must be a whole number from 1 to 60"}`},
		"storm/drawing?width=wider":                  {`{"field":"width","message":"must be wide or narrow"}`},
		"storm/drawing?messages=<script>&width=wide": {`"field":"messages"`},
	} {
		got := c.call(t, "GET", "/api/policy/"+query, "")
		for _, text := range wanted {
			if got.status != http.StatusBadRequest || got.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(got.body, text) {
				t.Errorf("%s: %d %s", query, got.status, got.body)
			}
		}
	}
	expectStatus(t, c.call(t, "GET", "/api/policy/weather", ""), http.StatusNotFound)
	expectStatus(t, c.call(t, "POST", "/api/policy/storm", "{}"), http.StatusMethodNotAllowed)
}

// What is kept of computed plots is bounded, however many are asked for.
func TestPolicyKeepsOnlySomePlots(t *testing.T) {
	t.Parallel()
	p := &policyPage{}
	for seed := range 3 * mostReports {
		for _, name := range []string{"storm", "weather"} {
			_, err := p.compute(name, map[string]string{"messages": "1", "seed": string(rune('1' + seed%9)), "retries": "1", "delay": string(rune('1' + seed/9%9))})
			if (err != nil) != (name == "weather") {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if len(p.reports) > mostReports {
			t.Fatalf("%d are kept", len(p.reports))
		}
	}
	if len(p.reports) == 0 {
		t.Error("nothing is kept")
	}
}

// Settings are changed and plots read without a mouse, at both sizes, light and dark; a wrong one is refused in the server's words, and
// the plot before it stays.
func TestPolicyPage(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]look{
		"wide and light": wide, "wide and dark": {1280, 900, true, false}, "narrow and light": {400, 800, false, true}, "narrow and dark": {400, 800, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startLifelike(t)
			p := c.openTab(t, how, "#/policy")
			p.says("called 81 times for one request")
			p.says("1,447 messages end in quarantine")
			const shown = "[...document.querySelectorAll('figure img')].filter((i) => i.complete && i.naturalWidth)"
			p.until("every plot is drawn", shown+".length === 6")
			var alts []string
			p.eval(shown+".map((i) => i.alt)", &alts)
			for i, plot := range policy.Plots() {
				if report, err := plot.Compute(nil); err != nil || alts[i] != report.About {
					t.Errorf("%s is said to be %q", plot.Name, alts[i])
				}
			}
			var sizes []int
			p.eval(shown+".map((i) => i.currentSrc.includes('width=narrow') ? 360 : 720)", &sizes)
			if want := map[bool]int{true: 360, false: 720}[how.width < 600]; slices.Min(sizes) != want || slices.Max(sizes) != want {
				t.Errorf("drawings of %v", sizes)
			}
			p.eval("for (const d of document.querySelectorAll('main details')) d.open = true", nil)
			p.check("#/policy")
			p.keep("#/policy", how)
			checkInk(p, how.dark)

			p.tabTo("Calls on the innermost")
			p.press(kb.Enter)
			p.until("the focus is at the plot", "document.activeElement.id === 'plot-amplification' && document.activeElement.getBoundingClientRect().top < innerHeight")
			p.tabTo("Layers")
			p.press(kb.Backspace, "3", kb.Tab)
			p.says("called 27 times for one request")
			p.until("the drawing is another", "[...document.querySelectorAll('figure img')].some((i) => i.complete && i.naturalWidth && i.alt.includes('3 layers of 3 attempts each make 27'))")
			p.press(kb.Backspace, "0", kb.Enter)
			p.says("attempts must be a whole number from 1 to 6")
			p.says("called 27 times for one request")
			p.until("the field is marked", "document.activeElement.getAttribute('aria-invalid') === 'true'")
			p.press(kb.Backspace, "2", kb.Enter)
			p.silent("must be a whole number")
			p.says("called 8 times for one request")
			p.check("#/policy, changed")
		})
	}
}

// checkInk looks whether the drawings follow the page's light or dark mode: what is written in the first is dark, or light.
func checkInk(p *tab, dark bool) {
	p.Helper()
	var darkest, lightest float64
	const ink = `(() => { const image = document.querySelector('figure img'), canvas = document.createElement('canvas');
		canvas.width = 720; canvas.height = 360;
		const to = canvas.getContext('2d'); to.drawImage(image, 0, 0, 720, 360);
		const seen = [], all = to.getImageData(0, 0, 400, 24).data;
		for (let i = 0; i < all.length; i += 4) if (all[i + 3] > 200) seen.push(all[i] + all[i + 1] + all[i + 2]);
		return seen; })()`
	p.eval("Math.min(..."+ink+")", &darkest)
	p.eval("Math.max(..."+ink+")", &lightest)
	if dark && lightest < 600 || !dark && darkest > 200 {
		p.Errorf("dark %t: ink from %v to %v", dark, darkest, lightest)
	}
}
