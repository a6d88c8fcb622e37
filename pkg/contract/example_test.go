package contract_test

import (
	"fmt"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/retry"
	"github.com/google/uuid"
)

// The type in the body is what is dispatched on; the key under which it is published follows from it.
func ExampleRoutingKey() {
	fmt.Println(contract.RoutingKey(contract.TransferCreditRequested))
	// Output:
	// transfers.transfer.credit-requested
}

// Whoever has to say the same thing about a transfer again says it under the same id, so that the reader's inbox absorbs it.
func ExampleSay() {
	transfer := uuid.MustParse("01a22ed9-e04c-77a9-b25e-2054cea07fc7")
	data := contract.Data{TransferID: contract.Some(transfer.String()), Status: contract.Some("COMPLETED")}
	first, again := contract.Say(transfer, contract.TransferCompleted, data), contract.Say(transfer, contract.TransferCompleted, data)
	encoded, err := first.Data.Encode()
	fmt.Println(first.ID == again.ID, string(encoded), err)
	// Output:
	// true {"transferId":"01a22ed9-e04c-77a9-b25e-2054cea07fc7","status":"COMPLETED"} <nil>
}

// An amount is digits and nothing else: what passes through a float anywhere is refused everywhere.
func ExampleParseAmount() {
	for _, raw := range []string{"2500", "2500.0", "1e3", `"2500"`, "0", "9223372036854775807", "9223372036854775808"} {
		amount, err := contract.ParseAmount([]byte(raw))
		fmt.Println(raw, amount, err == nil)
	}
	// Output:
	// 2500 2500 true
	// 2500.0 0 false
	// 1e3 0 false
	// "2500" 0 false
	// 0 0 false
	// 9223372036854775807 9223372036854775807 true
	// 9223372036854775808 0 false
}

// What a message must have depends on its reader: account demands everything of a request, in words that name what is missing.
func ExampleData_Request() {
	data, err := contract.ParseData([]byte(`{"transferId":"01a22ed9-e04c-77a9-b25e-2054cea07fc7","amountMinor":2500}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = data.Request()
	fmt.Println(retry.ClassOf(err), err)
	// Output:
	// VALIDATION data.sourceAccountId must be a UUID
}

// Errors name members as people write them, and not as JSON pointers.
func ExampleMemberName() {
	fmt.Println(contract.MemberName("/filter/ids/0"))
	// Output:
	// filter.ids.0
}

// One id has one spelling.
func ExampleParseID() {
	for _, text := range []string{"01A22ED9-E04C-77A9-B25E-2054CEA07FC7", "{01a22ed9-e04c-77a9-b25e-2054cea07fc7}", "not-a-real-id"} {
		fmt.Println(contract.ParseID(text))
	}
	// Output:
	// 01a22ed9-e04c-77a9-b25e-2054cea07fc7 true
	// 00000000-0000-0000-0000-000000000000 false
	// 00000000-0000-0000-0000-000000000000 false
}

// Every consumer has a place of its own for what it gives up, or for what waits, and the name says whose.
func ExampleErrorQueue() {
	fmt.Println(contract.ErrorQueue(contract.CreditRequestedQueue))
	fmt.Println(contract.RetryTierQueue(72 * time.Second))
	// Output:
	// account.credit-requested_error
	// transfer.account-events.retry.1m12s
}

// A publisher says for each message whether the broker must find a queue for it. These may be lost when nobody listens.
func ExampleMustHaveReader() {
	for _, messageType := range contract.MessageTypes() {
		if !contract.MustHaveReader(messageType) {
			fmt.Println(messageType)
		}
	}
	// Output:
	// Transfers.Transfer.Completed
	// Transfers.Transfer.Rejected
	// Transfers.Transfer.Refunded
}

// The form is checked, and not whether there is such a currency: that is for the accounts to say.
func ExampleValidCurrency() {
	for _, code := range []string{"EUR", "eur", "EURO", "XYZ"} {
		fmt.Println(code, contract.ValidCurrency(code))
	}
	// Output:
	// EUR true
	// eur false
	// EURO false
	// XYZ true
}
