package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/internal/testenv/servers"
)

// slower is what the modelled disk adds to each flush.
const slower = time.Millisecond

var slowDisk = scenario{
	name: "slowdisk",
	about: fmt.Sprintf("The sustained load in five turns on one system: on the disk as it is, and with %s added to every fsync and fdatasync of "+
		"PostgreSQL; last with RabbitMQ's slowed down too. A library in front of both servers' disk does that, and is there in every turn.", slower),
	run: func(ctx context.Context, b *bench) (found result, err error) {
		dir, err := publicFolder()
		if err != nil {
			return found, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		library, err := buildSlowSync(ctx, dir)
		if err != nil {
			return found, err
		}
		postgres, err := newSlowSync(library, filepath.Join(dir, "postgres"))
		if err != nil {
			return found, err
		}
		broker, err := newSlowSync(library, filepath.Join(dir, "rabbitmq"))
		if err != nil {
			return found, err
		}
		cfg := servers.Config{PostgresEnv: postgres.env(), BrokerEnv: broker.env()}
		err = b.withSystemOn(ctx, cfg, func(s *system) (int64, error) { return 0, b.measureSlowDisk(ctx, s, postgres, broker, &found) })
		return found, err
	},
}

func (b *bench) measureSlowDisk(ctx context.Context, s *system, postgres, broker slowSync, found *result) error {
	m, err := b.openMarket(ctx, s)
	if err != nil {
		return err
	}
	fastCommit, err := s.commitTime(ctx)
	if err != nil {
		return err
	}
	if err := postgres.set(slower); err != nil {
		return err
	}
	slowCommit, err := s.commitTime(ctx)
	if err != nil {
		return err
	}
	if slowCommit-fastCommit < slower*9/10 {
		return fmt.Errorf("a commit takes %s instead of %s: PostgreSQL does not notice the slower disk", slowCommit, fastCommit)
	}
	on := func(delay time.Duration) func() (pace, error) {
		return func() (pace, error) {
			if err := postgres.set(delay); err != nil {
				return pace{}, err
			}
			return m.pace(ctx, b.Transfers/2)
		}
	}
	fast, slow, err := takeTurns(on(0), on(slower))
	if err != nil {
		return err
	}
	var fastConfirm, slowConfirm time.Duration
	err = s.withChannel(func(ch *amqp.Channel) (err error) {
		if fastConfirm, err = confirmTime(ctx, ch); err != nil {
			return err
		}
		if err := broker.set(slower); err != nil {
			return err
		}
		slowConfirm, err = confirmTime(ctx, ch)
		return err
	})
	if err == nil && slowConfirm-fastConfirm < slower*9/10 {
		err = fmt.Errorf("a confirm takes %s instead of %s: RabbitMQ does not notice the slower disk", slowConfirm, fastConfirm)
	}
	if err != nil {
		return err
	}
	both, err := on(slower)()
	if err != nil {
		return err
	}
	found.add("one commit, fast disk", inMilliseconds(fastCommit), "ms")
	found.add("one commit, slow disk", inMilliseconds(slowCommit), "ms")
	found.add("one confirm, fast disk", inMilliseconds(fastConfirm), "ms")
	found.add("one confirm, slow disk", inMilliseconds(slowConfirm), "ms")
	found.addPace("fast disk", fast)
	found.addPace("PostgreSQL's disk slow", slow)
	found.addPace("RabbitMQ's as well", both)
	found.add("ratio", slow.rate/fast.rate, "")
	found.add("ratio with RabbitMQ's as well", both.rate/fast.rate, "")
	return errors.Join(postgres.set(0), broker.set(0)) // bank verify need not wait for it
}

// commitTime is the median time of small commits, one after another.
func (s *system) commitTime(ctx context.Context) (time.Duration, error) {
	var method string
	if err := s.pools["account"].QueryRow(ctx, "show wal_sync_method").Scan(&method); err != nil {
		return 0, err
	}
	if method != "fdatasync" && method != "fsync" {
		return 0, missing(fmt.Sprintf("PostgreSQL flushes its log by %s here, which the library does not slow down", method))
	}
	return medianTime(func() error {
		// A message that needs the log flushed, and nothing else: no table is touched.
		_, err := s.pools["account"].Exec(ctx, "select pg_logical_emit_message(true, 'bench', 'x')")
		return err
	})
}

// confirmTime is the median time until a quorum queue has one message on disk.
func confirmTime(ctx context.Context, ch *amqp.Channel) (median time.Duration, err error) {
	queue, err := ch.QueueDeclare("bench-confirm", true, false, false, false, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum})
	if err != nil {
		return 0, err
	}
	defer func() {
		_, failed := ch.QueueDelete(queue.Name, false, false, false)
		err = errors.Join(err, failed)
	}()
	if err := ch.Confirm(false); err != nil {
		return 0, err
	}
	return medianTime(func() error {
		message := amqp.Publishing{Body: []byte("x"), DeliveryMode: amqp.Persistent}
		confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", queue.Name, true, false, message)
		if err != nil {
			return err
		}
		if ok, err := confirm.WaitContext(ctx); err != nil || !ok {
			return fmt.Errorf("confirmed: %v: %w", ok, cmp.Or(err, errors.New("the broker refused the message")))
		}
		return nil
	})
}

// medianTime is how long something takes that is done many times, one after another.
func medianTime(do func() error) (time.Duration, error) {
	var took []time.Duration
	for range 101 {
		began := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

//go:embed slowsync/slowsync.c
var slowSyncSource []byte

// buildSlowSync compiles the library into a folder.
func buildSlowSync(ctx context.Context, dir string) (string, error) {
	compiler, err := exec.LookPath("cc")
	if err != nil || runtime.GOOS != "linux" {
		return "", missing("a library that slows the disk down needs Linux and a C compiler (cc)")
	}
	source, library := filepath.Join(dir, "slowsync.c"), filepath.Join(dir, "slowsync.so")
	if err := os.WriteFile(source, slowSyncSource, 0o644); err != nil {
		return "", err
	}
	compile := exec.CommandContext(ctx, compiler, "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, source, "-ldl")
	if out, err := compile.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile the library that slows the disk down: %w\n%s", err, out)
	}
	return library, nil
}

// slowSync is one server's disk.
type slowSync struct{ library, file string }

// newSlowSync makes the file by which the library is told the delay. It begins with none.
func newSlowSync(library, file string) (slowSync, error) {
	s := slowSync{library, file}
	return s, os.WriteFile(file, make([]byte, 4), 0o644)
}

func (s slowSync) env() []string { return []string{"LD_PRELOAD=" + s.library, "SLOWSYNC=" + s.file} }

// set changes the delay of a running server, from its next flush on. The file is written in place: the servers have it mapped.
func (s slowSync) set(delay time.Duration) error {
	f, err := os.OpenFile(s.file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(binary.NativeEndian.AppendUint32(nil, uint32(delay.Microseconds())), 0)
	return errors.Join(err, f.Close())
}
