package contract_test

import (
	"strings"
	"testing"

	"example.com/banking/pkg/contract"
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
