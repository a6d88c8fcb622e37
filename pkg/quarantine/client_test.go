package quarantine

import (
	"bytes"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
)

// answer is what came back over HTTP.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (b *bench) call(method, path string, body any, change ...func(*http.Request)) answer {
	b.Helper()
	return b.callAt(b.server, method, path, body, change...)
}

func (b *bench) callAt(server, method, path string, body any, change ...func(*http.Request)) answer {
	b.Helper()
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			b.Fatal(err)
		}
		reader = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(b.Context(), method, server+path, reader)
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(request)
	}
	response, err := (&http.Client{Transport: b.transport, Timeout: patience}).Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, raw}
}

func decode[T any](b *bench, a answer) (v T) {
	b.Helper()
	if a.status != http.StatusOK {
		b.Fatalf("%d: %s", a.status, a.body)
	}
	if err := json.Unmarshal(a.body, &v); err != nil {
		b.Fatalf("%v in %s", err, a.body)
	}
	return v
}

// listed is a list as a client reads it.
type listed struct {
	Items      []Item   `json:"items"`
	Next       *string  `json:"next"`
	Depth      int      `json:"depth"`
	Missing    []string `json:"missing"`
	Incomplete string   `json:"incomplete"`
}

func (b *bench) list(query string) listed {
	b.Helper()
	return decode[listed](b, b.call("GET", "/admin/quarantine"+query, nil))
}

func (l listed) keys() (keys []string) {
	for _, item := range l.Items {
		keys = append(keys, item.Key)
	}
	return keys
}

// ran is the answer of a run.
type ran struct {
	Items   []Result `json:"items"`
	DryRun  bool     `json:"dryRun"`
	Run     *string  `json:"run"`
	Matched int      `json:"matched"`
	Done    int      `json:"done"`
	Refused int      `json:"refused"`
	Failed  int      `json:"failed"`
	Missing []string `json:"missing"`
	All     bool     `json:"all"`
	Stopped string   `json:"stopped"`
}

type order map[string]any

func (b *bench) replay(o order) ran {
	b.Helper()
	return decode[ran](b, b.call("POST", "/admin/quarantine/replay", o))
}

func (b *bench) discard(o order) ran {
	b.Helper()
	return decode[ran](b, b.call("POST", "/admin/quarantine/discard", o))
}

// audit is the whole audit, oldest first: outcome and key of each row.
func (b *bench) audit() (rows []string) {
	b.Helper()
	err := b.pool.QueryRow(b.Context(),
		`select coalesce(array_agg(action || ' ' || outcome || ' ' || key order by id), '{}') from quarantine_audit`).Scan(&rows)
	if err != nil {
		b.Fatal(err)
	}
	return rows
}
