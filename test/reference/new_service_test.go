package reference

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/banking/internal/newservice"
)

var newServicePage = filepath.Join("..", "..", "docs", "new-service.md")

func readNewServicePage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(newServicePage)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// listed are the files in the first column of the table between two marks of the page.
func listed(t *testing.T, page, name string) []string {
	t.Helper()
	_, rest, opened := strings.Cut(page, "<!-- begin "+name+" -->\n")
	table, _, closed := strings.Cut(rest, "<!-- end "+name+" -->\n")
	if !opened || !closed {
		t.Fatalf("%s has no block %q", newServicePage, name)
	}
	var found []string
	for _, cell := range firstCell.FindAllStringSubmatch(table, -1) {
		found = append(found, cell[1])
	}
	slices.Sort(found)
	return found
}

func fees(t *testing.T, change func(*newservice.Order)) map[string][]byte {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	o := newservice.Order{Name: "fees", Keys: []string{"transfers.transfer.completed"}, Retry: "lap", Port: 8183, Checkout: root}
	change(&o)
	rendered, err := newservice.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

// The page explains each file that the template makes, and none that it does not.
func TestNewServicePageExplainsEachFile(t *testing.T) {
	t.Parallel()
	page := readNewServicePage(t)
	inside := slices.Sorted(maps.Keys(fees(t, func(*newservice.Order) {})))
	if got := listed(t, page, "files"); !slices.Equal(got, inside) {
		t.Errorf("the page explains\n%q\nthe template makes\n%q", got, inside)
	}
	module := fees(t, func(o *newservice.Order) { o.Module, o.Dir = "example.org/fees", filepath.Join(t.TempDir(), "fees") })
	for _, path := range inside { // which the first table has explained
		if path != "services/fees/servers_test.go" && path != "services/fees/compose.yaml" {
			delete(module, strings.TrimPrefix(path, "services/fees/"))
		}
	}
	if got, want := listed(t, page, "module files"), slices.Sorted(maps.Keys(module)); !slices.Equal(got, want) {
		t.Errorf("of a module the page explains\n%q\nthe template makes\n%q", got, want)
	}
}

var inCode = regexp.MustCompile("`([^`\n]+)`")

// What the page calls by name is in the files of some kind of service: functions, variables, queues.
func TestNewServicePageNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	page := readNewServicePage(t)
	var all strings.Builder
	for _, retry := range newservice.Retries {
		for _, content := range fees(t, func(o *newservice.Order) { o.Retry = retry }) {
			all.Write(content)
		}
	}
	named := []string{
		"keys", "readers", "heardOf", "command", "Apply", "Load", "Save", "work", "quarantineConfig", "Targets", "Consumed", "session.NewConsumer",
		"outbox.Message", "contract.Say", "Mandatory = false", "arm", "RETRY_INTERVALS", "RETRY_DELAY", "RETRY_TIERS", "RETRY_JITTER", "MAX_ATTEMPTS",
		"fees.events", "fees.events_error", "fees.events.retry", "fees.dlx", "fees.dead-letters", "Fees.Record.Opened", "ServiceDown",
	}
	mentioned := map[string]bool{}
	for _, code := range inCode.FindAllStringSubmatch(page, -1) {
		mentioned[code[1]] = true
	}
	for _, name := range named {
		if !mentioned[name] {
			t.Errorf("the page does not mention %s", name)
		}
		if !strings.Contains(all.String(), name) {
			t.Errorf("%s is in no file that the template makes", name)
		}
	}
	for _, retry := range newservice.Retries {
		if !mentioned[retry] {
			t.Errorf("the page does not explain the road %s", retry)
		}
	}
}

var relativeLink = regexp.MustCompile(`\]\(([a-zA-Z0-9/_.-]+\.md)`)

// A link that leads nowhere is worse than none.
func TestNewServicePageLinksToPagesThatExist(t *testing.T) {
	t.Parallel()
	links := relativeLink.FindAllStringSubmatch(readNewServicePage(t), -1)
	if len(links) < 5 {
		t.Errorf("only %d links", len(links))
	}
	for _, link := range links {
		if _, err := os.Stat(filepath.Join("..", "..", "docs", link[1])); err != nil {
			t.Error(err)
		}
	}
}
