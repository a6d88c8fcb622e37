// Package contract is the language the services speak: the message types, their routing keys, the data they carry,
// the queues they travel through and the reasons for which money is refused.
//
// It holds no behaviour beyond reading that language strictly. A service that wants to listen to the others, or to be
// listened to, imports this package and nothing of the other services.
package contract

import (
	"strings"
	"time"
)

// The message types. The name is authoritative: consumers dispatch on the body's "type", never on a routing key or an
// exchange, because a retry lap rewrites both.
const (
	TransferRequested       = "Transfers.Transfer.Requested"
	TransferCreditRequested = "Transfers.Transfer.CreditRequested"
	TransferRefundRequested = "Transfers.Transfer.RefundRequested"
	TransferCompleted       = "Transfers.Transfer.Completed"
	TransferRejected        = "Transfers.Transfer.Rejected"
	TransferRefunded        = "Transfers.Transfer.Refunded"

	AccountDebited        = "Accounts.Account.Debited"
	AccountDebitRejected  = "Accounts.Account.DebitRejected"
	AccountCredited       = "Accounts.Account.Credited"
	AccountCreditRejected = "Accounts.Account.CreditRejected"
	AccountRefunded       = "Accounts.Account.Refunded"
)

// MessageTypes lists them.
func MessageTypes() []string {
	return []string{
		TransferRequested, TransferCreditRequested, TransferRefundRequested, TransferCompleted, TransferRejected, TransferRefunded,
		AccountDebited, AccountDebitRejected, AccountCredited, AccountCreditRejected, AccountRefunded,
	}
}

// Exchanges and queues. Durable, and the same in every environment: the vhost is what separates one from the next.
const (
	EventsExchange     = "banking.events"
	RetryExchange      = "transfer.retry"
	DeadLetterExchange = "banking.dlx"
	ParkingLot         = "banking.dead-letters"

	TransferRequestedQueue = "account.transfer-requested"
	CreditRequestedQueue   = "account.credit-requested"
	RefundRequestedQueue   = "account.refund-requested"
	AccountEventsQueue     = "transfer.account-events"
	AccountEventsRetry     = "transfer.account-events.retry"
)

// AccountEventsPattern binds transfer's queue to everything an account says.
const AccountEventsPattern = "accounts.account.*"

// Reasons for which a transfer is refused. They are business answers: they travel in events and are never errors.
const (
	InsufficientFunds = "INSUFFICIENT_FUNDS"
	AccountNotFound   = "ACCOUNT_NOT_FOUND"
	AccountFrozen     = "ACCOUNT_FROZEN"
	AccountClosed     = "ACCOUNT_CLOSED"
	CurrencyMismatch  = "CURRENCY_MISMATCH"
	Cancelled         = "CANCELLED"      // the refund came before the debit
	TimedOut          = "TIMEOUT"        // the transfer stayed open for too long
	LimitExceeded     = "LIMIT_EXCEEDED" // the balance would no longer fit an int64
	Unspecified       = "UNSPECIFIED"    // a foreign account refused and did not say why
)

// RoutingKey derives the routing key of a message type: "Transfers.Transfer.CreditRequested" is published under
// "transfers.transfer.credit-requested".
func RoutingKey(messageType string) string {
	var key strings.Builder
	key.Grow(len(messageType) + 4)
	start := true
	for _, r := range messageType {
		upper := r >= 'A' && r <= 'Z'
		if upper && !start {
			key.WriteByte('-')
		}
		if upper {
			r += 'a' - 'A'
		}
		key.WriteRune(r)
		start = r == '.'
	}
	return key.String()
}

// MustHaveReader says whether a message of this type is lost when no queue takes it. A request or an account's answer
// always has a reader; the news that a transfer has ended may have none.
func MustHaveReader(messageType string) bool {
	switch messageType {
	case TransferCompleted, TransferRejected, TransferRefunded:
		return false
	}
	return true
}

// ErrorQueue names the queue into which account gives up messages of the given queue.
func ErrorQueue(queue string) string { return queue + "_error" }

// RetryTierQueue names the queue in which an account event waits for delay in the tiered retry profile:
// "transfer.account-events.retry.1m12s". The delay stands in the name because a queue's time to live cannot be changed: another
// delay is another queue, and the old one empties itself.
func RetryTierQueue(delay time.Duration) string { return AccountEventsRetry + "." + short(delay) }

// short is a duration without the zero minutes and seconds that its String ends in: 5m and 1h rather than 5m0s and 1h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
