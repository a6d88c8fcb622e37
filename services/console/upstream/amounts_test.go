package upstream

import "testing"

func TestAmountsBecomeTexts(t *testing.T) {
	t.Parallel()
	for given, wanted := range map[string]string{
		`{"amountMinor":9223372036854775807}`:                         `{"amountMinor":"9223372036854775807"}`,
		`{"sumMinor":-123456789012345678901234567890}`:                `{"sumMinor":"-123456789012345678901234567890"}`,
		`{"items":[{"balanceMinor":0,"n":1}],"next":null}`:            `{"items":[{"balanceMinor":"0","n":1}],"next":null}`,
		`{"reference":"amountMinor","count":5}`:                       `{"reference":"amountMinor","count":5}`,
		`{"amountMinor":"2500","a":["amountMinor",7]}`:                `{"amountMinor":"2500","a":["amountMinor",7]}`,
		`{"amountMinor":{"n":1},"x":2}`:                               `{"amountMinor":{"n":1},"x":2}`,
		`{"amountMinor":[1]}`:                                         `{"amountMinor":[1]}`,
		`{"ok":true,"currencies":[{"fundingMinor":-185000,"s":"é"}]}`: `{"ok":true,"currencies":[{"fundingMinor":"-185000","s":"é"}]}`,
	} {
		got, err := QuoteAmounts([]byte(given))
		if err != nil || string(got) != wanted {
			t.Errorf("%s:\n got %s, %v\nwant %s", given, got, err, wanted)
		}
	}
	for _, broken := range []string{`{"amountMinor":`, `{`, `{"a" 1}`} {
		if got, err := QuoteAmounts([]byte(broken)); err == nil {
			t.Errorf("%s: got %s without an error", broken, got)
		}
	}
}
