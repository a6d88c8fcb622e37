package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/go-json-experiment/json"
)

const (
	seenTransfers = 60 // of which each page is to show the end
	loads         = 15 // of the first page, and as many again
	openPages     = 50
	costWindow    = 10 * time.Second

	onList = "commit to screen, list: "
	onOne  = "commit to screen, one transfer: "
)

var console = scenario{
	name: "console",
	about: "In Chromium: from the moment a transfer's last fact was written to the frame that shows its end, on the list of transfers (made elsewhere) and on its own page (made " +
		"there, and opened in that moment); from the start of loading the overview, with nothing in the browser's cache and with everything, to the frame in which the books, the figures and " +
		fmt.Sprintf("the queues stand there, beside what the browser needs for a page that is nothing but a word; and what one open page and %d cost the services while nothing happens.", openPages),
	run: func(ctx context.Context, b *bench) (found result, err error) {
		err = b.withSystem(ctx, func(s *system) error {
			if _, err := s.launch(ctx, "console", "ACCOUNT_URL="+s.urls["account"], "TRANSFER_URL="+s.urls["transfer"],
				"RABBITMQ_MANAGEMENT_URL="+s.access.ManagementURL, "RABBITMQ_VHOST=banking"); err != nil {
				return err
			}
			browser, err := startBrowser(ctx)
			if err != nil {
				return err
			}
			defer browser.end()
			accounts, err := s.open(ctx, 10, 1_000_000)
			if err != nil {
				return err
			}
			for _, measure := range []func(context.Context, *system, *chromium, []string, *result) error{onTheList, onItsPage, firstPages, costOfPages} {
				if err := measure(ctx, s, browser, accounts, &found); err != nil {
					return err
				}
			}
			found.notes = append(found.notes, loadAverage())
			return nil
		})
		return found, err
	},
}

// watchScript notes, for each thing that it is told to look out for, when the first frame that shows it was there: what is done in a
// task after an animation frame comes after that frame's painting.
const watchScript = `
window.shown = {};
window.lookOut = (find) => {
  const look = () => {
    const fresh = find().filter((name) => !(name in shown) && (shown[name] = 0) === 0);
    if (fresh.length) requestAnimationFrame(() => { const c = new MessageChannel(); c.port1.onmessage = () => { for (const name of fresh) shown[name] = Date.now(); }; c.port2.postMessage(0); });
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
  look();
};`

// onTheList makes transfers at the service and sees them end on the page that lists them.
func onTheList(ctx context.Context, s *system, b *chromium, accounts []string, found *result) error {
	tab, end, err := b.visit(s.urls["console"]+"/#/transfers", watchScript+`
lookOut(() => [...document.querySelectorAll('table.transfers tbody tr')].filter((row) => row.querySelector('.status')?.textContent === 'Completed').map((row) => row.querySelector('a').hash.slice(12)));`)
	if err != nil {
		return err
	}
	defer end()
	if _, err := ask[bool](tab, `document.body.innerText.includes('No money has moved yet') || null`); err != nil {
		return err
	}
	var ids []string
	for i := range seenTransfers {
		id, err := s.transfer(ctx, accounts[i%len(accounts)], accounts[(i+1)%len(accounts)])
		if err != nil {
			return err
		}
		ids = append(ids, id)
		// Now in the middle of the console's rest, now at its beginning, and never in step with it.
		if err := pause(ctx, 200*time.Millisecond+rand.N(500*time.Millisecond)); err != nil {
			return err
		}
	}
	return s.delays(ctx, tab, ids, onList, found)
}

// onItsPage makes transfers as the page does: by a call of the console's, after whose answer the transfer's own page is opened.
func onItsPage(ctx context.Context, s *system, b *chromium, accounts []string, found *result) error {
	tab, end, err := b.visit(s.urls["console"]+"/#/transfers", watchScript+`
lookOut(() => document.querySelector('.life-card .sum-line .status')?.textContent === 'Completed' ? [document.querySelector('.life-card .facts .id').textContent] : []);
window.make = async (body) => {
  const answer = await fetch('/api/transfers', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  location.hash = '#/transfers/' + (await answer.json()).id;
};`)
	if err != nil {
		return err
	}
	defer end()
	if _, err := ask[bool](tab, `document.querySelector('table.transfers tbody tr') ? true : null`); err != nil {
		return err
	}
	var ids []string
	for i := range seenTransfers {
		make := fmt.Sprintf(`make({ sourceAccountId: %q, destinationAccountId: %q, amountMinor: 1, currency: 'EUR' })`, accounts[i%len(accounts)], accounts[(i+1)%len(accounts)])
		if err := chromedp.Run(tab, chromedp.Evaluate(make, nil)); err != nil {
			return err
		}
		id, err := ask[string](tab, fmt.Sprintf(`Object.keys(shown).length > %d ? Object.keys(shown)[%[1]d] : null`, i))
		if err != nil {
			return err
		}
		ids = append(ids, id)
		if err := chromedp.Run(tab, chromedp.Evaluate(`location.hash = '#/transfers'`, nil)); err != nil {
			return err
		}
		if err := pause(ctx, rand.N(300*time.Millisecond)); err != nil {
			return err
		}
	}
	return s.delays(ctx, tab, ids, onOne, found)
}

// delays compares when the page showed the ends of transfers with when these were written.
func (s *system) delays(ctx context.Context, tab context.Context, ids []string, label string, found *result) error {
	var delays []float64
	for _, id := range ids {
		shown, err := ask[float64](tab, fmt.Sprintf("shown[%q] || null", id))
		if err != nil {
			return fmt.Errorf("%s%w", label, err)
		}
		var written time.Time // before the commit by what the rest of the transaction takes: no delay looks shorter than it is
		if err := s.pools["transfer"].QueryRow(ctx, `select updated_at from transfers where id = $1`, id).Scan(&written); err != nil {
			return err
		}
		delays = append(delays, shown-float64(written.UnixMicro())/1000)
	}
	addSpread(found, label, delays)
	return nil
}

// firstPages loads the overview with an empty cache, and again with a full one; and before, to see what the browser needs for
// itself, an answer of one word.
func firstPages(ctx context.Context, s *system, b *chromium, _ []string, found *result) error {
	const script = watchScript + `
lookOut(() => document.querySelector('.conservation .verdict.good') && document.querySelector('.figures .figure-value')?.textContent !== '–' && document.querySelector('.as-table tbody tr') && document.querySelector('.figure svg') ? ['all'] : []);`
	const painted = `performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null`
	const meaningful = `window.shown?.all ? shown.all - performance.timeOrigin : null`
	var empty, first, paint, again []float64
	for range loads {
		tab, end, err := b.visit(s.urls["console"]+"/healthz", "")
		if err != nil {
			return err
		}
		took, err := ask[float64](tab, painted)
		end()
		if err != nil {
			return err
		}
		empty = append(empty, took)
		if tab, end, err = b.visit(s.urls["console"]+"/", script); err != nil {
			return err
		}
		for _, of := range []struct {
			what string
			to   *[]float64
		}{{meaningful, &first}, {painted, &paint}} {
			took, err := ask[float64](tab, of.what)
			if err != nil {
				end()
				return err
			}
			*of.to = append(*of.to, took)
		}
		if err = chromedp.Run(tab, chromedp.Reload()); err == nil {
			took, err = ask[float64](tab, meaningful)
		}
		end()
		if err != nil {
			return err
		}
		again = append(again, took)
		// Until the console has forgotten what this page looked at: the next one is to be as slow as the first of a day.
		if err := pause(ctx, 4*time.Second); err != nil {
			return err
		}
	}
	addSpread(found, "nothing but a word, first paint: ", empty)
	addSpread(found, "first page: ", first)
	addSpread(found, "first paint: ", paint)
	addSpread(found, "page again: ", again)
	return nil
}

// costOfPages opens pages that look at what the overview and the list of transfers look at.
func costOfPages(ctx context.Context, s *system, _ *chromium, _ []string, found *result) error {
	for _, pages := range []int{0, 1, openPages} {
		watching, leave := context.WithCancel(ctx)
		err := s.look(watching, pages)
		if err == nil {
			err = pause(ctx, 4*time.Second) // for what was watched before to be forgotten, and what is watched now to be known
		}
		var before, after usage
		if err == nil {
			before, err = measure()
		}
		if err == nil {
			err = pause(ctx, costWindow)
		}
		if err == nil {
			after, err = measure()
		}
		leave()
		if err != nil {
			return err
		}
		used := after.since(before)
		for _, part := range []string{"account", "transfer", partPostgres, partBroker, "console"} {
			found.add(fmt.Sprintf("%d pages: CPU of %s", pages, part), used.cpu[part]/costWindow.Seconds()*100, "% of a core")
		}
	}
	return nil
}

// look opens so many streams of events, until ctx ends.
func (s *system) look(ctx context.Context, pages int) error {
	for i := range pages {
		topics := "queues,metrics:account,metrics:transfer,ledger,exercises,topology,summary"
		if i%2 == 0 {
			topics = "queues,metrics:account,metrics:transfer,ledger,exercises,accounts,summary,transfers"
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.urls["console"]+"/events?topics="+topics, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			return errors.Join(fmt.Errorf("watch at the console: %s", answer.Status), answer.Body.Close())
		}
		go func() {
			_, _ = io.Copy(io.Discard, answer.Body) // ends with ctx
			_ = answer.Body.Close()
		}()
	}
	return nil
}

// transfer has a transfer made and answers its id.
func (s *system) transfer(ctx context.Context, source, destination string) (string, error) {
	body := fmt.Sprintf(`{"sourceAccountId":%q,"destinationAccountId":%q,"amountMinor":1,"currency":"EUR"}`, source, destination)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.urls["transfer"]+"/transfers", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var made struct {
		ID string `json:"id"`
	}
	if err := json.UnmarshalRead(answer.Body, &made); err != nil || answer.StatusCode != http.StatusAccepted {
		return "", fmt.Errorf("make a transfer: %s: %w", answer.Status, err)
	}
	return made.ID, nil
}

// addSpread adds the middle, the ninety-fifth percentile and the worst of some times in milliseconds.
func addSpread(found *result, label string, times []float64) {
	sorted := slices.Sorted(slices.Values(times))
	found.add(label+"p50", median(sorted), "ms")
	found.add(label+"p95", sorted[(len(sorted)*95+99)/100-1], "ms")
	found.add(label+"max", sorted[len(sorted)-1], "ms")
}

// loadAverage says how busy the machine was, as far as the system tells.
func loadAverage() string {
	content, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(content))
	if err != nil || len(fields) < 3 {
		return "how busy the machine was is not known here"
	}
	return "load averages of the machine at the end, over 1, 5 and 15 minutes: " + strings.Join(fields[:3], ", ")
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
