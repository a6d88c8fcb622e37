package main

import (
	"compress/gzip"
	"context"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	index := c.call(t, "GET", "/", "")
	if index.status != http.StatusOK || index.header.Get("Content-Type") != "text/html; charset=utf-8" || index.header.Get("Cache-Control") != "no-cache" {
		t.Fatalf("got %d %v", index.status, index.header)
	}
	if again := c.call(t, "GET", "/", "", "If-None-Match", index.header.Get("ETag")); again.status != http.StatusNotModified {
		t.Errorf("asked again: %d, want 304", again.status)
	}
	for _, path := range regexp.MustCompile(`(?:src|href)="(/static/[^"]+)"`).FindAllStringSubmatch(index.body, -1) {
		plain := c.call(t, "GET", path[1], "", "Accept-Encoding", "identity")
		expectStatus(t, plain, http.StatusOK)
		if cache := plain.header.Get("Cache-Control"); !strings.Contains(cache, "immutable") {
			t.Errorf("%s: Cache-Control %q: it would be asked for each time", path[1], cache)
		}
		packed := c.call(t, "GET", path[1], "", "Accept-Encoding", "br, gzip")
		if packed.header.Get("Content-Encoding") != "gzip" {
			continue // where it is no smaller
		}
		from, err := gzip.NewReader(strings.NewReader(packed.body))
		if err != nil {
			t.Fatalf("%s: %v", path[1], err)
		}
		if content, err := io.ReadAll(from); err != nil || string(content) != plain.body || len(packed.body) >= len(plain.body) {
			t.Errorf("%s: %v; %d bytes packed, %d plain", path[1], err, len(packed.body), len(plain.body))
		}
		if packed.header.Get("ETag") == plain.header.Get("ETag") || packed.header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: a cache cannot tell packed from plain: %v", path[1], packed.header)
		}
	}
	if without := c.call(t, "GET", "/static/js/app.js", ""); without.status != http.StatusOK || without.header.Get("Cache-Control") != "no-cache" {
		t.Errorf("without a version: %d %v", without.status, without.header)
	}
	for _, missing := range []string{"/static/", "/static/nothing.js", "/static/../main.go", "/static/js", "/index.html", "/static/index.html", "/static/old/js/app.js"} {
		expectStatus(t, c.call(t, "GET", missing, ""), http.StatusNotFound)
	}
}

// A browser would find out level by level what modules import; the page names all of them at once, and none that is not needed.
func TestThePageNamesAllModules(t *testing.T) {
	t.Parallel()
	imports := regexp.MustCompile(`(?m)^(?:import|export) (?:[^'"]+ from )?['"]([^'"]+)['"]`)
	needed := map[string]bool{}
	var follow func(name string)
	follow = func(name string) {
		if needed[name] {
			return
		}
		needed[name] = true
		content, err := staticFiles.ReadFile("static/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range imports.FindAllStringSubmatch(string(content), -1) {
			follow(path.Join(path.Dir(name), found[1]))
		}
	}
	follow("js/app.js")
	f := newFiles()
	index := string(f.known["index.html"].content)
	named := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?:<link rel="modulepreload" href|<script type="module" src)="/static/`+f.version+`/([^"]+)"`).FindAllStringSubmatch(index, -1) {
		named[found[1]] = true
	}
	if len(needed) < 10 || !maps.Equal(needed, named) {
		t.Errorf("named are %v\nneeded are %v", slices.Sorted(maps.Keys(named)), slices.Sorted(maps.Keys(needed)))
	}
}

// A browser paints nothing before it has all style sheets: it asks for one, which has all that there are.
func TestThePageNamesOneStyleSheet(t *testing.T) {
	t.Parallel()
	f := newFiles()
	links := regexp.MustCompile(`<link rel="stylesheet" href="/static/`+f.version+`/([^"]+)">`).FindAllStringSubmatch(string(f.known["index.html"].content), -1)
	if len(links) != 1 {
		t.Fatalf("the page names %v", links)
	}
	joined, rest := string(f.known[links[0][1]].content), 0
	sheets, err := fs.Glob(staticFiles, "static/css/*.css")
	if err != nil || len(sheets) < 2 {
		t.Fatalf("there are %v: %v", sheets, err)
	}
	for _, name := range sheets {
		content, err := staticFiles.ReadFile(name)
		if err != nil || !strings.Contains(joined, string(content)) {
			t.Errorf("%s is not in %s: %v", name, links[0][1], err)
		}
		rest += len(content)
	}
	if rest != len(joined) || !strings.HasPrefix(joined, string(f.known["css/base.css"].content)) {
		t.Errorf("%s has %d bytes, want the %d of all, base.css first", links[0][1], len(joined), rest)
	}
}

// What the page will look at is asked for as soon as the page is, and not only when its scripts have come.
func TestWhatThePageLooksAtFirstIsExpected(t *testing.T) {
	t.Parallel()
	var topics []string
	for name, pattern := range map[string]string{"live.js": `(?m)^const everywhere = \[(.+)\];`, "pages/overview.js": `(?m)^  topics: \(\) => \[(.+)\],`} {
		content, err := staticFiles.ReadFile("static/js/" + name)
		found := regexp.MustCompile(pattern).FindSubmatch(content)
		if err != nil || found == nil {
			t.Fatalf("%s does not say what is looked at: %v", name, err)
		}
		for topic := range strings.SplitSeq(string(found[1]), ",") {
			topics = append(topics, strings.Trim(topic, " '"))
		}
	}
	if expected := slices.Sorted(slices.Values(firstTopics)); !slices.Equal(expected, slices.Sorted(slices.Values(topics))) {
		t.Errorf("expected are %v, the page looks at %v", expected, topics)
	}
	c := startLifelike(t)
	expectStatus(t, c.call(t, "GET", "/", ""), http.StatusOK)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, asked := range []struct {
		of   *fake
		call string
	}{{c.management, "GET /api/queues/banking"}, {c.account, "GET /ledger"}, {c.transfer, "GET /metrics"}, {c.transfer, "GET /transfers/summary"}} {
		for asked.of.count(asked.call) == 0 {
			select {
			case <-ctx.Done():
				t.Fatalf("%s was not asked for", asked.call)
			case <-time.After(time.Millisecond):
			}
		}
	}
}

// The policy forbids inline scripts and styles, and markup made of texts. What is in the files must not try.
func TestThePageKeepsToItsPolicy(t *testing.T) {
	t.Parallel()
	forbidden := map[string]*regexp.Regexp{
		".html": regexp.MustCompile(`<style|\sstyle=|\son[a-z]+=|<script[^>]*>[^<]|https?://`),
		".js":   regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|['"]style['"]|https?://[^w]`),
		".css":  regexp.MustCompile(`@import|url\(|https?://`),
	}
	err := fs.WalkDir(staticFiles, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := staticFiles.ReadFile(name)
		for kind, pattern := range forbidden {
			if strings.HasSuffix(name, kind) {
				if found := pattern.Find(content); found != nil {
					t.Errorf("%s has %q", name, found)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
