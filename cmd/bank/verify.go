package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/banking/internal/invariants"
)

// verifyCommand checks the invariants of the whole system.
type verifyCommand struct {
	Wait time.Duration `default:"15s" help:"Wait so long for traffic to end, to judge what only a quiet system can show; and a minute longer for a quarantine that somebody else looks into. 0s judges at once."`
}

var errBroken = errors.New("an invariant is broken")

func (c *verifyCommand) Run(ctx context.Context, to *endpoints, out *output) error {
	report, err := verify(ctx, to, c.Wait)
	if err != nil {
		return err
	}
	if out.json {
		if err := out.document(report); err != nil {
			return err
		}
	} else {
		printReport(out, report)
	}
	if !report.OK {
		return errBroken
	}
	return nil
}

// verify checks the invariants of a system that may still have to come to rest. The broker's count of messages being handled is a few seconds
// old, so that a quiet system is believed to be broken only when it stays so.
func verify(ctx context.Context, to *endpoints, wait time.Duration) (invariants.Report, error) {
	if err := to.need("ACCOUNT_DATABASE_URL", "TRANSFER_DATABASE_URL"); err != nil {
		return invariants.Report{}, err
	}
	b, err := newBroker(to)
	if err != nil {
		return invariants.Report{}, err
	}
	sources := invariants.Sources{Broker: newQuarantines(b, to)}
	for _, database := range []struct {
		name string
		url  string
		into **pgx.Conn
	}{{"account", to.AccountDatabaseURL, &sources.Account}, {"transfer", to.TransferDatabaseURL, &sources.Transfer}} {
		conn, err := pgx.Connect(ctx, database.url)
		if err != nil {
			return invariants.Report{}, fmt.Errorf("connecting to %s's database: %w", database.name, err)
		}
		defer conn.Close(context.WithoutCancel(ctx))
		*database.into = conn
	}
	return lookUntilQuiet(ctx, wait, func() (invariants.Report, error) { return invariants.Verify(ctx, sources) })
}

// lookUntilQuiet looks until the system is quiet and everything holds, the last time when the wait is over: one look may take longer than
// all of it.
func lookUntilQuiet(ctx context.Context, wait time.Duration, look func() (invariants.Report, error)) (invariants.Report, error) {
	deadline, waited := time.Now().Add(wait), false
	// To look into a quarantine is in the way of others who want to, so it is done less and less often.
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		last := !time.Now().Before(deadline)
		report, err := look()
		if err != nil || report.OK && report.Quiet && report.Unread == nil {
			return report, err
		}
		if last {
			if waited || wait == 0 || !errors.Is(report.Unread, errOccupied) {
				return report, nil
			}
			waited, deadline = true, time.Now().Add(occupiedWait)
		}
		select {
		case <-time.After(min(pause, time.Until(deadline))):
		case <-ctx.Done():
			return report, ctx.Err()
		}
	}
}

// occupiedWait is how much longer a verification waits for a quarantine that somebody else looks into: to look through ten thousand messages
// takes seconds, and on a busy machine more.
const occupiedWait = time.Minute

func printReport(out *output, report invariants.Report) {
	for _, check := range report.Checks {
		mark := out.good("held      ")
		switch check.Verdict {
		case invariants.Broken:
			mark = out.bad("BROKEN    ")
		case invariants.NotJudged:
			mark = out.faint("not judged")
		}
		fmt.Fprintf(out, "%s  %-13s %s\n", mark, check.Name, check.Promise)
		if check.Detail != "" {
			fmt.Fprintf(out, "            %s\n", out.faint(foreign(check.Detail)))
		}
		for _, offender := range check.Offenders {
			fmt.Fprintf(out, "            ! %s\n", foreign(offender))
		}
		if more := check.Broken - len(check.Offenders); more > 0 {
			fmt.Fprintf(out, "            ! and %d more\n", more)
		}
	}
	counts := report.Counts
	quarantined := fmt.Sprint(counts.Quarantined)
	if report.Unread != nil {
		quarantined = "at least " + quarantined
	}
	fmt.Fprintf(out, "\n%d accounts, %d entries, %d messages processed, %d waiting, %s quarantined\n", counts.Accounts, counts.Entries,
		counts.Processed, counts.InOutboxes+counts.InQueues, quarantined)
	printVerdict(out, report)
}

// printVerdict sums up. What was not judged is no failure, but nobody may take it for held.
func printVerdict(out *output, report invariants.Report) {
	tally := report.Tally()
	line := fmt.Sprintf("%d held", tally[invariants.Held])
	if n := tally[invariants.Broken]; n > 0 {
		line += ", " + out.bad(fmt.Sprintf("%d BROKEN", n))
	}
	n := tally[invariants.NotJudged]
	if n == 0 {
		fmt.Fprintln(out, line)
		return
	}
	why := "when traffic has ended, or let it wait longer for that (--wait)"
	switch {
	case report.Unread == nil && report.Quiet: // waiting changes nothing: what is left unjudged then waits for what was given up
		why = "when the messages that were given up are replayed or discarded: see \"bank parked\" and \"bank outbox\""
	case report.Unread != nil:
		why = "when its services and the broker answer, and nobody else looks into the quarantine or replays from it"
	}
	fmt.Fprintf(out, "%s, %d not judged: to have them judged, run \"bank verify\" again %s\n", line, n, why)
}
