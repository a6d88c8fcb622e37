#!/usr/bin/env bash
# Runs the tests against the servers of docker-compose.yml, RabbitMQ 4 and PostgreSQL 17:
# brokers differ in what they write into a message and in what they do with it.
#
#   test/rabbitmq4/run.sh [PACKAGE...]
#
# Without packages: all below pkg and services that use servers. TEST_FLAGS and TEST_PARALLEL
# as for make test. Tests that stop their servers start private ones and are left to make test.
#
# It starts two containers on free loopback ports and removes them in the end, or uses the
# servers of AMQP_URL (with RABBITMQ_MANAGEMENT_URL) and DATABASE_URL, whichever is set.
# The user of AMQP_URL must be an administrator, that of DATABASE_URL may create databases.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

engine=${CONTAINER_ENGINE:-docker}
start_timeout=${START_TIMEOUT:-180}
password=test-$$-$RANDOM$RANDOM # of servers on loopback that live as long as this
containers=()

say() { printf '%4ds  %s\n' "$SECONDS" "$*"; }
fail() { say "FAILED: $*" >&2; exit 1; }

cleanup() {
  local status=$?
  trap - EXIT
  local container
  for container in "${containers[@]}"; do
    "$engine" rm --force --volumes "$container" > /dev/null ||
      { say "could not remove container $container" >&2; status=1; }
  done
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

need_engine() {
  command -v "$engine" > /dev/null || fail "$engine is not installed. Install a container engine (or name yours in CONTAINER_ENGINE), or give servers in AMQP_URL and DATABASE_URL."
  "$engine" version > /dev/null 2>&1 || fail "the container engine does not answer ($engine version). Start it, or give servers in AMQP_URL and DATABASE_URL."
}

# image NAME: the one that the composition runs.
image() { sed -n "s/^ *image: *\($1:[^ ]*\).*/\1/p" docker-compose.yml; }

# start NAME CREATE-ARGUMENT...: a container that is removed at the end; $container is its name.
start() {
  container=banking-$1-$$
  shift
  "$engine" create --name "$container" "$@" > /dev/null || fail "cannot create container $container"
  containers+=("$container")
  "$engine" start "$container" > /dev/null || fail "cannot start container $container"
}

dead() { "$engine" logs --tail 20 "$container" >&2 || true; fail "$1"; }

# await WHAT COMMAND...: asks the container until the command succeeds.
await() {
  local what=$1
  shift
  until "$engine" exec "$container" "$@" > /dev/null 2>&1; do
    [[ $("$engine" inspect --format '{{.State.Running}}' "$container") == true ]] || dead "$what has stopped"
    ((SECONDS < start_timeout)) || dead "not ready within $start_timeout s: $what"
    sleep 0.5
  done
  say "$what is ready"
}

published() { "$engine" port "$1" "$2" | head -n 1; }

start_rabbitmq() {
  local image
  image=$(image rabbitmq)
  need_engine
  # Statistics every second, as on the private servers: tests wait for what they say. The limit of
  # files is the composition's: Erlang reserves a table of that size. So is the user: root's question
  # below, were it the first to need the cookie, would create it unreadable for the server.
  start rabbitmq --user rabbitmq --publish 127.0.0.1::5672 --publish 127.0.0.1::15672 --ulimit nofile=16384 \
    --env RABBITMQ_DEFAULT_USER=tester --env "RABBITMQ_DEFAULT_PASS=$password" \
    --env RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-rabbit collect_statistics_interval 1000" "$image"
  # `ping` answers before the broker takes clients, and each question starts an Erlang machine.
  await "$image" sh -c 'rabbitmq-diagnostics -q check_running && rabbitmq-diagnostics -q check_port_connectivity'
  AMQP_URL=amqp://tester:$password@$(published "$container" 5672)/
  RABBITMQ_MANAGEMENT_URL=http://tester:$password@$(published "$container" 15672)
  export AMQP_URL RABBITMQ_MANAGEMENT_URL
}

start_postgres() {
  local image
  image=$(image postgres)
  need_engine
  # 200 connections and no care for a power cut, as on the private servers.
  start postgres --publish 127.0.0.1::5432 --env "POSTGRES_PASSWORD=$password" "$image" postgres -c max_connections=200 -c fsync=off
  # While the image initialises the database, a server listens on the socket only. Asking over TCP sees the real one.
  await "$image" pg_isready --quiet --host 127.0.0.1 --username postgres
  DATABASE_URL=postgres://postgres:$password@$(published "$container" 5432)/postgres
  export DATABASE_URL
}

# The packages whose tests ask for servers.
with_servers() {
  go list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./pkg/... ./services/... |
    awk '/\/internal\/testenv( |$)/ { print $1 }'
}

# The tests that start servers of their own, as a pattern of go test.
own_servers() {
  find pkg services test cmd -name '*_test.go' -exec awk '
    /^func Test/ { name = $2; sub(/\(.*/, "", name) }
    /testenv\.Own\(/ { print name }' {} + | sort --unique | paste --serial --delimiters '|'
}

if (($#)); then packages=("$@"); else mapfile -t packages < <(with_servers); fi
((${#packages[@]})) || fail "no package uses servers"
skipped=$(own_servers)

if [[ -n ${AMQP_URL-} ]]; then say "RabbitMQ: the one of AMQP_URL"; else start_rabbitmq; fi
if [[ -n ${DATABASE_URL-} ]]; then say "PostgreSQL: the one of DATABASE_URL"; else start_postgres; fi

say "testing ${packages[*]}"
say "left out, they start private servers: ${skipped//|/, }"
# shellcheck disable=SC2086 # several flags
go test -race -p "${TEST_PARALLEL:-2}" -timeout "${TEST_TIMEOUT:-10m}" -skip "^(${skipped:-none})\$" ${TEST_FLAGS-} "${packages[@]}" ||
  fail "tests on these servers"
say "all held"
