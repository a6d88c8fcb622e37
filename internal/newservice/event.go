package newservice

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"example.com/banking/pkg/contract"
)

// event is a kind of message that the service consumes, as the template needs it.
type event struct {
	Key      string
	Type     string
	TypeExpr string // in Go: a constant of pkg/contract, or the text
	Func     string // reads it
	Demand   string // what it must have beside the transfer: ended, request, refund, moved, refused, or foreign
	Status   string // of an ended one
	Data     string // an example, in which TRANSFER stands for the transfer's id
}

var routingKey = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*(\.[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*)+$`)

const longestKey = 200 // AMQP carries 255 bytes

// events describes the messages with the given routing keys.
func events(service string, keys []string) ([]event, error) {
	var all []event
	readers := map[string]string{}
	for _, key := range keys {
		switch {
		case strings.ContainsAny(key, "*#"):
			return nil, fmt.Errorf("routing key %q is a pattern: name each event, because each type has a function that reads it", key)
		case !routingKey.MatchString(key) || len(key) > longestKey:
			return nil, fmt.Errorf("%.60q is no routing key: it looks like transfers.transfer.completed", key)
		case strings.HasPrefix(key, service+"."):
			return nil, fmt.Errorf("%s would hear itself under the key %s", service, key)
		}
		e := describe(key)
		if other, twice := readers[e.Func]; twice && other == key {
			return nil, fmt.Errorf("routing key %s is given twice", key)
		} else if twice {
			return nil, fmt.Errorf("routing keys %s and %s would have a reader of the same name: consume one of them, and add the other by hand", other, key)
		}
		readers[e.Func] = key
		all = append(all, e)
	}
	return all, nil
}

func describe(key string) event {
	e := event{Key: key, Type: messageType(key), Demand: "foreign", Data: `{"transferId":"TRANSFER"}`}
	known := slices.Contains(contract.MessageTypes(), e.Type)
	parts := strings.Split(e.Type, ".")
	if !known {
		e.TypeExpr, e.Func = fmt.Sprintf("%q", e.Type), "read"+strings.Join(parts, "")
		return e
	}
	name := strings.Join(parts[1:], "") // Transfers.Transfer.Completed is contract.TransferCompleted
	e.TypeExpr, e.Func = "contract."+name, "read"+name
	const accounts = `"sourceAccountId":"6f9619ff-8b86-4d01-b42d-00cf4fc964ff","destinationAccountId":"16fd2706-8baf-433b-82eb-8c7fada847da"`
	const account, money = `"accountId":"6f9619ff-8b86-4d01-b42d-00cf4fc964ff"`, `"amountMinor":2500,"currency":"EUR"`
	with := func(demand string, members ...string) {
		e.Demand, e.Data = demand, `{"transferId":"TRANSFER",`+strings.Join(members, ",")+`}`
	}
	switch e.Type {
	case contract.TransferRequested, contract.TransferCreditRequested:
		with("request", accounts, money)
	case contract.TransferRefundRequested:
		with("refund", accounts, money, `"reason":"TIMEOUT"`)
	case contract.TransferCompleted, contract.TransferRejected, contract.TransferRefunded:
		e.Status = strings.ToUpper(parts[2])
		with("ended", fmt.Sprintf(`"status":%q`, e.Status))
	case contract.AccountDebitRejected, contract.AccountCreditRejected:
		with("refused", account, `"reason":"ACCOUNT_FROZEN"`)
	default:
		with("moved", account, money)
	}
	return e
}

// messageType is the type whose routing key this is: contract.RoutingKey the other way round.
func messageType(key string) string {
	var name strings.Builder
	upper := true
	for _, r := range key {
		switch {
		case r == '-':
			upper = true
			continue
		case upper && r >= 'a' && r <= 'z':
			r -= 'a' - 'A'
		}
		name.WriteRune(r)
		upper = r == '.'
	}
	return name.String()
}
