package main

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	browsers "github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// chromium is a browser without a window.
type chromium struct {
	ctx context.Context
	end func()
}

func startBrowser(ctx context.Context) (*chromium, error) {
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
		return nil, missing("there is no Chromium here")
	}
	// Its own sandbox does not work for root, nor in many containers; the only page that is shown is ours.
	allocator, endAll := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox)...)
	quiet := func(string, ...any) {}
	running, end := chromedp.NewContext(allocator, chromedp.WithErrorf(quiet), chromedp.WithLogf(quiet))
	b := &chromium{running, func() { end(); endAll() }}
	if err := chromedp.Run(running); err != nil {
		b.end()
		return nil, fmt.Errorf("start the browser: %w", err)
	}
	return b, nil
}

// visit opens a page in a profile of its own, with nothing in its cache, and has a script run in it before its own scripts do, at each
// load. close ends the visit.
func (b *chromium) visit(url, script string) (ctx context.Context, end func(), err error) {
	var id browsers.ID
	err = chromedp.Run(b.ctx, chromedp.ActionFunc(func(ctx context.Context) error {
		whole := cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser)
		profile, err := browsers.CreateBrowserContext().WithDisposeOnDetach(true).Do(whole)
		if err != nil {
			return err
		}
		// In a window of its own: a tab behind another one is hidden, and a hidden page does not paint.
		id, err = browsers.CreateTarget("about:blank").WithBrowserContextID(profile).WithNewWindow(true).Do(whole)
		return err
	}))
	if err != nil {
		return nil, nil, fmt.Errorf("open a window: %w", err)
	}
	tab, endTab := chromedp.NewContext(b.ctx, chromedp.WithTargetID(id))
	tab, cancel := context.WithTimeout(tab, 5*time.Minute)
	end = func() { cancel(); endTab() }
	err = chromedp.Run(tab, chromedp.EmulateViewport(1280, 900), chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(script).Do(ctx)
		return err
	}), chromedp.Navigate(url))
	if err != nil {
		end()
		return nil, nil, fmt.Errorf("open %s: %w", url, err)
	}
	return tab, end, nil
}

// ask evaluates an expression in a page until it answers something else than null.
func ask[T any](ctx context.Context, expression string) (answer T, err error) {
	err = chromedp.Run(ctx, chromedp.Poll(expression, &answer, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(20*time.Second)))
	if err != nil {
		var says string
		_ = chromedp.Run(ctx, chromedp.Evaluate(`document.body.innerText.slice(0, 1000)`, &says)) // or nothing can be asked of it
		err = fmt.Errorf("wait in the page for %s: %w; it says %q", expression, err, says)
	}
	return answer, err
}
