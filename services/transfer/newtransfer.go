package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/service"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

const (
	maxReference      = 140 // characters
	maxIdempotencyKey = 255 // characters
)

// newTransferBody is the body of POST /transfers as it came. Its members are left raw, so that a wrong type in one does not
// hide what is wrong with the others, and so that the amount is read from its digits instead of from a float.
type newTransferBody struct {
	Source      jsontext.Value `json:"sourceAccountId"`
	Destination jsontext.Value `json:"destinationAccountId"`
	Amount      jsontext.Value `json:"amountMinor"`
	Currency    jsontext.Value `json:"currency"`
	Reference   jsontext.Value `json:"reference"`
}

// newTransfer is a transfer somebody asks for, checked.
type newTransfer struct {
	Source      uuid.UUID
	Destination uuid.UUID
	Money       contract.Money
	Reference   *string
}

// parse checks the body; the error is a 400 that names every member that is missing or forbidden, all at once.
func (b newTransferBody) parse() (newTransfer, error) {
	var t newTransfer
	var wrong service.FieldErrors
	var isSource, isDestination bool
	t.Source, isSource = parseAccount(b.Source, "sourceAccountId", &wrong)
	t.Destination, isDestination = parseAccount(b.Destination, "destinationAccountId", &wrong)
	if isSource && isDestination && t.Source == t.Destination {
		wrong.Add("destinationAccountId", "must be another account than the source")
	}
	t.Money.Minor = parseAmount(b.Amount, &wrong)
	if currency, ok := parseText(b.Currency, "currency", &wrong); ok {
		t.Money.Currency = currency
		if !contract.ValidCurrency(currency) {
			wrong.Add("currency", "must be three capital letters")
		}
	}
	if b.Reference != nil {
		t.Reference = parseReference(b.Reference, &wrong)
	}
	return t, wrong.Err()
}

func parseAccount(raw jsontext.Value, field string, wrong *service.FieldErrors) (uuid.UUID, bool) {
	text, ok := parseText(raw, field, wrong)
	if !ok {
		return uuid.UUID{}, false
	}
	id, ok := contract.ParseID(text)
	if !ok {
		wrong.Add(field, "must be a UUID")
	}
	return id, ok
}

func parseAmount(raw jsontext.Value, wrong *service.FieldErrors) int64 {
	if raw == nil {
		wrong.Add("amountMinor", "is missing")
		return 0
	}
	minor, err := contract.ParseAmount(raw)
	if err != nil {
		wrong.Add("amountMinor", err.Error())
	}
	return minor
}

func parseReference(raw jsontext.Value, wrong *service.FieldErrors) *string {
	text, ok := parseText(raw, "reference", wrong)
	if !ok {
		return nil
	}
	if utf8.RuneCountInString(text) > maxReference {
		wrong.Add("reference", fmt.Sprintf("must be at most %d characters", maxReference))
	}
	if strings.ContainsRune(text, 0) { // PostgreSQL cannot store it
		wrong.Add("reference", "must not hold the character U+0000")
	}
	return &text
}

func parseText(raw jsontext.Value, field string, wrong *service.FieldErrors) (string, bool) {
	switch {
	case raw == nil:
		wrong.Add(field, "is missing")
		return "", false
	case raw.Kind() != '"':
		wrong.Add(field, "must be a text")
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		wrong.Add(field, "must be a text in valid UTF-8")
		return "", false
	}
	return string(text), true
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

// parseIdempotencyKey reads the header's values: nil when there is none, else a 400 unless it is one usable key.
func parseIdempotencyKey(values []string) (*string, error) {
	var wrong string
	switch {
	case len(values) == 0:
		return nil, nil
	case len(values) > 1:
		wrong = "must be given once"
	case values[0] == "":
		wrong = "must not be empty"
	case utf8.RuneCountInString(values[0]) > maxIdempotencyKey:
		wrong = fmt.Sprintf("must be at most %d characters", maxIdempotencyKey)
	case !utf8.ValidString(values[0]):
		wrong = "must be UTF-8"
	default:
		return &values[0], nil
	}
	return nil, service.BadRequest("A header is not acceptable.", service.FieldError{Field: "Idempotency-Key", Message: wrong})
}
