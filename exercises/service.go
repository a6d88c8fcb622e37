package exercises

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// service is one of the bank's services, asked over HTTP.
type service struct {
	name, base, token string
	client            http.Client
}

func newService(name, base, token string) *service {
	return &service{name: name, base: strings.TrimSuffix(base, "/"), token: token, client: http.Client{Timeout: 15 * time.Second}}
}

// refused is an answer that is no success.
type refused struct {
	service, path string
	status        int
	said          string
}

func (e *refused) Error() string {
	return fmt.Sprintf("%s answers %s with %d: %s", e.service, e.path, e.status, e.said)
}

// call makes one call and decodes the answer into result, unless that is nil.
func (s *service) call(ctx context.Context, method, path string, body, result any, headers ...string) error {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if strings.HasPrefix(path, "/admin/") {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := s.client.Do(request)
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", s.name, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", s.name, err)
	}
	if response.StatusCode >= 400 {
		return &refused{s.name, path, response.StatusCode, strings.TrimSpace(string(answer))}
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(answer, result); err != nil {
		return fmt.Errorf("%s answers %s with something unexpected: %w", s.name, path, err)
	}
	return nil
}

// metric is the sum of all series of a metric that have every one of the labels, each written label="value".
func (s *service) metric(ctx context.Context, name string, labels ...string) (sum float64, err error) {
	all, err := s.values(ctx, name, labels)
	for _, value := range all {
		sum += value
	}
	return sum, err
}

// series are the labels of each series of a metric that has every one of the labels.
func (s *service) series(ctx context.Context, name string, labels ...string) ([]string, error) {
	all, err := s.values(ctx, name, labels)
	return slices.Sorted(maps.Keys(all)), err
}

// values are the series of a metric that have the labels, each by its labels.
func (s *service) values(ctx context.Context, name string, labels []string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s does not answer: %w", s.name, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of %s: %w", s.name, err)
	}
	found := map[string]float64{}
	for line := range strings.Lines(string(content)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		of, given, _ := strings.Cut(series, "{")
		if of != name || !containsAll(given, labels) {
			continue
		}
		if found[given], err = strconv.ParseFloat(value, 64); err != nil {
			return nil, fmt.Errorf("a metric of %s: %w", s.name, err)
		}
	}
	return found, nil
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// ready asks whether the service has everything it needs.
func (s *service) ready(ctx context.Context) (bool, error) {
	err := s.call(ctx, http.MethodGet, "/readyz", nil, nil)
	return err == nil, err
}

// began is when the process that answers was started, in seconds since 1970: another number is another process.
func (s *service) began(ctx context.Context) (float64, error) {
	return s.metric(ctx, "process_start_time_seconds")
}
