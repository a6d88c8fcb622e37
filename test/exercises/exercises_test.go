// Package exercises runs every exercise on a real bank, with its fault and without it: the second run is the test of the first.
package exercises

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/exercises"
	"example.com/banking/pkg/contract"
)

// Which exercises share a bank, so that they take about the same time: one after another on each, side by side on all.
var groups = [][]int{{1, 2, 3, 4, 5, 6, 7, 11}, {8, 10, 13}, {9, 12}}

func TestGroupsAreComplete(t *testing.T) {
	t.Parallel()
	in := map[int]int{}
	for _, group := range groups {
		for _, number := range group {
			in[number]++
		}
	}
	for _, e := range exercises.All() {
		if in[e.Number] != 1 {
			t.Errorf("exercise %d is run %d times", e.Number, in[e.Number])
		}
	}
}

func TestExercises(t *testing.T) {
	t.Parallel()
	for _, group := range groups {
		t.Run(strings.Trim(strings.ReplaceAll(fmt.Sprint(group), " ", "+"), "[]"), func(t *testing.T) {
			t.Parallel()
			var settings []string
			if group[0] == 9 { // nothing depends on how a bank was started: what an exercise assumes it sees to
				settings = []string{"RETRY_PROFILE=tiered", "MAX_ATTEMPTS=7", "BATCH_SIZE=1", "BREAKER=off", "CONSUMER_CONCURRENCY=2"}
			}
			b := openBank(t, settings...)
			if group[0] == 1 {
				b.expectOrders()
				b.expectStream()
			}
			if group[0] == 9 { // the bank that has the least to do
				b.expectConsole()
			}
			for _, number := range group {
				b.expectPassed(number)
				b.expectNoFault(number)
			}
			b.expectUsual()
			switch group[0] {
			case 8:
				b.expectPutBack()
			case 9:
				b.expectStarted()
				b.expectNoLeftFaults()
				b.expectWithoutKeeper()
			}
		})
	}
}

// expectPassed runs an exercise as it is meant.
func (b *bank) expectPassed(number int) {
	b.t.Helper()
	events, passed := b.run(number, nil, "--outage", "5s")
	checks := map[exercises.Proof]int{}
	for _, e := range events {
		if e.Kind == exercises.Checked && e.OK != nil && *e.OK {
			checks[e.Proves]++
		}
	}
	if !passed || checks[exercises.TheFault] == 0 || checks[exercises.TheRecovery] == 0 || checks[exercises.TheInvariants] != 1 {
		b.t.Errorf("exercise %d: passed %v with the checks %v\n%s", number, passed, checks, told(events))
	}
	if n := len(events); n > 0 {
		b.t.Logf("exercise %d took %s", number, events[n-1].At.Sub(events[0].At))
	}
}

// expectNoFault runs everything of an exercise but its fault. It must notice, and leave a bank in which everything holds.
func (b *bank) expectNoFault(number int) {
	b.t.Helper()
	events, passed := b.run(number, nil, "--without-fault", "--patience", "1s", "--outage", "1s")
	n := len(events)
	if passed || n == 0 || events[n-1].Kind != exercises.Ended || events[n-1].Reason != exercises.NoFault {
		b.t.Errorf("exercise %d without its fault: passed %v\n%s", number, passed, told(events))
		return
	}
	missed := false
	for _, e := range events {
		if e.Kind != exercises.Checked {
			continue
		}
		missed = missed || e.Proves == exercises.TheFault && !*e.OK
		if e.Proves == exercises.TheInvariants && !*e.OK || e.Proves == exercises.TheRecovery && missed {
			b.t.Errorf("exercise %d without its fault: %s\n%s", number, e.Text, told(events))
		}
	}
	if !missed {
		b.t.Errorf("exercise %d without its fault: no proof has failed\n%s", number, told(events))
	}
}

// expectPutBack presses Ctrl-C while the database is away, and kills another run outright.
func (b *bank) expectPutBack() {
	b.t.Helper()
	events, passed := b.run(8, when("So it stays", syscall.SIGINT), "--outage", "10m")
	if n := len(events); passed || n == 0 || events[n-1].Reason != exercises.Interrupted || !strings.Contains(events[n-1].Text, "everything is put back") {
		b.t.Errorf("interrupted: passed %v\n%s", passed, told(events))
	}
	b.expectUsual()

	// And who had no time to put anything back leaves it to the next: also the database in which that one looks for its lock.
	if events, passed = b.run(8, when("So it stays", syscall.SIGKILL), "--outage", "10m"); passed {
		b.t.Errorf("killed: %s", told(events))
	}
	b.expectPassed(5)
	b.expectUsual()
	if events, passed = b.run(7, when("The request to debit is held", syscall.SIGKILL)); passed {
		b.t.Errorf("killed: %s", told(events))
	}
	b.expectPassed(5)
	b.expectUsual()
}

// expectStarted presses Ctrl-C while RabbitMQ is being stopped, which takes a moment.
func (b *bank) expectStarted() {
	b.t.Helper()
	events, passed := b.run(12, when("RabbitMQ is stopped.", syscall.SIGINT))
	if n := len(events); passed || n == 0 || events[n-1].Reason != exercises.Interrupted || !strings.Contains(events[n-1].Text, "everything is put back") {
		b.t.Errorf("interrupted: passed %v\n%s", passed, told(events))
	}
	b.expectUsual()
}

// expectNoLeftFaults kills a run amid its storm. What has failed oftener by then than the usual settings allow must not meet its faults
// again under the next run's.
func (b *bank) expectNoLeftFaults() {
	b.t.Helper()
	if events, passed := b.run(10, when("They fail, all together.", syscall.SIGKILL)); passed {
		b.t.Errorf("killed: %s", told(events))
	}
	url := b.endpoint("TRANSFER_URL")
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		metrics, err := io.ReadAll(b.ask(http.MethodGet, url+"/metrics"))
		if err != nil {
			b.t.Fatal(err)
		}
		if failures(string(metrics)) >= 4*200 { // of each four
			break
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the storm of a killed run does not go on:\n%s", metrics)
		}
	}
	b.expectPassed(4)
	b.expectUsual()
}

// failures is how many attempts have failed with a timeout.
func failures(metrics string) (sum int) {
	for line := range strings.Lines(metrics) {
		if series, value, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(series, "messaging_failures_total{") && strings.Contains(series, `class="TIMEOUT"`) {
			n, _ := strconv.Atoi(value)
			sum += n
		}
	}
	return sum
}

// expectWithoutKeeper runs exercises as in a composition, where nobody can be asked to stop or start a process.
func (b *bank) expectWithoutKeeper() {
	b.t.Helper()
	for _, name := range []string{"account", "transfer"} {
		b.command(nil, "service", "restart", name, "--set", "FAULTS=on")
	}
	b.env = []string{"CONTROL_URL="}
	events, passed := b.run(2, nil)
	if passed || !unfit(events, "make up") {
		b.t.Errorf("exercise 2 without the keeper: %s", told(events))
	}
	if events, passed = b.run(3, nil); passed || !unfit(events, "Start it with MAX_ATTEMPTS=3 RETRY_PROFILE=lap") {
		b.t.Errorf("exercise 3 in the tiered profile, without the keeper: %s", told(events))
	}
	b.expectPassed(9) // with fault points, and a supervisor that starts again what has died
	b.expectAlone()
	b.env = nil
	for _, name := range []string{"account", "transfer"} {
		b.command(nil, "service", "restart", name)
	}
	b.expectUsual()
}

// unfit says whether a run has ended because of something that the bank lacks, and says so.
func unfit(events []exercises.Event, says string) bool {
	n := len(events)
	return n > 0 && events[n-1].Reason == exercises.Unfit && strings.Contains(events[n-1].Text, says)
}

// expectAlone has a second consumer beside account's, as another replica would have it.
func (b *bank) expectAlone() {
	b.t.Helper()
	conn, err := amqp.Dial(b.endpoint("AMQP_URL"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	channel, err := conn.Channel()
	if err == nil {
		_, err = channel.Consume(contract.TransferRequestedQueue, "", false, false, false, false, nil)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	if events, passed := b.run(6, nil); passed || !unfit(events, "2 processes read "+contract.TransferRequestedQueue) {
		b.t.Errorf("exercise 6 with two replicas: %s", told(events))
	}
}
