package invariants

import (
	"context"
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
	Messages int64 // ready and unacknowledged
}

// Parked is what can be seen of one quarantined message.
type Parked struct {
	Queue      string
	MessageID  string // "" when the body has none
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

// Verify checks every invariant once. An error means that it could not look, not that one is broken.
func Verify(ctx context.Context, from Sources) (Report, error) {
	report := Report{At: time.Now().UTC(), Counts: Counts{Transfers: map[string]int64{}}}

	// What is on its way is counted before the databases are read: a message that moves meanwhile then makes the report say
	// "not judged", and never hides a loss.
	queues, err := from.Broker.Queues(ctx)
	if err != nil {
		return report, fmt.Errorf("reading the queues: %w", err)
	}
	for _, queue := range queues {
		if !Quarantine(queue.Name) {
			report.Counts.InQueues += queue.Messages
		}
	}
	parked, quarantine, err := explained(ctx, from.Broker, queues, &report.Counts)
	if err != nil {
		return report, fmt.Errorf("looking into the quarantines: %w", err)
	}

	account, err := snapshot(ctx, from.Account)
	if err != nil {
		return report, fmt.Errorf("reading account's database: %w", err)
	}
	defer rollback(account)
	transfer, err := snapshot(ctx, from.Transfer)
	if err != nil {
		return report, fmt.Errorf("reading transfer's database: %w", err)
	}
	defer rollback(transfer)

	if err := count(ctx, account, transfer, &report.Counts); err != nil {
		return report, err
	}
	if report.Counts.SetAside > 0 {
		quarantine.offend("%d outbox rows are set aside: the broker refuses them", report.Counts.SetAside)
	}
	var open int64
	for status, n := range report.Counts.Transfers {
		if !terminal(status) {
			open += n
		}
	}
	waiting := report.Counts.InOutboxes + report.Counts.InQueues
	report.Quiet = waiting == 0

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
				return report, fmt.Errorf("checking %q: %w", result.Name, err)
			}
			report.Checks = append(report.Checks, result)
		}
	}
	settled, lost, err := compare(ctx, account, transfer, parked)
	if err != nil {
		return report, fmt.Errorf("comparing legs and transfers: %w", err)
	}
	if !report.Quiet {
		for _, check := range []*Check{&settled, &lost} {
			*check = Check{Name: check.Name, Promise: check.Promise, Verdict: NotJudged,
				Detail: fmt.Sprintf("%d messages are on their way, %d transfers open", waiting, open)}
		}
	}
	report.Checks = append(report.Checks, settled, lost, quarantine)
	report.finish()
	return report, nil
}

// Quarantine says whether a queue holds messages that were given up.
func Quarantine(queue string) bool {
	return queue == contract.ParkingLot || strings.HasSuffix(queue, "_error")
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
		(select count(*) from outbox where set_aside_at is null), (select count(*) from outbox where set_aside_at is not null)`
	if err := account.QueryRow(ctx, ofAccount).Scan(&counts.Accounts, &counts.Entries, &counts.Processed,
		&counts.InOutboxes, &counts.SetAside); err != nil {
		return fmt.Errorf("counting in account's database: %w", err)
	}
	const ofTransfer = `select (select count(*) from inbox),
		(select count(*) from outbox where set_aside_at is null), (select count(*) from outbox where set_aside_at is not null)`
	var processed, waiting, setAside int64
	if err := transfer.QueryRow(ctx, ofTransfer).Scan(&processed, &waiting, &setAside); err != nil {
		return fmt.Errorf("counting in transfer's database: %w", err)
	}
	counts.Processed += processed
	counts.InOutboxes += waiting
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

// explained looks at every quarantined message: each must say why it was given up. It returns the transfers that wait for one of
// them.
func explained(ctx context.Context, broker Broker, queues []Queue, counts *Counts) (map[string]bool, Check, error) {
	check := Check{Name: "quarantine", Promise: "every quarantined message says why it is there", Verdict: Held}
	transfers := map[string]bool{}
	reasons := map[string]int{}
	for _, queue := range queues {
		if !Quarantine(queue.Name) {
			continue
		}
		err := broker.Parked(ctx, queue.Name, func(message Parked) {
			counts.Quarantined++
			transfers[strings.ToLower(message.TransferID)] = true
			if message.Reason == "" {
				check.offend("%s: message %q does not say why it is there", queue.Name, message.MessageID)
				return
			}
			reasons[queue.Name+" "+message.Reason]++
		})
		if err != nil {
			return nil, check, err
		}
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
	return transfers, check, nil
}
