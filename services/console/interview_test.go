package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"example.com/banking/docs/interview"
	"example.com/banking/pkg/service/openapitest"
	"github.com/chromedp/chromedp/kb"
)

func TestInterviewCanBeRead(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.client.Transport = openapitest.New(t, openAPI, c.client.Transport)
	_, questions, err := interview.Read()
	if err != nil {
		t.Fatal(err)
	}
	list := c.call(t, "GET", "/api/interview", "")
	if n := strings.Count(list.body, `"question"`); list.status != http.StatusOK || n != len(questions) {
		t.Errorf("%d, %d questions: %.200s", list.status, n, list.body)
	}
	for _, q := range questions {
		got := c.call(t, "GET", fmt.Sprintf("/api/interview/%d", q.Number), "")
		if got.status != http.StatusOK || strings.Count(got.body, `"blocks":[{`) != len(interview.Sections()) {
			t.Errorf("question %d: %d %.200s", q.Number, got.status, got.body)
		}
	}
	for _, number := range []string{"0", "99", "01", "one"} {
		expectStatus(t, c.call(t, "GET", "/api/interview/"+number, ""), http.StatusNotFound)
	}
}

// Each answer is shown when it is asked for, and not before.
func TestInterviewPageAsks(t *testing.T) {
	t.Parallel()
	c := startLifelike(t)
	p := c.openTab(t, wide, "#/interview")
	p.says("How do you test a saga?")
	p.check("#/interview")
	p.eval("location.hash = '#/interview/14'", nil)
	p.says("In thirty seconds") // its own page is there: the question stands in the list as well
	p.says("Walk me through what happens when your consumer throws.")
	p.silent("What can never succeed is parked at once")
	p.tabTo("In thirty seconds")
	p.press(kb.Enter)
	p.says("What can never succeed is parked at once")
	p.silent("A hot loop at the head of the queue")
	p.tabTo("In three minutes")
	p.press(kb.Enter)
	p.says("A hot loop at the head of the queue")
	p.check("#/interview/14, answered")
	p.tabTo("exercise 1")
}
