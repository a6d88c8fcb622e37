package contract

import (
	"errors"
	"fmt"
	"strconv"
)

// Money is an amount in minor units (cents) of one currency. Amounts of different currencies never meet: every operation
// that would mix them has to compare Currency first.
type Money struct {
	Minor    int64
	Currency string
}

func (m Money) String() string { return strconv.FormatInt(m.Minor, 10) + " " + m.Currency }

// ParseAmount reads an amountMinor as it stands in JSON: an integer from 1 to 9223372036854775807, digits only. It works on
// the text, so that no amount ever passes through a float.
func ParseAmount(raw []byte) (int64, error) {
	for _, c := range raw {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("must be an integer written with digits only, not %.40s", raw)
		}
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("must be at most 9223372036854775807, not %.40s", raw)
	}
	if err != nil {
		return 0, errors.New("must be an integer written with digits only")
	}
	if n < 1 {
		return 0, errors.New("must be at least 1")
	}
	return n, nil
}

// ValidCurrency says whether code is three capital letters, the form of ISO 4217.
func ValidCurrency(code string) bool {
	if len(code) != 3 {
		return false
	}
	for i := range len(code) {
		if code[i] < 'A' || code[i] > 'Z' {
			return false
		}
	}
	return true
}
