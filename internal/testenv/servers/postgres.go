package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/banking/internal/supervise"
)

const superuser = "postgres"

// postgres is the PostgreSQL half of a pair.
type postgres struct {
	dir    string          // what the server's user can reach and owns
	user   *supervise.User // nil: the calling user
	child  *supervise.Child
	killed bool // since its last start
}

// placePostgres decides who runs PostgreSQL and where its data lies. The server refuses to run as root, so root hands it to
// another user, and that user may be unable to reach dir, for example in a home folder with mode 0700; then
// the data lies under /var/tmp, and dir/postgres is a link to it.
func placePostgres(dir string) (postgres, error) {
	p := postgres{dir: filepath.Join(dir, "postgres")}
	if os.Geteuid() == 0 {
		who, err := unprivilegedUser()
		if err != nil {
			return postgres{}, err
		}
		p.user = who
	}
	if target, err := filepath.EvalSymlinks(p.dir); err == nil {
		p.dir = target // chosen by an earlier start
	} else if p.user != nil && !reachable(dir, p.user) {
		elsewhere, err := os.MkdirTemp("/var/tmp", "banking-postgres-")
		if err != nil {
			return postgres{}, fmt.Errorf("folder for PostgreSQL: %w", err)
		}
		_ = os.Remove(p.dir) // a link whose target was cleaned away
		if err := os.Symlink(elsewhere, p.dir); err != nil {
			return postgres{}, fmt.Errorf("folder for PostgreSQL: %w", err)
		}
		p.dir = elsewhere
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return postgres{}, fmt.Errorf("folder for PostgreSQL: %w", err)
	}
	if p.user != nil {
		if err := os.Chown(p.dir, int(p.user.UID), int(p.user.GID)); err != nil {
			return postgres{}, fmt.Errorf("folder for PostgreSQL: %w", err)
		}
	}
	return p, nil
}

func unprivilegedUser() (*supervise.User, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &supervise.User{UID: uint32(uid), GID: uint32(gid)}, nil
		}
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and there is neither a user postgres nor a user nobody")
}

// reachable says whether the user may pass through every folder down to dir.
func reachable(dir string, who *supervise.User) bool {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return false
		}
		allowed := info.Mode().Perm()&0o001 != 0
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			switch {
			case stat.Uid == who.UID:
				allowed = info.Mode().Perm()&0o100 != 0
			case stat.Gid == who.GID:
				allowed = info.Mode().Perm()&0o010 != 0
			}
		}
		if !allowed {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// StartPostgres starts PostgreSQL on its port and returns when it answers.
func (s *Servers) StartPostgres(ctx context.Context) error {
	began := time.Now()
	data := filepath.Join(s.pg.dir, "data")
	if _, err := os.Stat(data); errors.Is(err, os.ErrNotExist) {
		if err := s.initdb(ctx, data); err != nil {
			return err
		}
	}
	// The backends of a killed server take a moment to notice. Until the last has gone, a new server refuses to start.
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	err := s.runPostgres(ctx, data)
	for s.pg.killed && errors.Is(err, errEndedEarly) && ctx.Err() == nil {
		<-tick.C
		err = s.runPostgres(ctx, data)
	}
	if err != nil {
		return err
	}
	s.pg.killed = false
	_, _ = fmt.Fprintf(s.cfg.Log, "PostgreSQL is ready on port %d (%.1f s)\n", s.access.PostgresPort, time.Since(began).Seconds())
	return nil
}

func (s *Servers) runPostgres(ctx context.Context, data string) error {
	log := filepath.Join(s.cfg.Dir, "log", "postgres.log")
	stop := syscall.SIGINT // fast shutdown: ends sessions, writes a checkpoint
	if s.cfg.Ephemeral {
		stop = syscall.SIGQUIT // ends at once; the data is thrown away
	}
	child, err := s.sup.Start(supervise.Process{
		Name: "postgres",
		Path: s.programs.postgres,
		Args: []string{"-D", data, "-p", strconv.Itoa(s.access.PostgresPort),
			"-c", "listen_addresses=127.0.0.1",
			"-c", "unix_socket_directories=", // a path can be too long for a socket, and the socket open to others
			"-c", "max_connections=200",
			"-c", "shared_buffers=64MB",
		},
		Env: append([]string{"PATH=" + searchPath(), "LC_ALL=C"}, s.cfg.PostgresEnv...),
		Dir: s.pg.dir, Log: log, User: s.pg.user, StopSignal: stop,
	})
	if err != nil {
		return err
	}
	s.pg.child = child
	return awaitReady(ctx, "PostgreSQL", child, log, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, s.Addresses().PostgresURL)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
}

// initdb makes the cluster in a folder beside data and then renames it, so that an interrupted run is never
// mistaken for a cluster.
func (s *Servers) initdb(ctx context.Context, data string) error {
	unfinished := data + ".new"
	passwords := filepath.Join(s.pg.dir, "password")
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("remove unfinished cluster: %w", err)
	}
	if err := os.WriteFile(passwords, []byte(s.access.AdminPassword+"\n"), 0o600); err != nil {
		return fmt.Errorf("password for initdb: %w", err)
	}
	defer func() { _ = os.Remove(passwords) }()
	if s.pg.user != nil {
		if err := os.Chown(passwords, int(s.pg.user.UID), int(s.pg.user.GID)); err != nil {
			return fmt.Errorf("password for initdb: %w", err)
		}
	}
	args := []string{"-D", unfinished, "-U", superuser, "--pwfile", passwords, "--auth=scram-sha-256",
		"--encoding=UTF8", "--locale=C"}
	if s.cfg.Ephemeral {
		args = append(args, "--no-sync")
	}
	// A child of the supervisor like any server: were this process killed now, initdb would fill a folder that is being removed.
	log := filepath.Join(s.cfg.Dir, "log", "initdb.log")
	child, err := s.sup.Start(supervise.Process{Name: "initdb", Path: s.programs.initdb, Args: args,
		Env: []string{"PATH=" + searchPath(), "LC_ALL=C"}, Dir: s.pg.dir, Log: log, User: s.pg.user})
	if err != nil {
		return err
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("initdb: %w", ctx.Err()), child.Stop())
	}
	if !child.Succeeded() {
		return fmt.Errorf("initdb: %s; the end of %s:\n%s", child.Exit(), log, tail(log))
	}
	if err := os.Rename(unfinished, data); err != nil {
		return fmt.Errorf("move the new cluster into place: %w", err)
	}
	return nil
}

// StopPostgres stops PostgreSQL as an administrator would (for ephemeral servers: at once) and returns when it has ended.
func (s *Servers) StopPostgres() error {
	if s.pg.child == nil {
		return nil
	}
	return s.pg.child.Stop()
}

// KillPostgres ends PostgreSQL's main process with SIGKILL; its backends notice and end too.
func (s *Servers) KillPostgres() error {
	s.pg.killed = true
	return s.pg.child.Kill()
}

// Postgres is the PostgreSQL that was started last.
func (s *Servers) Postgres() *supervise.Child { return s.pg.child }
