package policy

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	"pgregory.net/rapid"
)

// someSettings draws what is allowed for a plot.
func someSettings(t *rapid.T, p Plot) map[string]string {
	given := map[string]string{}
	for _, s := range p.Settings {
		if !rapid.Bool().Draw(t, "give "+s.Name) {
			continue
		}
		if len(s.Choices) > 0 {
			given[s.Name] = rapid.SampledFrom(s.Choices).Draw(t, s.Name)
			continue
		}
		given[s.Name] = fmt.Sprint(rapid.IntRange(s.Least, min(s.Most, 200)).Draw(t, s.Name))
	}
	return given
}

// Every plot can be computed for whatever it allows, is the same each time, says everything it has to say, and is drawn as XML.
func TestEveryPlot(t *testing.T) {
	t.Parallel()
	costly := map[string][]map[string]string{ // a few settings have to do
		"jitter":  {nil, {"retries": "1", "base": "60", "cap": "1"}, {"retries": "20", "base": "1", "cap": "3600"}},
		"dampers": {nil, {"failure": "busy", "outage": "1", "rate": "1", "capacity": "10", "attempts": "1"}},
	}
	for _, p := range Plots() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			for _, given := range costly[p.Name] {
				checkReport(t, p, given)
			}
			if costly[p.Name] == nil {
				rapid.Check(t, func(t *rapid.T) { checkReport(t, p, someSettings(t, p)) })
			}
		})
	}
}

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

func checkReport(t failer, p Plot, given map[string]string) {
	t.Helper()
	report, err := p.Compute(given)
	if err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	again, err := p.Compute(given)
	if err != nil || !reflect.DeepEqual(report, again) {
		t.Fatalf("%s: something else the second time", p.Name)
	}
	for _, text := range []string{report.Title, report.About, report.See, report.Means, report.Interview} {
		if len(text) < 20 || strings.Contains(text, "%!") || strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Fatalf("%s says %q", p.Name, text)
		}
	}
	for _, table := range report.Tables {
		if len(table.Rows) == 0 || table.Caption == "" || strings.Contains(table.Caption, "%!") {
			t.Fatalf("%s: table %+v", p.Name, table)
		}
		for _, row := range table.Rows {
			if len(row) != len(table.Columns) || strings.Contains(strings.Join(row, "|"), "%!") {
				t.Fatalf("%s: row %q under %v", p.Name, row, table.Columns)
			}
		}
	}
	for _, svg := range []string{report.Drawing.SVG(), report.Drawing.NarrowSVG()} {
		for d := xml.NewDecoder(strings.NewReader(svg)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v in\n%s", p.Name, err, svg)
			}
		}
		if !strings.Contains(svg, "<desc>"+report.About[:12]) {
			t.Fatalf("%s: the drawing does not say what it shows", p.Name)
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for _, p := range Plots() {
		for _, s := range p.Settings {
			wrong := []string{"", " ", "x", "-1", "1.5", "1e3", "0x10", fmt.Sprint(s.Most + 1), "99999999999999999999", s.Default + " ", "<script>"}
			for _, text := range wrong {
				_, err := p.Compute(map[string]string{s.Name: text})
				var invalid InvalidSettings
				if !errors.As(err, &invalid) || len(invalid) != 1 || invalid[0].Setting != s.Name || invalid[0].Wanted != "must be "+s.Bounds() {
					t.Errorf("%s with %s=%q: %v", p.Name, s.Name, text, err)
				}
			}
			if !s.takes(s.Default) {
				t.Errorf("%s: %s does not take its own default", p.Name, s.Name)
			}
		}
	}
	storm, _ := Find("storm")
	_, err := storm.Compute(map[string]string{"messages": "0", "colour": "red", "jitter": "much"})
	want := "messages must be a whole number from 1 to 10,000; jitter must be one of full, equal, decorrelated, consumer, tiers; " +
		"colour is no setting of this plot; it has messages, jitter, delay, retries, seed"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, known := Find("nothing"); known {
		t.Error("found a plot that is none")
	}
}

// Each kind of jitter keeps to its bounds, whatever the backoff.
func TestJitterKeepsToItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := retry.Backoff{Base: time.Duration(rapid.IntRange(1, 60).Draw(t, "base")) * time.Second, Factor: 2, Cap: time.Hour}
		n := rapid.IntRange(1, 20).Draw(t, "n")
		u := rapid.Float64Range(0, nearlyOne).Draw(t, "u")
		previous := time.Duration(rapid.IntRange(0, 3600).Draw(t, "previous")) * time.Second
		d := b.Delay(n)
		bounds := map[string][2]time.Duration{
			"none": {d, d}, "full": {0, d}, "equal": {d / 2, d}, "decorrelated": {b.Base, min(3*max(previous, b.Base), b.Cap)},
			"consumer": {d * 8 / 10, d * 12 / 10}, "tiers": {d * 8 / 10, d * 12 / 10},
		}
		for _, kind := range stormKinds {
			got := kind.next(b, n, previous, u)
			within, known := bounds[kind.name]
			if !known || got < within[0]-1 || got > within[1]+1 {
				t.Fatalf("%s: %v, want %v to %v", kind.name, got, within[0], within[1])
			}
		}
	})
}

func TestStorm(t *testing.T) {
	t.Parallel()
	backoff := retry.Backoff{Base: 5 * time.Second, Factor: 2, Cap: time.Hour}
	for _, kind := range stormKinds {
		f := comeBack(kind, backoff, 1000, 3, random(1, 0))
		sum := 0
		for _, n := range f.All {
			sum += n
		}
		if sum != 3000 || f.Retries != 3000 {
			t.Errorf("%s: %d of %d retries", kind.name, sum, f.Retries)
		}
		if f.Peak > f.Second || f.First.Peak > f.Peak {
			t.Errorf("%s: first wave %d, peak %d, second %d", kind.name, f.First.Peak, f.Peak, f.Second)
		}
		switch kind.name {
		case "none":
			if f.Peak != 1000 || f.First.From != 5 || f.First.To != 5 {
				t.Errorf("none: %+v", f.First)
			}
		case "tiers":
			if f.Peak < 300 || f.Peak > 400 { // a third at a time
				t.Errorf("tiers: peak %d", f.Peak)
			}
		default:
			if f.Peak > 150 {
				t.Errorf("%s: peak %d", kind.name, f.Peak)
			}
		}
	}
}

func TestAmplificationAddsWithABudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		layers, attempts := rapid.IntRange(1, 6).Draw(t, "layers"), rapid.IntRange(1, 6).Draw(t, "attempts")
		requests := rapid.IntRange(1, 500).Draw(t, "requests")
		calls := budgeted(layers, attempts, requests)
		// A hundred retries in each layer, and one more every ten seconds; there are a hundred requests in a second.
		most := requests + layers*(100+requests/1000+1)
		if factor := int(math.Pow(float64(attempts), float64(layers))); calls < requests || calls > min(most, factor*requests) {
			t.Fatalf("%d calls for %d requests through %d layers of %d attempts", calls, requests, layers, attempts)
		}
	})
}

func TestTwentySeven(t *testing.T) {
	t.Parallel()
	report, err := amplification.Compute(map[string]string{"layers": "3", "attempts": "3"})
	if err != nil {
		t.Fatal(err)
	}
	if f := report.Figures.([]AmplificationFigures)[2]; f.Each != 27 || f.One != 3 || f.All != 27_000 || f.Budgeted != 1300 {
		t.Errorf("got %+v", f)
	}
}

// The profiles are those that the services have when nobody configures anything.
func TestProfilesAreTheServicesDefaults(t *testing.T) {
	t.Parallel()
	defaults := func(file string) map[string]string {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, match := range regexp.MustCompile(`env:"([A-Z_]+)" envDefault:"([^"]*)"`).FindAllStringSubmatch(string(text), -1) {
			found[match[1]] = match[2]
		}
		return found
	}
	list := func(delays []time.Duration) string {
		var texts []string
		for _, d := range delays {
			texts = append(texts, strings.TrimSuffix(d.String(), "0s"))
		}
		return strings.Join(texts, ",")
	}
	account, transfer, common := defaults("services/account/config.go"), defaults("services/transfer/config.go"), defaults("pkg/service/config.go")
	for what, pair := range map[string][2]string{
		"RETRY_INTERVALS":   {list(inProcess.Delays), account["RETRY_INTERVALS"]},
		"RETRY_DELAY":       {list(lap.Delays), transfer["RETRY_DELAY"]},
		"RETRY_TIERS":       {strings.ReplaceAll(list(tiered.Delays), "3,", "30s,"), transfer["RETRY_TIERS"]},
		"RETRY_JITTER":      {fmt.Sprint(tiered.Jitter), transfer["RETRY_JITTER"]},
		"MAX_AGE":           {strings.TrimSuffix(maxAge.String(), "0m0s"), common["MAX_AGE"]},
		"NOT_FOUND_MAX_AGE": {strings.TrimSuffix(notFoundMaxAge.String(), "0s"), common["NOT_FOUND_MAX_AGE"]},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %s here, and %s there", what, pair[0], pair[1])
		}
	}
	if inProcess.MaxAttempts != len(inProcess.Delays)+1 || lap.MaxAttempts != 3 || tiered.MaxAttempts != 5 || inProcess.Jitter != 0 {
		t.Error("attempts are not those of the services")
	}
}

func TestDelaysAreThoseOfThePolicy(t *testing.T) {
	t.Parallel()
	report, err := delays.Compute(nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]ProfileDelays{}
	for _, p := range report.Figures.([]ProfileDelays) {
		got[p.Profile] = p
	}
	for name, want := range map[string][]Delay{
		"account, in process": {{1, 1, 1, 1, true}, {2, 5, 5, 5, true}, {3, 25, 25, 25, true}, {4, 25, 25, 25, false}},
		"transfer, lap":       {{1, 5, 5, 5, true}, {2, 5, 5, 5, true}, {3, 5, 5, 5, false}, {4, 5, 5, 5, false}},
		"transfer, tiered":    {{1, 4, 5, 6, true}, {2, 24, 30, 36, true}, {3, 240, 300, 360, true}, {4, 240, 300, 360, true}},
	} {
		for i, w := range want {
			g := got[name].Delays[i]
			near := func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }
			if g.Retry != w.Retry || !near(g.Least, w.Least) || !near(g.Middle, w.Middle) || !near(g.Most, w.Most) || g.Applies != w.Applies {
				t.Errorf("%s: %+v, want %+v", name, g, w)
			}
		}
	}
	if got["account, in process"].GivesUp != 31 || got["transfer, lap"].GivesUp != 10 || got["transfer, tiered"].GivesUp != 635 {
		t.Errorf("gives up after %v", got)
	}
}

func TestDecisionsAreTheTable(t *testing.T) {
	t.Parallel()
	plain := func(text string) string { return strings.NewReplacer("`", "", "---:", "---").Replace(text) }
	if got, want := plain(Decisions().Markdown()), plain(retry.Table()); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
