package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/fault/control"
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/janitor"
	"example.com/banking/pkg/journal"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/quarantine"
	"example.com/banking/pkg/service"
	"github.com/jackc/pgx/v5/pgxpool"
)

const serviceName = "transfer"

//go:embed migrations/*.sql
var migrationFiles embed.FS

//go:embed openapi.yaml
var openAPI []byte

// document describes all that is served: the service's own routes and those that packages bring along.
func document() ([]byte, error) {
	return service.MergeOpenAPI(openAPI, quarantine.OpenAPI, control.OpenAPI)
}

// app is the service, put together and not started.
type app struct {
	pool       *pgxpool.Pool
	http       *service.HTTP
	components []service.Component
	grace      time.Duration
	log        *slog.Logger
}

// run starts the components and stops them when ctx ends.
func (a *app) run(ctx context.Context) error {
	defer service.ClosePool(a.pool, a.grace/20)
	return service.Run(ctx, a.grace, a.log, a.components...)
}

// run is the service from configuration to clean stop.
func run(ctx context.Context, cfg config, log *slog.Logger) error {
	a, err := newApp(ctx, cfg, log)
	if err != nil {
		return err
	}
	return a.run(ctx)
}

func newApp(ctx context.Context, cfg config, log *slog.Logger) (_ *app, err error) {
	pool, err := service.OpenPool(ctx, cfg.DatabaseURL, serviceName, log)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	defer func() {
		if err != nil {
			pool.Close()
		}
	}()
	registry := service.NewRegistry()
	schema := service.NewSchema(pool, migrations(), log)
	faults := control.New(control.Config{On: bool(cfg.Faults), Pool: pool, Migrated: schema.Migrated(), Logger: log})

	metrics := messaging.NewMetrics()
	registry.MustRegister(metrics)
	session := messaging.NewSession(messaging.SessionConfig{
		URLs:     cfg.AMQPURLs,
		Name:     serviceName,
		Topology: cfg.topology(),
		Logger:   log,
		Metrics:  metrics,
	})
	relay := outbox.New(outbox.Config{
		Pool:       pool,
		Publisher:  session,
		Exchange:   contract.EventsExchange,
		AppID:      serviceName,
		Logger:     log,
		Registerer: registry,
		StopGrace:  cfg.ShutdownGrace / 15,
		Faults:     faults.Points(),
	})
	failures := journal.New(journal.Config{Pool: pool, Registerer: registry, Logger: log, StopGrace: cfg.ShutdownGrace / 60})
	handler := inbox.Handler(inbox.Config[command]{
		Pool:       pool,
		Consumer:   contract.AccountEventsQueue,
		Outbox:     relay,
		Parse:      parseEvent,
		Begin:      func() inbox.Work[command] { return newWork(now) },
		Registerer: registry,
		Faults:     faults.Points(),
	})
	events, err := session.NewConsumer(consumerConfig(cfg, handler, pool, faults.Points(), failures.Observe))
	if err != nil {
		return nil, fmt.Errorf("make consumer: %w", err)
	}
	retention := janitor.Config{Pool: pool, Retention: cfg.InboxRetention, Logger: log}
	sweep := &sweeper{
		pool: pool, outbox: relay, timeout: cfg.SagaTimeout, interval: sweepInterval(cfg.SagaTimeout), batch: 100, now: now, log: log,
		overdue: newOverdue(registry),
	}

	parked := quarantine.New(quarantineConfig(cfg, quarantine.Config{Session: session, Pool: pool, Registerer: registry, Logger: log}))

	described, err := document()
	if err != nil {
		return nil, err
	}
	server, err := service.NewHTTP(service.HTTPConfig{
		Addr:       cfg.HTTPAddr,
		AdminToken: cfg.AdminToken,
		OpenAPI:    described,
		Checks: []service.Check{
			{Name: "database", Ready: pool.Ping},
			{Name: "schema", Ready: schema.Ready},
			{Name: "broker", Ready: session.Ready},
		},
		Registry: registry,
		Started:  schema.Migrated(),
		Problem:  problem,
		Grace:    cfg.ShutdownGrace,
		Logger:   log,
	})
	if err != nil {
		return nil, err
	}
	transfers := &store{pool: pool}
	(&api{store: transfers, intake: newIntake(pool, transfers, relay)}).register(server.Echo)
	faults.Register(server.Admin)
	parked.Register(server.Admin)

	// Started in this order, stopped in the reverse one: first no more requests and events are taken in, then what they have written is
	// sent, and only then does the broker session end.
	return &app{pool: pool, http: server, grace: cfg.ShutdownGrace, log: log, components: []service.Component{
		{Name: "schema", Run: schema.Run},
		{Name: "broker session", Run: session.Run},
		faults.Component(),
		{Name: "outbox relay", Run: relay.Run, After: faults.Loaded()},
		{Name: "inbox janitor", Run: inbox.NewJanitor(retention).Run, After: schema.Migrated()},
		{Name: "journal janitor", Run: journal.NewJanitor(retention).Run, After: schema.Migrated()},
		{Name: "journal", Run: failures.Run, After: schema.Migrated()},
		{Name: "sweeper", Run: sweep.run, After: schema.Migrated()},
		{Name: "quarantine", Run: parked.Run, After: schema.Migrated()},
		{Name: "account events", Run: events.Run, After: faults.Loaded()},
		{Name: "http", Run: server.Run},
	}}, nil
}

func migrations() fs.FS {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return files
}

// now is the time as PostgreSQL keeps it.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
