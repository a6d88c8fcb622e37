package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/retry"
	"example.com/banking/services/account/ledger"
	"example.com/banking/services/transfer/lifecycle"
	"github.com/google/uuid"
)

// judge and memory are the two machines under test.
type judge interface {
	Handle(*ledger.Leg, ledger.Kind, contract.Request, *ledger.Account) (ledger.Outcome, error)
}

type memory interface {
	Request(id, source, destination uuid.UUID, money contract.Money) (lifecycle.Transfer, contract.Message)
	Hear(*lifecycle.Transfer, string, contract.Data) (lifecycle.Step, error)
	TimeOut(*lifecycle.Transfer) (lifecycle.Step, error)
}

// network says what may happen between the machines.
type network struct {
	inbox   bool  // readers remember messageIds; without, every copy is handled anew
	copies  uint8 // how many copies of a message arrive each time it is said
	most    uint8 // so many copies at most are waiting at once; 0 is no limit
	repeat  bool  // any message ever sent may arrive once more, at any time, without end
	timeout bool  // the sweeper may fire at any time
	stray   bool  // account may be sent any request of a transfer, at any time, by somebody who makes up a messageId
	freeze  bool  // accounts may be frozen, unfrozen and, when empty, closed at any time
	wire    bool  // data is encoded and decoded on its way
}

// messageTypes are all types; a message is found at the place of its transfer and type.
var messageTypes = []string{
	contract.TransferRequested, contract.TransferCreditRequested, contract.TransferRefundRequested,
	contract.AccountDebited, contract.AccountDebitRejected, contract.AccountCredited, contract.AccountCreditRejected, contract.AccountRefunded,
	contract.TransferCompleted, contract.TransferRejected, contract.TransferRefunded,
}

const (
	requests = 3 // the first so many types are read by account
	read     = 8 // the first so many types have a reader at all
)

// packet is one message that may have been said.
type packet struct {
	message *contract.Message // never changed, so that worlds may share it
	said    int               // how often
	waiting uint8             // copies that have to arrive still
	seen    bool              // it is in its reader's inbox
}

// world is one instant of the whole system.
type world struct {
	network
	judge     judge
	memory    memory
	orders    []contract.Message // what a stranger copies: the request for each transfer as it should be
	opening   []ledger.Entry
	accounts  []ledger.Account
	transfers []lifecycle.Transfer
	statuses  []lifecycle.Status // as stored beside the transfer
	legs      []ledger.Leg
	entries   [][]ledger.Entry // by transfer
	packets   []packet
}

type order struct {
	source, destination uuid.UUID
	money               contract.Money
}

func newWorld(n network, j judge, m memory, accounts []ledger.Account, opening []ledger.Entry, orders ...order) *world {
	w := &world{network: n, judge: j, memory: m, accounts: accounts, opening: opening,
		packets: make([]packet, len(orders)*len(messageTypes)),
		legs:    make([]ledger.Leg, len(orders)), entries: make([][]ledger.Entry, len(orders))}
	for i, o := range orders {
		t, message := m.Request(name("transfer", i), o.source, o.destination, o.money)
		_, asked := realMemory.Request(t.ID, o.source, o.destination, o.money)
		w.orders = append(w.orders, asked)
		w.transfers = append(w.transfers, t)
		w.statuses = append(w.statuses, t.Status())
		if slices.Contains(messageTypes, message.Type) { // else a broken machine is at work, and the check will tell
			w.packets[w.place(i, message.Type)] = packet{message: &message, said: 1, waiting: n.copies}
		}
	}
	return w
}

// name makes ids that are the same in every run.
func name(kind string, i int) uuid.UUID {
	return uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%s %d", kind, i))
}

func (w *world) place(transfer int, messageType string) int {
	return transfer*len(messageTypes) + slices.Index(messageTypes, messageType)
}

func (w *world) clone() *world {
	c := &world{}
	c.become(w)
	return c
}

// become makes c equal to w and uses the memory c has already: most steps lead to where one has been, and need no new world.
// What a transfer's entries are is replaced, never changed, so that worlds may share them.
func (c *world) become(w *world) {
	old := *c
	*c = *w
	c.accounts = append(old.accounts[:0], w.accounts...)
	c.transfers = append(old.transfers[:0], w.transfers...)
	c.statuses = append(old.statuses[:0], w.statuses...)
	c.legs = append(old.legs[:0], w.legs...)
	c.entries = append(old.entries[:0], w.entries...)
	c.packets = append(old.packets[:0], w.packets...)
}

// deliver hands one copy of a message to its reader. When the reader dies between commit and ack, the copy stays.
func (w *world) deliver(place int, acked bool) error {
	p := &w.packets[place]
	if acked {
		p.waiting--
	}
	if w.inbox && p.seen {
		return nil
	}
	data := p.message.Data
	if w.wire {
		var err error
		if data, err = overTheWire(data); err != nil {
			return err
		}
	}
	transfer := place / len(messageTypes)
	handle := w.transfer
	if place%len(messageTypes) < requests {
		handle = w.account
	}
	p.seen = true
	return handle(transfer, p.message.Type, data)
}

func overTheWire(data contract.Data) (contract.Data, error) {
	raw, err := data.Encode()
	if err != nil {
		return contract.Data{}, err
	}
	return contract.ParseData(raw)
}

// account is what account's unit of work does with a request.
func (w *world) account(transfer int, messageType string, data contract.Data) error {
	r, err := data.Request()
	if err != nil {
		return err
	}
	kind := ledger.Kind(messageType)
	account := w.find(ledger.AccountOf(kind, r))
	if account != nil && kind == ledger.CreditRequested && !account.Fits(r.Money.Minor) {
		account.MayReturn = w.mayReturn(account.ID)
	}
	outcome, err := w.judge.Handle(&w.legs[transfer], kind, r, account)
	if err != nil {
		return err
	}
	if outcome.Entries != nil {
		w.entries[transfer] = slices.Concat(w.entries[transfer], outcome.Entries)
	}
	if err := answers(kind, outcome.Message, movements(w.entries[transfer])); err != nil {
		return err
	}
	return w.say(transfer, outcome.Message)
}

func (w *world) find(id uuid.UUID) *ledger.Account {
	for i := range w.accounts {
		if w.accounts[i].ID == id {
			return &w.accounts[i]
		}
	}
	return nil
}

// mayReturn is what the store computes when the bound it keeps stands in a credit's way.
func (w *world) mayReturn(account uuid.UUID) int64 {
	var sum int64
	for _, leg := range w.legs {
		if leg.Source == account && (leg.State == ledger.Debited || leg.State == ledger.CreditRejected) {
			sum += leg.Money.Minor
		}
	}
	return sum
}

// strayRequest is a request that transfer has not made, or not yet, or made before: someone publishes it by hand. A credit
// without a debit may be refused as NOT_FOUND, then nothing has happened; everything else is answered.
func (w *world) strayRequest(transfer, kind int) error {
	unheardOf := w.legs[transfer].State == ledger.None
	err := w.account(transfer, messageTypes[kind], w.orders[transfer].Data)
	var classed *retry.Error
	if errors.As(err, &classed) && classed.Class == retry.NotFound && unheardOf && w.legs[transfer] == (ledger.Leg{}) {
		return nil
	}
	return err
}

// transfer is what transfer's unit of work does with an event.
func (w *world) transfer(transfer int, messageType string, data contract.Data) error {
	step, err := w.memory.Hear(&w.transfers[transfer], messageType, data)
	if err != nil {
		return err
	}
	return w.step(transfer, step)
}

func (w *world) step(transfer int, step lifecycle.Step) error {
	if before := w.statuses[transfer]; before.Terminal() && step.To != before {
		return fmt.Errorf("a transfer left the terminal status %s for %s", before, step.To)
	}
	if _, known := lifecycle.ParseStatus(string(step.To)); !known {
		return fmt.Errorf("a transfer has the status %q", step.To)
	}
	w.statuses[transfer] = step.To
	if step.Message == nil {
		return nil
	}
	if p := w.packets[w.place(transfer, step.Message.Type)]; p.said > 0 {
		return fmt.Errorf("transfer says %s for the second time", step.Message.Type)
	}
	return w.say(transfer, *step.Message)
}

// say puts a message into the outbox, from where it is sent some time.
func (w *world) say(transfer int, message contract.Message) error {
	place := w.place(transfer, message.Type)
	p := &w.packets[place]
	if p.said > 0 && *p.message != message {
		return fmt.Errorf("messageId %s was used for %+v and again for %+v", message.ID, p.message.Data, message.Data)
	}
	p.message = &message
	p.said++
	if place%len(messageTypes) < read {
		p.waiting += w.copies
		if w.most > 0 {
			p.waiting = min(p.waiting, w.most)
		}
	}
	return nil
}

// atRest says whether every message has arrived.
func (w *world) atRest() bool {
	return !slices.ContainsFunc(w.packets, func(p packet) bool { return p.waiting > 0 })
}

// key appends to b what is the same for two worlds exactly when they cannot be told apart from now on.
func (w *world) key(b []byte) []byte {
	for _, a := range w.accounts {
		b = append(b, a.Status[0])
		b = binary.AppendVarint(b, a.Balance)
		b = binary.AppendVarint(b, a.MayReturn)
	}
	for i := range w.transfers {
		t, leg := &w.transfers[i], &w.legs[i]
		b = binary.AppendUvarint(b, uint64(t.Facts))
		b = append(append(b, t.Reason...), 0)
		b = append(append(b, w.statuses[i]...), 0)
		b = append(append(b, leg.State...), 0)
		b = append(append(b, leg.Reason...), 0)
		for _, e := range w.entries[i] {
			b = append(b, e.Book[0], e.Movement[0])
		}
		b = append(b, 0)
	}
	for _, p := range w.packets {
		if p.said == 0 {
			b = append(b, 0)
			continue
		}
		seen := byte(1)
		if p.seen && w.inbox {
			seen = 2
		}
		b = append(b, seen, p.waiting)
		b = append(append(b, p.message.Data.Reason.Value...), 0)
	}
	return b
}
