package main

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"time"

	"example.com/banking/pkg/service"
	"example.com/banking/services/console/runs"
	"example.com/banking/services/console/upstream"
	"example.com/banking/services/console/watch"
)

const serviceName = "console"

//go:embed openapi.yaml
var openAPI []byte

// app is the service, put together and not started.
type app struct {
	http       *service.HTTP
	upstreams  []*upstream.Upstream
	components []service.Component
	grace      time.Duration
	log        *slog.Logger
}

// run is the service from configuration to clean stop.
func run(ctx context.Context, cfg config, log *slog.Logger) error {
	a, err := newApp(cfg, log)
	if err != nil {
		return err
	}
	return a.run(ctx)
}

// run starts the components and stops them when ctx ends.
func (a *app) run(ctx context.Context) error {
	for _, u := range a.upstreams {
		defer u.Close()
	}
	return service.Run(ctx, a.grace, a.log, a.components...)
}

func newApp(cfg config, log *slog.Logger) (*app, error) {
	account, err := upstream.New("account", cfg.AccountURL)
	if err != nil {
		return nil, err
	}
	transfer, err := upstream.New("transfer", cfg.TransferURL)
	if err != nil {
		return nil, err
	}
	management, err := upstream.New("RabbitMQ", cfg.ManagementURL)
	if err != nil {
		return nil, err
	}
	upstreams := []*upstream.Upstream{account, transfer, management}
	var keeper *upstream.Upstream
	if cfg.ControlURL != "" {
		if keeper, err = upstream.New("the bank's keeper", cfg.ControlURL); err != nil {
			return nil, err
		}
		upstreams = append(upstreams, keeper)
	}
	added, err := cfg.others()
	if err != nil {
		return nil, fmt.Errorf("SERVICES: wanted %w", err)
	}
	var others []*upstream.Upstream
	for _, o := range added {
		u, err := upstream.New(o.name, o.address)
		if err != nil {
			return nil, err
		}
		others = append(others, u)
	}
	upstreams = append(upstreams, others...)
	bank := &watch.Bank{Account: account, Transfer: transfer, Management: management, Others: others, Vhost: cfg.Vhost, AdminToken: cfg.AdminToken}
	var hub *watch.Hub
	exercised := runs.New(runs.Config{Keeper: keeper, Token: cfg.AdminToken, Look: lookAround, Logger: log,
		Poke: func(topics ...string) { hub.Poke(topics...) }})
	hub = watch.NewHub(watch.Config{Logger: log, Find: func(topic string) (watch.Source, bool) {
		if source, ok := exercised.Find(topic); ok {
			return source, true
		}
		return bank.Find(topic)
	}})

	// It is ready when it listens: what it watches may be away, and that is what it is there to show.
	server, err := service.NewHTTP(service.HTTPConfig{
		Addr:       cfg.HTTPAddr,
		AdminToken: cfg.AdminToken,
		OpenAPI:    openAPI,
		Grace:      cfg.ShutdownGrace,
		Logger:     log,
	})
	if err != nil {
		return nil, err
	}
	sessions := newSessions(cfg.AdminToken, time.Now)
	for _, o := range added {
		sessions.others = append(sessions.others, o.name)
	}
	server.Echo.Pre(secureHeaders)
	questions, err := newInterviewPages()
	if err != nil {
		return nil, err
	}
	newFiles().register(server.Echo, func() { hub.Expect(firstTopics) })
	(&events{hub: hub, sessions: sessions}).register(server.Echo)
	sessions.register(server.Echo)
	(&policyPage{}).register(server.Echo)
	questions.register(server.Echo)
	(&exercisePages{runs: exercised, sessions: sessions, log: log}).register(server.Echo)
	(&api{account: account, transfer: transfer, services: bank.Services(), token: cfg.AdminToken, sessions: sessions, hub: hub}).register(server.Echo)

	// Stopped in the reverse order: pages are told first, what runs is put back, and then nothing is asked any more.
	return &app{
		http: server, upstreams: upstreams, grace: cfg.ShutdownGrace, log: log,
		components: []service.Component{
			{Name: "hub", Run: hub.Run},
			{Name: "exercises", Run: exercised.Run},
			{Name: "http", Run: server.Run},
		},
	}, nil
}
