// Command account owns balances, the ledger and one leg record per transfer. It is the judge of money: transfer asks it by
// message to debit, credit or refund, and it answers by message what it has decided. Accounts are opened and read over HTTP.
package main

import "example.com/banking/pkg/service"

const serviceName = "account"

func main() {
	service.Main(serviceName, defaults, run)
}
