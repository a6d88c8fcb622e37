package main

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// An exercise is found, predicted, run, watched and ended without a mouse, at both sizes, light and dark. A page that is loaded again in
// the middle is told all of it, and what the run says is text.
func TestAnExerciseByKeyboard(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]look{"wide and light": wide, "narrow and dark": {400, 800, true, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKeeper(t)
			c := startLifelike(t, "CONTROL_URL="+k.URL)
			p := c.openTab(t, how, "#/exercises")
			p.says("Break the bank, see it break")
			p.check("#/exercises")
			p.tabTo("1. The poison event")
			p.press(kb.Enter)
			p.says("It stays in this browser.") // its own page is there: the question stands in the list as well
			p.says("How often is it tried, how far apart")
			p.silent("It depends on what it throws.")
			p.tabTo("Your prediction")
			p.press("three <b>times</b>", kb.Tab, kb.Enter)
			p.says("You expected three <b>times</b>")
			p.says("It depends on what it throws.")
			p.until("the focus is at what was revealed", "document.activeElement.innerText === 'You expected'")
			p.check("#/exercises/1")

			p.eval("document.querySelector('.run button').focus()", nil)
			p.press(kb.Enter)
			p.signIn()
			p.says("It goes on when you leave this page.")
			k.tell("begun", "How often?", nil)
			k.tell("doing", `Publish {"id":"<img src=x onerror=window.ran=1>"}.`, nil)
			p.says(`does Publish {"id":"<img src=x onerror=window.ran=1>"}.`)
			k.tell("checked", "A transfer goes through.", document{"proves": "recovery", "ok": true, "figures": []document{{"name": "transfer", "value": transfer}}})
			k.tell("saw", "there is no transfer", document{"where": "bank parked show poison-1 · console: Parked", "figures": []document{{"name": "queue", "value": "banking.dead-letters"}}})
			p.says("the message here")
			p.do(chromedp.Reload())
			p.until("it has been loaded again, and knows everything", "performance.getEntriesByType('navigation')[0].type === 'reload' && document.querySelectorAll('.step').length === 3")
			k.tell("looking", "Look around: nothing has been put back yet.", nil)
			p.says("waits for you")
			var links []string
			p.eval("[...document.querySelectorAll('.step a')].map((a) => a.getAttribute('href'))", &links)
			if got, want := strings.Join(links, " "), "#/transfers/"+transfer+" #/parked/message/banking.dead-letters/poison-1 #/parked"; got != want {
				t.Errorf("links %s, want %s", got, want)
			}
			p.check("#/exercises/1, looking around")
			p.tabTo("Put things back")
			p.press(kb.Enter)
			p.until("it goes on", "document.querySelector('.run .status')?.innerText === 'running'")
			k.tell("reset", "The message is discarded.", nil)
			k.tell("checked", "Nothing is lost.", document{"proves": "invariants", "ok": true, "figures": []document{{"name": "held", "value": "22"}}})
			k.tell("ended", "Exercise 1 passed.", document{"ok": true})
			close(k.told)
			p.says("Passed: the fault happened, and the bank got over it.")
			p.says("Every invariant holds: held 22.")
			p.until("nothing was refused", "document.querySelector('.run > .problem').innerText === ''")
			p.check("#/exercises/1, passed")
			p.eval("location.hash = '#/exercises'", nil)
			p.until("the list knows", "document.querySelector('.exercise-card .status')?.innerText === 'passed'")
			p.until("no markup came of it", "!document.querySelector('main img, [onerror]') && !window.ran")
		})
	}
}

// Another exercise runs, is stopped from here, and what fails says so.
func TestAnExerciseOfSomebodyElse(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	c := startLifelike(t, "CONTROL_URL="+k.URL)
	c.signIn(t)
	p := c.openTab(t, wide, "#/exercises/2")
	p.signInFromCorner()
	expectStatus(t, c.call(t, "POST", "/api/exercises/1/run", ""), 204)
	p.says("Exercise 1 is running. One at a time")
	p.eval("location.hash = '#/'", nil)
	p.says("What breaks now breaks on purpose, and is put back.")
	p.eval("location.hash = '#/exercises/2'", nil)
	p.until("it cannot be run", "document.querySelector('.run button')?.disabled")
	p.click("Exercise 1 is running.")
	p.click("Stop")
	p.says("Everything that was changed is put back.")
	k.tell("ended", "Exercise 1 has not passed: interrupted, and everything is put back", document{"ok": false, "reason": "INTERRUPTED"})
	close(k.told)
	p.says("Stopped before its end. Everything has been put back.")
	k.refuse("POST /exercises/1/run", 409, "exercise 3 is running")
	p.click("Run it again")
	p.says("Exercise 3 is running.")
	p.eval("location.hash = '#/exercises/99'", nil)
	p.says("There is no such exercise; they are numbered 1 to 13.")
}

// signInFromCorner signs in where no page asks for it.
func (p *tab) signInFromCorner() {
	p.Helper()
	p.click("Sign in")
	p.signIn()
}
