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
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/service"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

//go:embed openapi.yaml
var openAPI []byte

// run is the service, wired from top to bottom. It returns when ctx has ended and everything has stopped, or when a part of it
// cannot go on.
func run(ctx context.Context, cfg config, log *slog.Logger) error {
	migrations, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return fmt.Errorf("open migrations: %w", err)
	}
	registry := service.NewRegistry()

	// The database.
	pool, err := service.OpenPool(ctx, cfg.DatabaseURL, serviceName, log)
	if err != nil {
		return err
	}
	defer pool.Close()
	schema := service.NewSchema(pool, migrations, log)
	janitor := inbox.NewJanitor(inbox.JanitorConfig{Pool: pool, Retention: cfg.InboxRetention, Logger: log})

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
	})

	// The road in: queue, inbox, ledger and outbox in one transaction.
	components := []service.Component{
		{Name: "schema", Run: schema.Run},
		{Name: "session", Run: session.Run},
		{Name: "relay", Run: relay.Run, After: schema.Migrated()},
		{Name: "janitor", Run: janitor.Run, After: schema.Migrated()},
	}
	for _, queue := range requestQueues {
		consumer, err := session.NewConsumer(consumerConfig(cfg, queue, inbox.Handler(inbox.Config[command]{
			Pool:       pool,
			Consumer:   queue.name,
			Outbox:     relay,
			Parse:      queue.read,
			Begin:      func() inbox.Work[command] { return newWork(time.Now) },
			Registerer: registry,
		})))
		if err != nil {
			return fmt.Errorf("consumer of %s: %w", queue.name, err)
		}
		components = append(components, service.Component{Name: queue.name, Run: consumer.Run, After: schema.Migrated()})
	}

	// The edge.
	server, err := service.NewHTTP(service.HTTPConfig{
		Addr:       cfg.HTTPAddr,
		AdminToken: cfg.AdminToken,
		OpenAPI:    openAPI,
		Checks:     []service.Check{{Name: "database", Ready: schema.Ready}, {Name: "broker", Ready: session.Ready}},
		Registry:   registry,
		Started:    schema.Migrated(),
		Problem:    problem,
		Grace:      cfg.ShutdownGrace,
		Logger:     log,
	})
	if err != nil {
		return err
	}
	(&api{store: &store{pool: pool}, clock: time.Now}).routes(server.Echo)
	components = append(components, service.Component{Name: "http", Run: server.Run})

	// Stopped in reverse order: no new work first, and the broker session last, because everything else ends through it.
	return service.Run(ctx, cfg.ShutdownGrace, log, components...)
}
