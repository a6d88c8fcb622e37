package exercises

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// attempt is a line of a service's log about an attempt that failed.
type attempt struct {
	At      time.Time `json:"time"`
	Msg     string    `json:"msg"`
	ID      string    `json:"message_id"`
	Class   string    `json:"class"`
	Attempt string    `json:"attempt"`
}

// attempts are the failed attempts at a message that the log of a service tells of; none where the log cannot be reached, or is written
// for people.
func (r *run) attempts(s *service, messageID string) (all []attempt, err error) {
	if r.Logs == "" {
		return nil, nil
	}
	file, err := os.Open(filepath.Join(r.Logs, s.name+".log"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the log of %s: %w", s.name, err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a attempt
		if strings.Contains(lines.Text(), messageID) && json.Unmarshal(lines.Bytes(), &a) == nil && a.ID == messageID && strings.HasPrefix(a.Msg, "attempt failed") {
			all = append(all, a)
		}
	}
	return all, lines.Err()
}

// laps proves by the log that the attempts at a message were a lap apart.
func (r *run) laps(messageID string, lap time.Duration, want int) error {
	all, err := r.attempts(r.transfer, messageID)
	if err != nil || len(all) == 0 {
		return err
	}
	even := len(all) == want
	var figures []Figure
	for i, a := range all {
		since := a.At.Sub(all[0].At)
		figures = append(figures, figure("attempt "+a.Attempt, "+"+since.Round(time.Millisecond).String()))
		if i > 0 && a.At.Sub(all[i-1].At) < lap-10*time.Millisecond {
			even = false
		}
	}
	return r.happened(even, fmt.Sprintf("Its log has %d lines, each %s or a little more after the one before.", want, lap), figures...)
}
