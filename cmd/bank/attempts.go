package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
)

// attempt is the line that a service logs for each failed handling of a message.
type attempt struct {
	Time      time.Time `json:"time"`
	MessageID string    `json:"message_id"`
	Class     string    `json:"class"`
	Attempt   string    `json:"attempt"`    // "1/3"
	NextDelay string    `json:"next_delay"` // while it is retried
	Reason    string    `json:"reason"`     // why it was given up
}

func (a attempt) outcome() string {
	if a.Reason != "" {
		return "given up: " + a.Reason
	}
	return "again in " + a.NextDelay
}

// attempts follows a service's log for the attempts at one message, from where the log ends now.
type attempts struct {
	messageID string
	log       *os.File
	pending   []byte // the beginning of a line that is not whole yet
}

func followAttempts(logs, service, messageID string) (*attempts, error) {
	log, err := os.Open(filepath.Join(logs, service+".log"))
	if err != nil {
		return nil, fmt.Errorf("follow the service's log: %w", err)
	}
	if _, err := log.Seek(0, io.SeekEnd); err != nil {
		return nil, fmt.Errorf("follow the service's log: %w", err)
	}
	return &attempts{messageID: messageID, log: log}, nil
}

// read returns what has come since the last call.
func (a *attempts) read() ([]attempt, error) {
	fresh, err := io.ReadAll(a.log)
	if err != nil {
		return nil, fmt.Errorf("follow the service's log: %w", err)
	}
	a.pending = append(a.pending, fresh...)
	end := bytes.LastIndexByte(a.pending, '\n') + 1
	lines := bufio.NewScanner(bytes.NewReader(a.pending[:end]))
	lines.Buffer(nil, max(end, 1))
	var found []attempt
	for lines.Scan() {
		var line attempt
		// Lines of another shape are about something else.
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.MessageID == a.messageID && line.Attempt != "" {
			found = append(found, line)
		}
	}
	a.pending = append([]byte(nil), a.pending[end:]...)
	return found, lines.Err()
}

func (a *attempts) close() { _ = a.log.Close() }
