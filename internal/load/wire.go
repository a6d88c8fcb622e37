package load

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// wire is one client's own connection, which it keeps while answers come. What measures a system on the system's own cores has to cost little,
// and http.Client spends as much again on what a client that asks one thing after the other does not need: a pool, and two goroutines for each
// connection. It speaks plain HTTP only.
type wire struct {
	address string
	head    string // of every request, up to the length of its body
	timeout time.Duration
	conn    net.Conn // nil: the next request opens one
	answers *bufio.Reader
}

func newWire(service string, timeout time.Duration) (*wire, error) {
	u, err := url.Parse(service)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("load: a burst needs an address that begins with http://, not %q", service)
	}
	w := &wire{address: u.Host, timeout: timeout}
	if u.Port() == "" {
		w.address = net.JoinHostPort(u.Hostname(), "80")
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + "/transfers"
	w.head = "POST " + u.RequestURI() + " HTTP/1.1\r\nHost: " + u.Host + "\r\nContent-Type: application/json\r\nContent-Length: "
	return w, nil
}

// post sends a request and reads its answer. After an error, and when the service says so, the next one has a new connection; nothing is sent
// twice.
func (w *wire) post(body []byte) (answer, error) {
	a, last, err := w.exchange(body)
	if err != nil || last {
		w.close()
	}
	return a, err
}

func (w *wire) exchange(body []byte) (a answer, last bool, err error) {
	until := time.Now().Add(w.timeout)
	if w.conn == nil {
		if w.conn, err = net.DialTimeout("tcp", w.address, w.timeout); err != nil {
			return a, true, err
		}
		w.answers = bufio.NewReader(w.conn)
	}
	if err := w.conn.SetDeadline(until); err != nil {
		return a, true, err
	}
	request := make([]byte, 0, len(w.head)+16+len(body))
	request = append(request, w.head...)
	request = append(strconv.AppendInt(request, int64(len(body)), 10), "\r\n\r\n"...)
	if _, err := w.conn.Write(append(request, body...)); err != nil {
		return a, true, err
	}
	response, err := http.ReadResponse(w.answers, nil)
	if err != nil {
		return a, true, fmt.Errorf("read the answer: %w", err)
	}
	defer response.Body.Close()
	a.status = response.StatusCode
	a.body, err = io.ReadAll(response.Body)
	return a, response.Close, err
}

func (w *wire) close() {
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
}
