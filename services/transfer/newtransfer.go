package main

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"example.com/banking/pkg/contract"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

const (
	maxReference      = 140 // characters
	maxIdempotencyKey = 255 // characters
)

// newTransfer is the body of POST /transfers, checked.
type newTransfer struct {
	Source      uuid.UUID
	Destination uuid.UUID
	Money       contract.Money
	Reference   *string
}

// fieldErrors says what is wrong with a body, member by member.
type fieldErrors []fieldError

type fieldError struct{ Field, Message string }

func (e *fieldErrors) add(field, message string) { *e = append(*e, fieldError{field, message}) }

// parseNewTransfer reads the body of POST /transfers. Members that it does not know are ignored, as everywhere; one that
// stands twice is refused, because another reader might take the other one. The error says why the body as a whole is unreadable; the
// field errors name every member that is missing or forbidden, all at once.
func parseNewTransfer(body []byte) (newTransfer, fieldErrors, error) {
	// Raw members first: a wrong type in one of them then does not hide what is wrong with the others, and the amount is read
	// from its digits instead of from a float.
	var raw struct {
		Source      jsontext.Value `json:"sourceAccountId"`
		Destination jsontext.Value `json:"destinationAccountId"`
		Amount      jsontext.Value `json:"amountMinor"`
		Currency    jsontext.Value `json:"currency"`
		Reference   jsontext.Value `json:"reference"`
	}
	if jsontext.Value(body).Kind() != '{' {
		return newTransfer{}, nil, errors.New("the body must be a JSON object")
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return newTransfer{}, nil, fmt.Errorf("the body is not valid JSON: %w", err)
	}

	var t newTransfer
	var wrong fieldErrors
	var isSource, isDestination bool
	t.Source, isSource = parseAccount(raw.Source, "sourceAccountId", &wrong)
	t.Destination, isDestination = parseAccount(raw.Destination, "destinationAccountId", &wrong)
	if isSource && isDestination && t.Source == t.Destination {
		wrong.add("destinationAccountId", "must be another account than the source")
	}
	if raw.Amount == nil {
		wrong.add("amountMinor", "is missing")
	} else if minor, err := contract.ParseAmount(raw.Amount); err != nil {
		wrong.add("amountMinor", err.Error())
	} else {
		t.Money.Minor = minor
	}
	if currency, ok := parseText(raw.Currency, "currency", &wrong); ok {
		t.Money.Currency = currency
		if !contract.ValidCurrency(currency) {
			wrong.add("currency", "must be three capital letters")
		}
	}
	if raw.Reference != nil {
		t.Reference = parseReference(raw.Reference, &wrong)
	}
	return t, wrong, nil
}

func parseAccount(raw jsontext.Value, field string, wrong *fieldErrors) (uuid.UUID, bool) {
	text, ok := parseText(raw, field, wrong)
	if !ok {
		return uuid.UUID{}, false
	}
	id, ok := contract.ParseID(text)
	if !ok {
		wrong.add(field, "must be a UUID")
	}
	return id, ok
}

func parseReference(raw jsontext.Value, wrong *fieldErrors) *string {
	text, ok := parseText(raw, "reference", wrong)
	if !ok {
		return nil
	}
	if utf8.RuneCountInString(text) > maxReference {
		wrong.add("reference", fmt.Sprintf("must be at most %d characters", maxReference))
	}
	if !storable(text) {
		wrong.add("reference", "must not hold the character U+0000")
	}
	return &text
}

func parseText(raw jsontext.Value, field string, wrong *fieldErrors) (string, bool) {
	if raw == nil {
		wrong.add(field, "is missing")
		return "", false
	}
	if raw.Kind() != '"' {
		wrong.add(field, "must be a text")
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil { // not reached: the body has been parsed whole
		wrong.add(field, err.Error())
		return "", false
	}
	return string(text), true
}

// storable says whether PostgreSQL can hold the text: it has no U+0000 and takes nothing but UTF-8.
func storable(text string) bool {
	for i := range len(text) {
		if text[i] == 0 {
			return false
		}
	}
	return utf8.ValidString(text)
}

// hash identifies what was asked for, not how it was spelled: white space, the order of members, the letter case of an id and
// members that mean nothing here make no difference. An absent reference is not an empty one.
func (t newTransfer) hash() []byte {
	text := make([]byte, 0, 64)
	text = append(text, t.Source[:]...)
	text = append(text, t.Destination[:]...)
	text = binary.BigEndian.AppendUint64(text, uint64(t.Money.Minor))
	text = append(text, t.Money.Currency...)
	if t.Reference != nil {
		text = append(text, 1)
		text = append(text, *t.Reference...)
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// checkIdempotencyKey says what is wrong with the header's values; nil when the key can be used.
func checkIdempotencyKey(values []string) error {
	switch {
	case len(values) != 1:
		return errors.New("Idempotency-Key must be given once")
	case values[0] == "":
		return errors.New("Idempotency-Key must not be empty")
	case utf8.RuneCountInString(values[0]) > maxIdempotencyKey:
		return fmt.Errorf("Idempotency-Key must be at most %d characters", maxIdempotencyKey)
	case !storable(values[0]):
		return errors.New("Idempotency-Key must be UTF-8 text")
	}
	return nil
}
