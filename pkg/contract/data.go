package contract

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/banking/pkg/retry"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Data is the "data" member of any message, read strictly: what is there has the right JSON type, what is missing is the
// zero value. Which members must be there depends on the reader, see Request and the transfer service.
type Data struct {
	TransferID           Text   `json:"transferId,omitzero"`
	AccountID            Text   `json:"accountId,omitzero"`
	SourceAccountID      Text   `json:"sourceAccountId,omitzero"`
	DestinationAccountID Text   `json:"destinationAccountId,omitzero"`
	AmountMinor          Amount `json:"amountMinor,omitzero"`
	Currency             Text   `json:"currency,omitzero"`
	Reason               Text   `json:"reason,omitzero"`
	Status               Text   `json:"status,omitzero"`
}

// Text is a JSON string that knows whether it was there. Unlike a plain Go string it refuses null.
type Text struct {
	Value   string
	Present bool
}

// Some is a Text that is there.
func Some(value string) Text { return Text{Value: value, Present: true} }

// UnmarshalJSONFrom accepts a JSON string and nothing else.
func (t *Text) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() != '"' {
		return fmt.Errorf("must be a text, not %s", kindName(token.Kind()))
	}
	*t = Some(token.String())
	return nil
}

// MarshalJSONTo writes the string.
func (t Text) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteToken(jsontext.String(t.Value)) }

// IsZero lets an absent member be left out.
func (t Text) IsZero() bool { return !t.Present }

// Amount is an amountMinor. Zero means that it was not there: no valid amount is below 1.
type Amount int64

// UnmarshalJSONFrom accepts what ParseAmount accepts.
func (a *Amount) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	if raw.Kind() != '0' {
		return fmt.Errorf("must be an integer, not %s", kindName(raw.Kind()))
	}
	n, err := ParseAmount(raw)
	*a = Amount(n)
	return err
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a text"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	return "nothing"
}

// ParseData reads the data member of a message. Unknown members are ignored; a member that stands twice, in a wrong JSON
// type or as a malformed amount is an error of class VALIDATION. A member in another letter case is an unknown one.
func ParseData(raw jsontext.Value) (Data, error) {
	var data Data
	if raw.Kind() != '{' {
		return Data{}, retry.Errorf(retry.Validation, "data must be an object")
	}
	if err := json.Unmarshal(raw, &data); err != nil {
		return Data{}, retry.Errorf(retry.Validation, "data%.300s", malformed(err)) // it may quote a name that is megabytes long
	}
	return data, nil
}

// malformed says what is wrong, to be written behind "data", without the library's own words, which name Go types. The data of a message is
// JSON with no member twice, or its envelope could not have been decoded, so what is said of a message names a member and the type that
// it should have; the rest is for data from elsewhere.
func malformed(err error) string {
	var semantic *json.SemanticError
	if errors.As(err, &semantic) && semantic.Err != nil {
		return "." + MemberName(semantic.JSONPointer) + " " + semantic.Err.Error()
	}
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) && errors.Is(err, jsontext.ErrDuplicateName) {
		return "." + MemberName(syntactic.JSONPointer) + " is given twice"
	}
	return " is not valid JSON"
}

// MemberName writes a JSON pointer the way people write members: /ids/0 is ids.0.
func MemberName(pointer jsontext.Pointer) string {
	return strings.Join(slices.Collect(pointer.Tokens()), ".")
}

// Encode writes the data member of a message of ours.
func (d Data) Encode() (jsontext.Value, error) { return json.Marshal(d) }

// Request is what transfer asks of account: move Money between two accounts on behalf of one transfer.
type Request struct {
	TransferID  uuid.UUID
	Source      uuid.UUID
	Destination uuid.UUID
	Money       Money
	Reason      string // only with a refund
}

// Request demands everything account requires of a debit or a credit; what is missing or malformed is an error of class
// VALIDATION that names the member.
func (d Data) Request() (Request, error) {
	var r Request
	for _, id := range []struct {
		member string
		text   Text
		into   *uuid.UUID
	}{
		{"transferId", d.TransferID, &r.TransferID},
		{"sourceAccountId", d.SourceAccountID, &r.Source},
		{"destinationAccountId", d.DestinationAccountID, &r.Destination},
	} {
		parsed, ok := ParseID(id.text.Value)
		if !ok {
			return Request{}, retry.Errorf(retry.Validation, "data.%s must be a UUID", id.member)
		}
		*id.into = parsed
	}
	switch {
	case r.Source == r.Destination:
		return Request{}, retry.Errorf(retry.Validation, "data.sourceAccountId and data.destinationAccountId must differ")
	case d.AmountMinor < 1:
		return Request{}, retry.Errorf(retry.Validation, "data.amountMinor is missing")
	case !ValidCurrency(d.Currency.Value):
		return Request{}, retry.Errorf(retry.Validation, "data.currency must be three capital letters")
	}
	r.Money = Money{Minor: int64(d.AmountMinor), Currency: d.Currency.Value}
	r.Reason = d.Reason.Value
	return r, nil
}

// Refund demands what Request does and a reason: money goes back because of something.
func (d Data) Refund() (Request, error) {
	r, err := d.Request()
	if err == nil && d.Reason.Value == "" {
		err = retry.Errorf(retry.Validation, "data.reason is missing")
	}
	if err != nil {
		return Request{}, err
	}
	return r, nil
}

// ParseID reads a UUID in its usual form of 36 characters. The other forms that exist (braces, "urn:uuid:", no hyphens)
// are not ids here, so that one id has one spelling in a path, a body and a log, letter case aside.
func ParseID(text string) (uuid.UUID, bool) {
	if len(text) != 36 {
		return uuid.UUID{}, false
	}
	id, err := uuid.Parse(text)
	return id, err == nil
}
