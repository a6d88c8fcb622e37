package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// programs are the absolute paths of what is run.
type programs struct {
	initdb, postgres string
	rabbitmq, epmd   string
}

// homebrew are the prefixes of Apple silicon, Intel and Linux.
var homebrew = []string{"/opt/homebrew/opt", "/usr/local/opt", "/home/linuxbrew/.linuxbrew/opt"}

// findPrograms looks where Debian and Homebrew install, then in PATH.
func findPrograms() (programs, error) {
	var p programs
	var missing []error
	p.postgres = FindPostgres("postgres")
	p.initdb = FindPostgres("initdb")
	if p.postgres == "" || p.initdb == "" {
		missing = append(missing, errors.New(
			"PostgreSQL is not installed: on Debian or Ubuntu install the package postgresql, with Homebrew postgresql@17"))
	}
	// Debian's /usr/sbin/rabbitmq-server, which PATH leads root to, switches to the user rabbitmq, who may not read our
	// folder. The script that it wraps does not.
	p.rabbitmq = find("rabbitmq-server", append([]string{"/usr/lib/rabbitmq/bin"}, underHomebrew("rabbitmq/sbin")...))
	p.epmd = find("epmd", append([]string{"/usr/lib/erlang/bin", "/usr/lib/erlang/erts-*/bin"}, underHomebrew("erlang*/lib/erlang/bin")...))
	if p.rabbitmq == "" || p.epmd == "" {
		missing = append(missing, errors.New(
			"RabbitMQ is not installed: on Debian or Ubuntu install the package rabbitmq-server, with Homebrew rabbitmq"))
	}
	if err := errors.Join(missing...); err != nil {
		return programs{}, fmt.Errorf("private servers cannot start:\n%w", err)
	}
	return p, nil
}

// FindPostgres returns the path of one of PostgreSQL's programs, of the version that is run here, or "".
func FindPostgres(program string) string {
	return find(program, append([]string{"/usr/lib/postgresql/*/bin"}, underHomebrew("postgresql*/bin")...))
}

func underHomebrew(path string) []string {
	places := make([]string, 0, len(homebrew))
	for _, prefix := range homebrew {
		places = append(places, filepath.Join(prefix, path))
	}
	return places
}

// find returns the newest program of that name in the first place that has one, or the one in PATH, or "".
func find(name string, places []string) string {
	for _, place := range places {
		found, err := filepath.Glob(filepath.Join(place, name))
		if err != nil || len(found) == 0 {
			continue
		}
		newest := found[0]
		for _, path := range found[1:] {
			if versionIn(path) > versionIn(newest) {
				newest = path
			}
		}
		return newest
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// versionIn returns the first number in the path, the major version in /usr/lib/postgresql/15/bin/postgres.
func versionIn(path string) int {
	digits := strings.TrimLeftFunc(path, func(r rune) bool { return r < '0' || r > '9' })
	n := 0
	for _, r := range digits {
		if r < '0' || r > '9' {
			break
		}
		n = n*10 + int(r-'0')
	}
	return n
}

// searchPath is the PATH for the servers' scripts, which call erl and coreutils by name.
func searchPath() string {
	path := os.Getenv("PATH")
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	for _, place := range underHomebrew("erlang/bin") {
		path += ":" + place
	}
	return path
}
