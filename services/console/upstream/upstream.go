// Package upstream talks to what the console watches: the two services and the broker's management API.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Upstream is one of them.
type Upstream struct {
	Name string // as people call it
	base *url.URL
	user *url.Userinfo
	http *http.Client
}

// largestAnswer bounds what is read of one answer, in bytes.
const largestAnswer = 16 << 20

// New makes the client of a server. A user and password in the address are sent by basic authentication and appear in no error.
func New(name, address string) (*Upstream, error) {
	base, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil {
		return nil, fmt.Errorf("address of %s: not a URL", name)
	}
	u := &Upstream{Name: name, base: base, user: base.User}
	base.User = nil
	// Its own pool, small and patient: the console asks the same few servers again and again. No proxy: they are neighbours.
	u.http = &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
			MaxIdleConnsPerHost: 8,
			IdleConnTimeout:     30 * time.Second,
		},
		// A redirect would carry the admin token to who knows where.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return u, nil
}

// Close ends the connections that no request uses.
func (u *Upstream) Close() { u.http.CloseIdleConnections() }

// Silent says that a server gave no answer at all.
type Silent struct {
	Name  string
	Cause error
}

func (e *Silent) Error() string { return e.Name + " does not answer: " + reason(e.Cause) }

// Unwrap gives the cause.
func (e *Silent) Unwrap() error { return e.Cause }

// reason is the innermost cause in few words: the URL and the address stand in the configuration, for who may read it.
func reason(err error) string {
	var netErr net.Error
	if errors.As(err, &netErr) && netErr.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err.Error()
}

// Refusal is an answer that says no.
type Refusal struct {
	Name   string
	Status int
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

func (e *Refusal) Error() string {
	text := fmt.Sprintf("%s answers %d %s", e.Name, e.Status, http.StatusText(e.Status))
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Is says whether err is a refusal with this status.
func Is(err error, status int) bool {
	var refusal *Refusal
	return errors.As(err, &refusal) && refusal.Status == status
}

// Do makes a call and answers as it is, whatever the status. path is escaped already and may carry a query.
func (u *Upstream) Do(ctx context.Context, method, path string, body io.Reader, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, u.base.String()+path, body)
	if err != nil {
		return nil, &Silent{u.Name, errors.New("the address or the path is not usable")}
	}
	for name, values := range header {
		request.Header[name] = values
	}
	if u.user != nil {
		password, _ := u.user.Password()
		request.SetBasicAuth(u.user.Username(), password)
	}
	answer, err := u.http.Do(request)
	if err != nil {
		return nil, &Silent{u.Name, err}
	}
	return answer, nil
}

// Read gets a document. Another status than 200 is a *Refusal, no answer a *Silent.
func (u *Upstream) Read(ctx context.Context, path string, header http.Header) ([]byte, error) {
	answer, err := u.Do(ctx, http.MethodGet, path, nil, header)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(answer.Body, largestAnswer+1))
	switch {
	case err != nil:
		return nil, &Silent{u.Name, err}
	case len(content) > largestAnswer:
		return nil, &Silent{u.Name, errors.New("the answer is larger than 16 MiB")}
	case answer.StatusCode != http.StatusOK:
		refusal := &Refusal{Name: u.Name, Status: answer.StatusCode}
		_ = json.Unmarshal(content, refusal) // who is no service of ours says it in another form, and the status has to do
		return nil, refusal
	}
	return content, nil
}

// JSON gets a document into v, leniently: what the console does not know is none of its business.
func (u *Upstream) JSON(ctx context.Context, path string, header http.Header, v any) error {
	content, err := u.Read(ctx, path, header)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return &Refusal{Name: u.Name, Status: http.StatusOK, Detail: "but not with what was expected"}
	}
	return nil
}
