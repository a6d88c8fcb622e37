package contract_test

import (
	"strings"
	"testing"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
)

// Whatever a message holds, what is said about it fits into a line of log.
func TestErrorsAboutDataAreShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	digits := strings.Repeat("9", 1<<20)
	for name, data := range map[string]string{
		"amount too large":      `{"amountMinor":` + digits + `}`,
		"amount with a point":   `{"amountMinor":1.` + digits + `}`,
		"amount as text":        `{"amountMinor":"` + long + `"}`,
		"text as number":        `{"accountId":` + digits + `}`,
		"unknown member twice":  `{"` + long + `":1,"` + long + `":2}`,
		"wrong type far inside": `{"` + long + `":{"` + long + `":nul}}`,
		"invalid escape":        `{"accountId":"` + long + `\q"}`,
		"no object":             `"` + long + `"`,
	} {
		_, err := contract.ParseData([]byte(data))
		if err == nil || len(err.Error()) > 500 {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}

// Whoever reads such an error looks at a message, and does not know the Go types here.
func TestErrorsAboutDataNameTheMember(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"transferId":7}`:                      "data.transferId must be a text, not a number",
		`{"reason":null}`:                       "data.reason must be a text, not null",
		`{"amountMinor":"5"}`:                   "data.amountMinor must be an integer, not a text",
		`{"transferId":"a","transferId":"b"}`:   "data.transferId is given twice",
		`{"strange":{"deep":1,"deep":2}}`:       "data.strange.deep is given twice",
		`[]`:                                    "data must be an object",
		`{"amountMinor":1.5,"transferId":"a"}`:  "data.amountMinor ",
		`{"transferId":"a","amountMinor":truu}`: "data is not valid JSON",
		`{"transferId":"\ud800"}`:               "data is not valid JSON",
		`{"transferId":"a"`:                     "data is not valid JSON",
	} {
		if _, err := contract.ParseData([]byte(data)); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "jsontext") {
			t.Errorf("%s: %v, want %s", data, err, want)
		}
	}
}

// What is wrong with the data of a message that could be decoded is the type of a member, and nothing about its syntax.
func TestDataOfADecodedMessageIsJSON(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`{"transferId":"a","transferId":"b"}`, `{"strange":{"deep":1,"deep":2}}`, `{"amountMinor":truu}`, `{"transferId":"\ud800"}`, "{\"transferId\":\"\xff\"}"} {
		if _, err := messaging.Decode([]byte(`{"messageId":"m","type":"T","data":` + data + `}`)); err == nil {
			t.Errorf("a message with %q as its data could be decoded", data)
		}
	}
}
