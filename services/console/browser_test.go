package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// browser is one Chromium for all tests; each test has a profile and a tab of its own in it. No more than four at a time: the machine
// may have two cores.
var browser struct {
	once sync.Once
	ctx  context.Context
	off  context.CancelFunc
	err  error
	tabs chan struct{}
}

func startBrowser() {
	browser.tabs = make(chan struct{}, 4)
	browser.off = func() {}
	var program string
	for _, name := range []string{
		"chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium",
	} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		browser.err = fmt.Errorf("no browser is here to show the pages in: install Chromium (make install-test, or apt-get install chromium)")
		return
	}
	// Chromium's own sandbox does not work for root, nor in many containers; the only pages that are shown are ours.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox)
	allocator, offAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	quiet := func(string, ...any) {}
	ctx, off := chromedp.NewContext(allocator, chromedp.WithErrorf(quiet), chromedp.WithLogf(quiet))
	browser.ctx, browser.off = ctx, func() { off(); offAllocator() }
	browser.err = chromedp.Run(ctx)
}

// tab is one page in the browser.
type tab struct {
	*testing.T
	ctx context.Context
	url string

	m    sync.Mutex
	said []string // errors on its console
}

// look is how a page is looked at.
type look struct {
	width, height int64
	dark, still   bool
}

var wide = look{width: 1280, height: 900}

// openTab opens the console's page.
func (c *console) openTab(t *testing.T, how look, path string) *tab {
	t.Helper()
	browser.once.Do(startBrowser)
	if browser.err != nil {
		t.Fatal(browser.err)
	}
	browser.tabs <- struct{}{}
	t.Cleanup(func() { <-browser.tabs })
	// In a window of its own, because a tab behind another one is hidden. Cookies are kept apart by the console's port.
	var id target.ID
	if err := chromedp.Run(browser.ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		id, err = target.CreateTarget("about:blank").WithNewWindow(true).Do(cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser))
		return err
	})); err != nil {
		t.Fatal(err)
	}
	ctx, off := chromedp.NewContext(browser.ctx, chromedp.WithTargetID(id))
	t.Cleanup(off)
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	p := &tab{T: t, ctx: ctx, url: c.url}
	chromedp.ListenTarget(ctx, p.listen)
	scheme, motion := "light", "no-preference"
	if how.dark {
		scheme = "dark"
	}
	if how.still {
		motion = "reduce"
	}
	p.do(log.Enable(),
		emulation.SetDeviceMetricsOverride(how.width, how.height, 1, how.width < 600),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion},
		}),
		chromedp.Navigate(c.url+"/"+path))
	t.Cleanup(func() {
		p.m.Lock()
		defer p.m.Unlock()
		for _, line := range p.said {
			t.Errorf("the browser's console: %s", line)
		}
	})
	return p
}

// listen notes everything that a page says on the console, be it an error, a warning or a violated policy.
func (p *tab) listen(event any) {
	var line string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		line = e.ExceptionDetails.Error()
	case *runtime.EventConsoleAPICalled:
		for _, value := range e.Args {
			line += string(value.Value) + " " + value.Description
		}
	case *log.EventEntryAdded:
		// A refused call or a lost connection is logged by the browser itself; what the page makes of it is looked at elsewhere.
		if e.Entry.Level == log.LevelError && e.Entry.Source != log.SourceNetwork || e.Entry.Source == log.SourceSecurity {
			line = e.Entry.Text
		}
	}
	if line != "" {
		p.m.Lock()
		defer p.m.Unlock()
		p.said = append(p.said, line)
	}
}

func (p *tab) do(actions ...chromedp.Action) {
	p.Helper()
	if err := chromedp.Run(p.ctx, actions...); err != nil {
		p.Fatal(err)
	}
}

// eval runs a script in the page and reads what it answers.
func (p *tab) eval(script string, result any) {
	p.Helper()
	p.do(chromedp.Evaluate(script, result))
}

// until waits until a condition, a JavaScript expression, holds in the page.
func (p *tab) until(what, condition string) {
	p.Helper()
	err := chromedp.Run(p.ctx, chromedp.Poll("Boolean("+condition+")", nil, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(20*time.Second)))
	if err != nil {
		var text string
		_ = chromedp.Run(p.ctx, chromedp.Evaluate("document.body.innerText", &text))
		p.Fatalf("%s: %v\nThe page says:\n%s", what, err, text)
	}
}

// says waits until the page shows a text.
func (p *tab) says(text string) {
	p.Helper()
	p.until("the page says "+text, fmt.Sprintf("document.body.innerText.replace(/\\s+/g, ' ').includes(%q)", text))
}

// silent waits until the page no longer shows a text.
func (p *tab) silent(text string) {
	p.Helper()
	p.until("the page no longer says "+text, fmt.Sprintf("!document.body.innerText.replace(/\\s+/g, ' ').includes(%q)", text))
}

// press presses keys, one after the other.
func (p *tab) press(keys ...string) {
	p.Helper()
	for _, key := range keys {
		p.do(chromedp.KeyEvent(key))
	}
}

// click clicks the button or link that is called so.
func (p *tab) click(name string) {
	p.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('dialog[open] :is(a, button), body:not(:has(dialog[open])) :is(a, button)')].find((e) => (e.getAttribute('aria-label') || e.innerText).trim().startsWith(%q) && !e.disabled)", name)
	p.until("there is "+name, find)
	p.eval(find+".click()", nil)
}

// fill writes into the field with the label.
func (p *tab) fill(label, text string) {
	p.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('label')].find((l) => l.textContent.trim() === %q)?.control", label)
	p.until("there is a field "+label, find)
	p.eval(find+".focus()", nil)
	p.do(chromedp.KeyEvent(text))
}

// keep writes what the window shows into the folder that SCREENSHOTS names, for people who look at what a change has done to the pages.
func (p *tab) keep(name string, how look) {
	p.Helper()
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return
	}
	var picture []byte
	p.do(chromedp.CaptureScreenshot(&picture))
	scheme := "light"
	if how.dark {
		scheme = "dark"
	}
	name = strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(name, "-"), "-")
	if name == "" {
		name = "overview"
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", name, how.width, scheme)), picture, 0o644); err != nil {
		p.Fatal(err)
	}
}

func (p *tab) signIn() {
	p.Helper()
	p.fill("Your name", "Grace")
	p.fill("Admin token", adminToken)
	p.press("\r")
	p.says("Sign out")
}

//go:embed testdata/check.js
var checkScript string

// check looks for what keeps people from using the page.
func (p *tab) check(where string) {
	p.Helper()
	p.until("what moves has come to rest", "document.getAnimations().every((a) => a.effect.getTiming().iterations === Infinity || a.playState === 'finished')")
	var found []string
	p.eval(checkScript, &found)
	if len(found) > 0 {
		p.Errorf("%s:\n  %s", where, strings.Join(found, "\n  "))
	}
}
