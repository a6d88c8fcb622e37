package main

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

const lifeOfTransfer = `{"transferId":"t-1","service":"transfer","events":[
{"at":"2026-11-30T10:00:00Z","kind":"ACCEPTED","amountMinor":2500,"detail":"EUR from a to b"},
{"at":"2026-11-30T10:00:00Z","kind":"SENT","messageId":"m-1","type":"Transfers.Transfer.Requested"},
{"at":"2026-11-30T10:00:02.5Z","kind":"FAILED","messageId":"m-2","type":"T","queue":"q","attempt":1,"class":"NOT_FOUND","detail":"bad\u001b]0;pwned\u0007","nextDelayMs":5000},
{"at":"2026-11-30T10:00:09Z","kind":"DISCARDED","messageId":"m-2","type":"T","queue":"q","reason":"no use","by":"ann"}]}`

const lifeOfLeg = `{"transferId":"t-1","service":"account","events":[
{"at":"2026-11-30T10:00:01Z","kind":"POSTED","amountMinor":-2500,"detail":"DEBIT, EUR","accountId":"a"}]}`

func TestTransferLife(t *testing.T) {
	t.Parallel()
	s := newParkedServices(t, map[string]string{"GET /legs/t-1/life": lifeOfLeg}, map[string]string{"GET /transfers/t-1/life": lifeOfTransfer})
	show := func(args ...string) (int, string, string) {
		var out, complaints strings.Builder
		code := run(t.Context(), append([]string{"--dir", s.dir, "transfer", "show"}, args...), &out, &complaints)
		return code, out.String(), complaints.String()
	}
	code, out, complaints := show("t-1", "--life")
	if code != 0 {
		t.Fatalf("exit code %d, %s", code, complaints)
	}
	rest := out
	for _, wanted := range []string{
		"+0s", "transfer  ACCEPTED", "2500 minor units", "SENT", "m-1", "+1s", "account", "POSTED", "-2500 minor units · DEBIT, EUR",
		"+2.5s", "FAILED", `T · attempt 1 · NOT_FOUND · bad\x1b]0;pwned\x07 · again in 5s`, "DISCARDED", "because no use · by ann",
	} {
		_, after, found := strings.Cut(rest, wanted)
		if !found {
			t.Fatalf("%q is not there, or not in its order:\n%s", wanted, out)
		}
		rest = after
	}
	var whole transferLife
	if code, out, _ = show("t-1", "--life", "--json"); code != 0 || json.Unmarshal([]byte(out), &whole) != nil || len(whole.Events) != 5 ||
		whole.Events[2].Service != "account" || *whole.Events[3].NextDelayMs != 5000 {
		t.Errorf("exit code %d, in JSON it is\n%s", code, out)
	}
	if code, _, complaints = show("t-2", "--life"); code == 0 || !strings.Contains(complaints, "transfer: 404") {
		t.Errorf("of an unknown transfer: exit code %d, %q", code, complaints)
	}
}

// What one service knows is shown while the other is silent, and that it is silent is said.
func TestTransferLifeOfOneService(t *testing.T) {
	t.Parallel()
	s := newParkedServices(t, map[string]string{"GET /legs/t-1/life": lifeOfLeg}, nil)
	var out, complaints strings.Builder
	code := run(t.Context(), []string{"--dir", s.dir, "transfer", "show", "t-1", "--life"}, &out, &complaints)
	if code == 0 || !strings.Contains(out.String(), "POSTED") || !strings.Contains(complaints.String(), "transfer: ") {
		t.Errorf("exit code %d, %q\n%s", code, complaints.String(), out.String())
	}
}
