package servers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/internal/management"
	"example.com/banking/internal/supervise"
)

const adminUser = "admin"

// broker is the RabbitMQ half of a pair. epmd, Erlang's port mapper, is started by us in the foreground: left
// to itself Erlang starts it as a daemon that outlives the broker, and on the standard port it would be shared with other brokers.
type broker struct {
	child, epmd *supervise.Child
}

// StartBroker starts RabbitMQ on its ports and returns when AMQP and the management API answer.
func (s *Servers) StartBroker(ctx context.Context) error {
	began := time.Now()
	dir := filepath.Join(s.cfg.Dir, "rabbitmq")
	logs := filepath.Join(s.cfg.Dir, "log")
	env, err := s.configureBroker(dir)
	if err != nil {
		return err
	}
	if s.broker.epmd, err = s.ensureEPMD(dir, logs, env); err != nil {
		return err
	}
	log := filepath.Join(logs, "rabbitmq.log")
	p := supervise.Process{Name: "rabbitmq", Path: s.programs.rabbitmq, Env: append(env, s.cfg.BrokerEnv...), Dir: dir, Log: log, StopTimeout: 30 * time.Second}
	if s.cfg.Ephemeral {
		p.StopSignal = syscall.SIGKILL // an orderly stop takes 8 s, and the data is thrown away
	}
	if s.broker.child, err = s.sup.Start(p); err != nil {
		return err
	}
	if err := awaitReady(ctx, "RabbitMQ", s.broker.child, log, s.probeBroker); err != nil {
		return err
	}
	if err := s.refuseOldBroker(ctx); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(s.cfg.Log, "RabbitMQ is ready on port %d, its management on %d (%.1f s)\n",
		s.access.AMQPPort, s.access.ManagementPort, time.Since(began).Seconds())
	return nil
}

func (s *Servers) probeBroker(ctx context.Context) error {
	addresses := s.Addresses()
	conn, err := amqp.Dial(addresses.AMQPURL)
	if err != nil {
		return err
	}
	if err := conn.Close(); err != nil {
		return err
	}
	return management.New(addresses.ManagementURL).Get(ctx, "/api/overview", nil)
}

func (s *Servers) ensureEPMD(dir, logs string, env []string) (*supervise.Child, error) {
	if s.broker.epmd != nil {
		select {
		case <-s.broker.epmd.Done():
		default:
			return s.broker.epmd, nil
		}
	}
	return s.sup.Start(supervise.Process{Name: "epmd", Path: s.programs.epmd,
		Args: []string{"-port", strconv.Itoa(s.access.EPMDPort), "-address", "127.0.0.1"},
		Env:  env, Dir: dir, Log: filepath.Join(logs, "epmd.log")})
}

// configureBroker writes the configuration and returns the environment that points the broker to it. Statistics are refreshed
// each second instead of every five, for people and tests that watch queues.
func (s *Servers) configureBroker(dir string) ([]string, error) {
	conf := fmt.Sprintf(`listeners.tcp.1 = 127.0.0.1:%d
management.tcp.ip = 127.0.0.1
management.tcp.port = %d
prometheus.tcp.ip = 127.0.0.1
prometheus.tcp.port = %d
default_user = %s
default_pass = %s
log.console = false
log.file.level = info
collect_statistics_interval = 1000
raft.wal_max_size_bytes = 134217728
max_message_size = 1048576
`, s.access.AMQPPort, s.access.ManagementPort, s.access.PrometheusPort, adminUser, s.access.AdminPassword)
	files := map[string]string{
		"rabbitmq.conf":   conf,
		"advanced.config": "[{rabbit, [{quorum_tick_interval, 1000}]}].\n",
		"enabled_plugins": "[rabbitmq_management,rabbitmq_prometheus].\n",
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return nil, fmt.Errorf("broker configuration: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "home"), 0o700); err != nil {
		return nil, fmt.Errorf("broker home: %w", err)
	}
	return s.brokerEnv(dir), nil
}

// Control is the broker's command line tool, and the environment in which it reaches this broker and no other.
func (s *Servers) Control() (path string, env []string) {
	return filepath.Join(filepath.Dir(s.programs.rabbitmq), "rabbitmqctl"), s.brokerEnv(filepath.Join(s.cfg.Dir, "rabbitmq"))
}

func (s *Servers) brokerEnv(dir string) []string {
	in := func(name string) string { return filepath.Join(dir, name) }
	return []string{
		"PATH=" + searchPath(),
		"LANG=C.UTF-8",
		"HOME=" + in("home"), // of the Erlang cookie
		"ERL_EPMD_PORT=" + strconv.Itoa(s.access.EPMDPort),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_NODENAME=bank@localhost", // a machine's own name may not resolve
		"RABBITMQ_DIST_PORT=" + strconv.Itoa(s.access.DistributionPort),
		"RABBITMQ_CONF_ENV_FILE=" + in("no-env.conf"), // not the one of the system's broker
		"RABBITMQ_CONFIG_FILE=" + in("rabbitmq.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE=" + in("advanced.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + in("enabled_plugins"),
		"RABBITMQ_MNESIA_BASE=" + in("data"),
		"RABBITMQ_LOG_BASE=" + filepath.Join(s.cfg.Dir, "log"),
		// The services and the databases want these cores: schedulers do not spin while they wait for work, and one that sleeps is not woken
		// for what those that are awake can do soon. As in the composition.
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+sbwt none +sbwtdcpu none +sbwtdio none +swt very_high -kernel inet_dist_use_interface {127,0,0,1}",
		// Makes the script replace itself by the Erlang machine instead of waiting for it in a shell: a signal to the
		// child then reaches the broker itself.
		"RUNNING_UNDER_SYSTEMD=true",
	}
}

// StopBroker stops RabbitMQ as an administrator would (for ephemeral servers: at once) and returns when it has ended.
func (s *Servers) StopBroker() error {
	if s.broker.child == nil {
		return nil
	}
	return s.broker.child.Stop()
}

// KillBroker ends RabbitMQ with SIGKILL, once the broker has written down which quorum queues it has.
//
// RabbitMQ answers the declaration of a quorum queue before the queue's entry in its directory has left the process: that
// file is written behind, a second or so later. A broker killed in between forgets the queue's log, and with it messages that it
// confirmed. No client can prevent that, so a test of what clients can prevent has to wait it out.
func (s *Servers) KillBroker() error {
	ctx, cancel := context.WithTimeout(context.Background(), directoryTimeout)
	defer cancel()
	if err := s.awaitQueueDirectory(ctx); err != nil {
		return fmt.Errorf("kill broker: %w", err)
	}
	return s.broker.child.Kill()
}

const directoryTimeout = 20 * time.Second

func (s *Servers) awaitQueueDirectory(ctx context.Context) error {
	var queues []struct {
		VHost string `json:"vhost"`
		Name  string `json:"name"`
		Type  string `json:"type"`
	}
	m := management.New(s.Addresses().ManagementURL)
	if err := m.Get(ctx, "/api/queues?disable_stats=true", &queues); err != nil {
		return err
	}
	directories := filepath.Join(s.cfg.Dir, "rabbitmq", "data", "*", "quorum", "*", "names.dets")
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		paths, err := filepath.Glob(directories)
		if err != nil {
			return fmt.Errorf("find the directory of quorum queues: %w", err)
		}
		var written []byte
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("read the directory of quorum queues: %w", err)
			}
			written = append(written, content...)
		}
		missing := ""
		for _, q := range queues {
			if q.Type == "quorum" && !bytes.Contains(written, []byte(q.VHost+"_"+q.Name)) {
				missing = q.Name
			}
		}
		if missing == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("quorum queue %s is not in the broker's directory: %w", missing, ctx.Err())
		case <-tick.C:
		}
	}
}

// Broker is the RabbitMQ that was started last.
func (s *Servers) Broker() *supervise.Child { return s.broker.child }
