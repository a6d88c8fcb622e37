package messaging

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/banking/pkg/retry"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Envelope is the body of a message. It is the authority: routing keys, exchanges and AMQP properties are copies for people
// and brokers, and may be wrong or gone.
type Envelope struct {
	MessageID     string         // 1–200 characters, any but NUL; unique per message
	Type          string         // what is dispatched on
	OccurredAt    time.Time      // zero when missing or unreadable
	CorrelationID string         // the transfer; "" when missing
	CausationID   string         // MessageID of the cause; "" when missing
	Data          jsontext.Value // nil when missing
}

// MaxMessageID is the longest messageId in characters.
const MaxMessageID = 200

// Decode reads a body strictly: one JSON object in valid UTF-8, nothing behind it, no member twice at any depth, a member in
// another letter case is an unknown one. An error is of class VALIDATION; the envelope then holds what could be read
// nevertheless, for the log. Data aliases body.
func Decode(body []byte) (Envelope, error) {
	var e Envelope
	err := e.read(jsontext.NewDecoder(bytes.NewBuffer(body)), body, time.Now())
	if err == nil {
		err = e.check()
	}
	if err != nil {
		return e, retry.Errorf(retry.Validation, "decode: %w", err)
	}
	return e, nil
}

// read goes through the members one by one, so that those before a syntax error are known after it.
func (e *Envelope) read(d *jsontext.Decoder, body []byte, now time.Time) error {
	if kind := d.PeekKind(); kind != '{' && kind != jsontext.KindInvalid {
		return errors.New("the body must be a JSON object")
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	var wrong error // the first member of a wrong kind; those behind it are read all the same
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		member := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		if member == "data" {
			end := d.InputOffset()
			e.Data = body[end-int64(len(value)) : end : end]
			continue
		}
		if err := e.set(member, value, now); wrong == nil {
			wrong = err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return errors.New("something follows the JSON object")
	}
	return wrong
}

func (e *Envelope) set(member string, value jsontext.Value, now time.Time) error {
	var field *string
	switch member {
	case "messageId":
		field = &e.MessageID
	case "type":
		field = &e.Type
	case "correlationId":
		field = &e.CorrelationID
	case "causationId":
		field = &e.CausationID
	case "occurredAt":
		e.OccurredAt = readTime(value, now)
		return nil
	default:
		return nil
	}
	if value.Kind() != '"' {
		return fmt.Errorf("%s must be a text", member)
	}
	text, err := jsontext.AppendUnquote(nil, value)
	*field = string(text)
	return err
}

// readTime reads a timestamp; what is unreadable or absurd says nothing, as if it were missing.
func readTime(value jsontext.Value, now time.Time) time.Time {
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, string(text))
	if err != nil || absurd(at, now) {
		return time.Time{}
	}
	return at.UTC()
}

// absurd says whether a time cannot be when a message came about.
func absurd(at, now time.Time) bool {
	return at.Year() < 2000 || at.After(now.Add(24*time.Hour))
}

func (e *Envelope) check() error {
	switch {
	case e.MessageID == "":
		return errors.New("messageId is missing")
	case utf8.RuneCountInString(e.MessageID) > MaxMessageID:
		return fmt.Errorf("messageId is longer than %d characters", MaxMessageID)
	case e.Type == "":
		return errors.New("type is missing")
	}
	for _, text := range []string{e.MessageID, e.Type, e.CorrelationID, e.CausationID} {
		if strings.ContainsRune(text, 0) { // PostgreSQL cannot store it
			return errors.New("messageId, type, correlationId or causationId holds a NUL")
		}
	}
	return nil
}

// TransferID is the transfer that a message is about, as it spells it: what data says, else the correlation id; "" for none.
func (e Envelope) TransferID() string {
	var data struct {
		TransferID string `json:"transferId"`
	}
	if json.Unmarshal(e.Data, &data) == nil && data.TransferID != "" { // data of another kind names no transfer
		return data.TransferID
	}
	return e.CorrelationID
}

// Encode writes the body of a message.
func (e Envelope) Encode() ([]byte, error) {
	body, err := json.Marshal(struct {
		MessageID     string         `json:"messageId"`
		Type          string         `json:"type"`
		OccurredAt    string         `json:"occurredAt,omitzero"`
		CorrelationID string         `json:"correlationId,omitzero"`
		CausationID   string         `json:"causationId,omitzero"`
		Data          jsontext.Value `json:"data,omitzero"`
	}{e.MessageID, e.Type, formatTime(e.OccurredAt), e.CorrelationID, e.CausationID, e.Data})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.Type, err)
	}
	return body, nil
}

func formatTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// PayloadHash is the SHA-256 of what a message says: its type and data. How it is spelled (order of members, white space)
// does not matter, nor when and why it was said: an outcome said again is the same payload. Numbers are compared as
// they are written, never as floats.
func (e Envelope) PayloadHash() ([sha256.Size]byte, error) {
	canonical := e.Data.Clone()
	if canonical != nil {
		if err := canonical.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
			return [sha256.Size]byte{}, retry.Errorf(retry.Validation, "hash of data: %w", err)
		}
	}
	payload := make([]byte, 0, len(e.Type)+1+len(canonical))
	payload = append(payload, e.Type...)
	payload = append(payload, 0) // type holds no NUL, so the border is unambiguous
	payload = append(payload, canonical...)
	return sha256.Sum256(payload), nil
}
