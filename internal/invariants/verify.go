package invariants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/banking/pkg/contract"
)

// Queue is what the broker holds in one queue.
type Queue struct {
	Name     string
	Messages int64 // ready, unacknowledged, and dead but not yet where they are led
	Dead     int64 // the last of these
}

// Parked is what can be seen of one quarantined message.
type Parked struct {
	Queue      string
	MessageID  string // "" when the body has none
	Type       string // "" when the body has none
	TransferID string // "" when the body names none
	Reason     string // why it was given up, "" when its headers do not say
}

// Broker shows what the broker holds. Looking must not consume anything.
type Broker interface {
	Queues(context.Context) ([]Queue, error)
	// Parked calls visit for each message of a quarantine queue that was there when the call began.
	Parked(ctx context.Context, queue string, visit func(Parked)) error
}

// Sources are what Verify reads.
type Sources struct {
	Account  *pgx.Conn
	Transfer *pgx.Conn
	Broker   Broker
}

// Verify checks every invariant once. An error means that it could not look, not that one is broken. A quarantine that cannot be
// read is no error: the report says so, and which checks could not be judged without it.
func Verify(ctx context.Context, from Sources) (Report, error) {
	report := Report{At: time.Now().UTC(), Counts: Counts{Transfers: map[string]int64{}}}

	before, err := look(ctx, from)
	if err != nil {
		return report, err
	}
	parked, quarantine := explained(ctx, from.Broker, before.queues, &report)
	if err := ctx.Err(); err != nil {
		return report, err
	}
	settled, lost, err := readDatabases(ctx, from, parked, &quarantine, &report)
	if err != nil {
		return report, err
	}
	// The two databases cannot be read at one instant. They tell one story only if nothing moved from before the first was
	// read until after the second was.
	after, err := look(ctx, from)
	if err != nil {
		return report, err
	}
	report.Counts.InQueues, report.Counts.InOutboxes = after.inQueues, after.inOutboxes
	report.Quiet = before.still(after)
	for _, check := range []*Check{&settled, &lost} {
		switch {
		case !report.Quiet:
			check.leave(after.traffic())
		case report.Unread != nil:
			check.leave("a transfer may wait for a message in a quarantine that could not be read")
		}
	}
	report.Checks = append(report.Checks, settled, lost, quarantine)
	report.finish()
	return report, nil
}

// readDatabases counts, notes what the outboxes have set aside, and judges all that one database tells alone. What the two of them tell
// together, settled and lost, is returned: it holds only if nothing moved while they were read, which the caller has to see.
func readDatabases(ctx context.Context, from Sources, parked map[string]bool, quarantine *Check, report *Report) (settled, lost Check, err error) {
	account, err := snapshot(ctx, from.Account)
	if err != nil {
		return settled, lost, fmt.Errorf("reading account's database: %w", err)
	}
	defer rollback(account)
	transfer, err := snapshot(ctx, from.Transfer)
	if err != nil {
		return settled, lost, fmt.Errorf("reading transfer's database: %w", err)
	}
	defer rollback(transfer)

	if err := count(ctx, account, transfer, &report.Counts); err != nil {
		return settled, lost, err
	}
	for _, database := range []pgx.Tx{account, transfer} {
		if err := refused(ctx, database, quarantine, parked); err != nil {
			return settled, lost, fmt.Errorf("reading an outbox: %w", err)
		}
	}
	for _, of := range []struct {
		database pgx.Tx
		checks   []func(context.Context, pgx.Tx) (Check, error)
	}{
		{account, []func(context.Context, pgx.Tx) (Check, error){conserved, balanced, bookedOnce, legsMatchEntries}},
		{transfer, []func(context.Context, pgx.Tx) (Check, error){statusFollowsFacts, countsAddUp}},
	} {
		for _, check := range of.checks {
			result, err := check(ctx, of.database)
			if err != nil {
				return settled, lost, fmt.Errorf("checking %q: %w", result.Name, err)
			}
			report.Checks = append(report.Checks, result)
		}
	}
	settled, lost, err = compare(ctx, account, transfer, parked)
	if err != nil {
		return settled, lost, fmt.Errorf("comparing legs and transfers: %w", err)
	}
	return settled, lost, nil
}

// Quarantine says whether a queue holds messages that were given up: the parking lot, one that another service has of its own, or an
// error queue.
func Quarantine(queue string) bool {
	return strings.HasSuffix(queue, ".dead-letters") || strings.HasSuffix(queue, "_error")
}

// motion is what shows whether messages move: how many are on their way, and how many each outbox has ever taken. Every message that
// is handled, and every transfer that is accepted, leaves something in an outbox, if only for a moment.
type motion struct {
	queues               []Queue
	inQueues, inOutboxes int64
	sent                 [2]int64 // the last id of account's and of transfer's outbox
}

// still says whether nothing was on its way and nothing moved between two looks.
func (m motion) still(later motion) bool {
	return m.inQueues+m.inOutboxes+later.inQueues+later.inOutboxes == 0 && m.sent == later.sent
}

// traffic says what is on its way. A message that is dead in its queue moves on within milliseconds, or stays for good when its target is
// missing or the broker's dead-lettering has broken down: that is the one kind of traffic that waiting may not end.
func (m motion) traffic() string {
	said := fmt.Sprintf("traffic is running: %d messages are on their way", m.inQueues+m.inOutboxes)
	for _, queue := range m.queues {
		if queue.Dead > 0 {
			said += fmt.Sprintf("; %d of them are dead-lettering in %s, which the broker tries again every 3 minutes: "+
				"when they stay longer, see \"Dead-lettering stands still\" in docs/reference/runbooks.md", queue.Dead, queue.Name)
		}
	}
	return said
}

func look(ctx context.Context, from Sources) (motion, error) {
	queues, err := from.Broker.Queues(ctx)
	if err != nil {
		return motion{}, fmt.Errorf("reading the queues: %w", err)
	}
	m := motion{queues: queues}
	for _, queue := range queues {
		if !Quarantine(queue.Name) {
			m.inQueues += queue.Messages
		}
	}
	for i, conn := range []*pgx.Conn{from.Account, from.Transfer} {
		var waiting int64
		err := conn.QueryRow(ctx, `select coalesce(pg_sequence_last_value(pg_get_serial_sequence('outbox', 'id')::regclass), 0),
			(select count(*) from outbox where set_aside_at is null)`).Scan(&m.sent[i], &waiting)
		if err != nil {
			return motion{}, fmt.Errorf("reading an outbox: %w", err)
		}
		m.inOutboxes += waiting
	}
	return m, nil
}

func terminal(status string) bool {
	return status == "COMPLETED" || status == "REJECTED" || status == "REFUNDED"
}

// snapshot opens a transaction that sees one instant of its database.
func snapshot(ctx context.Context, conn *pgx.Conn) (pgx.Tx, error) {
	return conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
}

func rollback(tx pgx.Tx) { _ = tx.Rollback(context.Background()) }

func count(ctx context.Context, account, transfer pgx.Tx, counts *Counts) error {
	const ofAccount = `select (select count(*) from accounts), (select count(*) from entries), (select count(*) from inbox),
		(select count(*) from outbox where set_aside_at is not null)`
	if err := account.QueryRow(ctx, ofAccount).Scan(&counts.Accounts, &counts.Entries, &counts.Processed, &counts.SetAside); err != nil {
		return fmt.Errorf("counting in account's database: %w", err)
	}
	const ofTransfer = `select (select count(*) from inbox), (select count(*) from outbox where set_aside_at is not null)`
	var processed, setAside int64
	if err := transfer.QueryRow(ctx, ofTransfer).Scan(&processed, &setAside); err != nil {
		return fmt.Errorf("counting in transfer's database: %w", err)
	}
	counts.Processed += processed
	counts.SetAside += setAside

	rows, err := transfer.Query(ctx, `select status, count(*) from transfers group by status`)
	if err != nil {
		return fmt.Errorf("counting transfers: %w", err)
	}
	var status string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&status, &n}, func() error { counts.Transfers[status] = n; return nil })
	if err != nil {
		return fmt.Errorf("counting transfers: %w", err)
	}
	return nil
}

// refused notes the outgoing messages that the broker refused until they were set aside, and the transfers that wait for them.
func refused(ctx context.Context, tx pgx.Tx, check *Check, waiting map[string]bool) error {
	rows, err := tx.Query(ctx, `select correlation_id, message_id, type, coalesce(last_error, '') from outbox where set_aside_at is not null order by id`)
	if err != nil {
		return err
	}
	var transfer, message, kind, reason string
	_, err = pgx.ForEachRow(rows, []any{&transfer, &message, &kind, &reason}, func() error {
		check.offend("message %s (%s) of transfer %s is set aside in the outbox, see \"bank outbox\": %s", message, kind, transfer, reason)
		waiting[strings.ToLower(transfer)] = true
		return nil
	})
	return err
}

// moves says whether a message of this type can move a transfer on.
func moves(messageType string) bool {
	return contract.MustHaveReader(messageType) &&
		(strings.HasPrefix(messageType, "Transfers.Transfer.") || strings.HasPrefix(messageType, "Accounts.Account."))
}

// explained looks at every quarantined message: each must say why it was given up. It returns the transfers that wait for one of
// them. A quarantine that cannot be read does not keep it from looking into the others.
func explained(ctx context.Context, broker Broker, queues []Queue, report *Report) (map[string]bool, Check) {
	check := Check{Name: "quarantine", Promise: "every quarantined message says why it is there", Verdict: Held}
	transfers := map[string]bool{}
	reasons := map[string]int{}
	for _, queue := range queues {
		if !Quarantine(queue.Name) {
			continue
		}
		err := broker.Parked(ctx, queue.Name, func(message Parked) {
			report.Counts.Quarantined++
			if moves(message.Type) {
				transfers[strings.ToLower(message.TransferID)] = true
			}
			if message.Reason == "" {
				check.offend("%s: message %q does not say why it is there", queue.Name, message.MessageID)
			}
			reasons[queue.Name+" "+cmp.Or(message.Reason, "without a reason")]++
		})
		if err != nil {
			report.Unread = errors.Join(report.Unread, err)
		}
	}
	if report.Unread != nil && check.Verdict == Held {
		check.leave("could not be read: " + strings.ReplaceAll(report.Unread.Error(), "\n", "; "))
		return transfers, check
	}
	var parts []string
	for reason, n := range reasons {
		parts = append(parts, fmt.Sprintf("%s: %d", reason, n))
	}
	sort.Strings(parts)
	check.Detail = strings.Join(parts, ", ")
	if check.Detail == "" {
		check.Detail = "the quarantines are empty"
	}
	return transfers, check
}
