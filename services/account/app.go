package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/contract/topology"
	"example.com/banking/pkg/fault/control"
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/janitor"
	"example.com/banking/pkg/journal"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/quarantine"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/service"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

//go:embed openapi.yaml
var openAPI []byte

// document describes all that is served: the service's own routes and those that packages bring along.
func document() ([]byte, error) {
	return service.MergeOpenAPI(openAPI, quarantine.OpenAPI, control.OpenAPI)
}

// run is the service from start to stop. It returns when ctx has ended and everything has stopped, or when a part of it cannot
// go on.
func run(ctx context.Context, cfg config, log *slog.Logger) error {
	a, err := newApp(ctx, cfg, log)
	if err != nil {
		return err
	}
	return a.run(ctx)
}

// app is the wired service.
type app struct {
	cfg        config
	log        *slog.Logger
	pool       *pgxpool.Pool
	server     *service.HTTP
	components []service.Component
}

// newApp wires the service, from top to bottom. Nothing runs yet, but the listen address is taken.
func newApp(ctx context.Context, cfg config, log *slog.Logger) (*app, error) {
	migrations, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, fmt.Errorf("open migrations: %w", err)
	}
	registry := service.NewRegistry()

	// The database.
	pool, err := service.OpenPool(ctx, cfg.DatabaseURL, serviceName, log)
	if err != nil {
		return nil, err
	}
	schema := service.NewSchema(pool, migrations, log)
	faults := control.New(control.Config{On: bool(cfg.Faults), Pool: pool, Migrated: schema.Migrated(), Logger: log})
	failures := journal.New(journal.Config{Pool: pool, Registerer: registry, Logger: log, StopGrace: cfg.ShutdownGrace / 60})
	retention := janitor.Config{Pool: pool, Retention: cfg.InboxRetention, Logger: log}

	// The broker, and the road out: what a transaction leaves in the outbox is relayed to the exchange.
	metrics := messaging.NewMetrics()
	registry.MustRegister(metrics)
	session := messaging.NewSession(messaging.SessionConfig{
		URLs:     cfg.AMQPURLs,
		Name:     serviceName,
		Topology: topology.Account(messaging.QueueType(cfg.QueueType)),
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

	// The road in: inbox, ledger and outbox in one transaction for each batch that a queue yields.
	consumers := map[string]*messaging.Consumer{}
	for _, queue := range requestQueues {
		handler := inbox.Handler(inbox.Config[command]{
			Pool:        pool,
			Consumer:    queue.name,
			Outbox:      relay,
			Parse:       queue.read,
			Begin:       func() inbox.Work[command] { return newWork(time.Now) },
			Classifiers: []retry.Classifier{classify},
			Registerer:  registry,
			Faults:      faults.Points(),
		})
		if consumers[queue.name], err = session.NewConsumer(consumerConfig(cfg, queue, handler, pool, faults.Points(), failures.Observe)); err != nil {
			pool.Close()
			return nil, fmt.Errorf("consumer of %s: %w", queue.name, err)
		}
	}

	// The way back: what was given up, in an operator's hands.
	parked := quarantine.New(quarantineConfig(cfg, quarantine.Config{Session: session, Pool: pool, Registerer: registry, Logger: log}))

	// The edge.
	described, err := document()
	if err != nil {
		pool.Close()
		return nil, err
	}
	server, err := service.NewHTTP(service.HTTPConfig{
		Addr:       cfg.HTTPAddr,
		AdminToken: cfg.AdminToken,
		OpenAPI:    described,
		Checks:     []service.Check{{Name: "database", Ready: schema.Ready}, {Name: "broker", Ready: session.Ready}},
		Registry:   registry,
		Started:    schema.Migrated(),
		Problem:    problem,
		Grace:      cfg.ShutdownGrace,
		Logger:     log,
	})
	if err != nil {
		pool.Close()
		return nil, err
	}
	accounts := &store{pool: pool}
	(&api{store: accounts, clock: time.Now}).routes(server.Echo)
	faults.Register(server.Admin)
	parked.Register(server.Admin)
	check := newConservation(accounts, registry, log)

	// Stopped in reverse order: what takes in work first, and the session last, because everything else ends through it.
	return &app{cfg: cfg, log: log, pool: pool, server: server, components: []service.Component{
		{Name: "schema", Run: schema.Run},
		{Name: "session", Run: session.Run},
		faults.Component(),
		{Name: "relay", Run: relay.Run, After: faults.Loaded()},
		{Name: "inbox janitor", Run: inbox.NewJanitor(retention).Run, After: schema.Migrated()},
		{Name: "journal janitor", Run: journal.NewJanitor(retention).Run, After: schema.Migrated()},
		{Name: "journal", Run: failures.Run, After: schema.Migrated()},
		{Name: "quarantine", Run: parked.Run, After: schema.Migrated()},
		{Name: "conservation", Run: check.run, After: schema.Migrated()},
		{Name: "consumers", Run: together(consumers), After: faults.Loaded()},
		{Name: "http", Run: server.Run},
	}}, nil
}

// run runs the app until ctx ends.
func (a *app) run(ctx context.Context) error {
	defer service.ClosePool(a.pool, a.cfg.ShutdownGrace/20)
	return service.Run(ctx, a.cfg.ShutdownGrace, a.log, a.components...)
}

// together runs all consumers as one component, so that they stop at the same time: their time to finish counts once.
func together(consumers map[string]*messaging.Consumer) func(context.Context) error {
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		for queue, consumer := range consumers {
			group.Go(func() error {
				if err := consumer.Run(ctx); err != nil {
					return fmt.Errorf("consumer of %s: %w", queue, err)
				}
				return nil
			})
		}
		return group.Wait()
	}
}
