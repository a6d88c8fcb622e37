#!/usr/bin/env bash
# Runs docker-compose.yml for real: builds and starts it as a project of its own,
# moves money over HTTP, stops the broker under a transfer, looks at what confines
# the containers, and removes everything again. Exit code 0: all of it held.
#
# Needs an engine with the compose plugin, and curl. It touches no other project
# and no fixed port: 0 lets the engine choose free ones.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

export COMPOSE_PROJECT_NAME=banking-test-$$
export CONSOLE_PORT=0 ACCOUNT_PORT=0 TRANSFER_PORT=0 POSTGRES_PORT=0 RABBITMQ_PORT=0 RABBITMQ_MANAGEMENT_PORT=0
# Not the defaults: this shows that they can be set.
export ADMIN_TOKEN=token-$$ POSTGRES_PASSWORD=postgres-$$ ACCOUNT_DB_PASSWORD=account-$$ TRANSFER_DB_PASSWORD=transfer-$$
operator_password=${OPERATOR_AMQP_PASSWORD:-operator-local-demo}
account_password=${ACCOUNT_AMQP_PASSWORD:-account-local-demo}
start_timeout=${COMPOSE_TEST_TIMEOUT:-240}

say() { printf '%4ds  %s\n' "$SECONDS" "$*"; }
fail() { say "FAILED: $*" >&2; exit 1; }

cleanup() {
  local status=$?
  trap - EXIT
  if ((status)); then
    docker compose ps --all >&2 || true
    docker compose logs --no-color --tail 40 >&2 || true
  fi
  docker compose --profile tools down --volumes --remove-orphans --rmi local --timeout 20 > /dev/null 2>&1 ||
    { say "could not remove project $COMPOSE_PROJECT_NAME" >&2; status=1; }
  ((status)) || say "all held, everything removed"
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# quietly COMMAND...: its output is shown only when it fails.
quietly() {
  local output
  output=$("$@" 2>&1) || { printf '%s\n' "$output" >&2; fail "$*"; }
}

# await SECONDS WHAT COMMAND...: asks until the command succeeds or the time is up.
await() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    ((SECONDS < deadline)) || fail "not in time: $what"
    sleep 0.5
  done
}

ask() { curl --silent --show-error --fail --max-time 12 --header 'Content-Type: application/json' "$@"; }

# member NAME JSON: the value of the first member of that name.
member() {
  local pattern="\"$1\": ?\"?([^\",}]*)"
  [[ $2 =~ $pattern ]] || fail "no $1 in the answer: $2"
  printf '%s' "${BASH_REMATCH[1]}"
}

address() { printf 'http://%s' "$(docker compose port "$1" "$2")"; }

new_account() {
  member id "$(ask "$account/accounts" --data \
    "{\"owner\": \"$1\", \"currency\": \"EUR\", \"openingBalanceMinor\": $2}")"
}

new_transfer() {
  member id "$(ask "$transfer/transfers" --header "Idempotency-Key: $COMPOSE_PROJECT_NAME-$1" --data \
    "{\"sourceAccountId\": \"$source\", \"destinationAccountId\": \"$destination\", \"amountMinor\": $1, \"currency\": \"EUR\"}")"
}

completed() {
  local answer
  answer=$(ask "$transfer/transfers/$1" 2> /dev/null) || return 1
  [[ $(member status "$answer") == COMPLETED ]]
}

healthy() { [[ $(docker inspect --format '{{.State.Health.Status}}' "$(docker compose ps --quiet "$1")") == healthy ]]; }

expect_balances() {
  local found
  found="$(member balanceMinor "$(ask "$account/accounts/$source")")"
  found+=" $(member balanceMinor "$(ask "$account/accounts/$destination")")"
  [[ $found == "$1 $2" ]] || fail "balances are $found, expected $1 $2"
}

expect_ledger() {
  local ledger
  ledger=$(ask "$account/ledger")
  [[ $(member ok "$ledger") == true ]] || fail "the ledger is not ok: $ledger"
  [[ ! $ledger =~ \"(sum|inTransit)Minor\":\ ?\"?-?[1-9] ]] || fail "money is missing or in transit: $ledger"
}

count_accounts() { ask "$account/accounts?limit=200" | grep -o '"balanceMinor"' | wc -l; }

# --- up -------------------------------------------------------------------------

quietly docker compose build
say "images built"
quietly docker compose up --detach --wait --wait-timeout "$start_timeout"
account=$(address account 8081)
transfer=$(address transfer 8082)
console=$(address console 8080)
say "everything is healthy"

ask "$console/" | grep -q '<title>Banking console</title>' || fail "the console does not show its page"
queues=$(curl --silent --max-time 5 --no-buffer "$console/events?topics=queues,accounts" | grep --max-count 2 '"parts"' || true)
[[ $queues == *banking.dead-letters* && $queues == *balanceMinor* ]] || fail "the console sees no queues or no accounts: $queues"
say "the console sees the broker and the services"

seeded=$(count_accounts)
((seeded >= 2)) || fail "seed left $seeded accounts"
quietly docker compose run --rm -T seed
[[ $(count_accounts) == "$seeded" ]] || fail "seeding twice made other accounts"
say "seeded with $seeded accounts, once"

# --- money ----------------------------------------------------------------------

source=$(new_account Ada 10000)
destination=$(new_account Grace 500)
id=$(new_transfer 2500)
await 60 "transfer $id completed" completed "$id"
expect_balances 7500 3000
expect_ledger
say "a transfer completed, the ledger adds up"

quietly docker compose stop rabbitmq
id=$(new_transfer 1500)
quietly docker compose start rabbitmq
await 180 "transfer $id, accepted without a broker, completed" completed "$id"
expect_balances 6000 4500
expect_ledger
for service in rabbitmq account transfer; do await 90 "$service healthy again" healthy "$service"; done
say "a transfer accepted while the broker was down completed after its return"

quietly docker compose run --rm -T bank verify
say "bank verify: the invariants hold"

# --- confinement ----------------------------------------------------------------

# As a service, into another's database.
for pair in "account $ACCOUNT_DB_PASSWORD transfer" "transfer $TRANSFER_DB_PASSWORD account" "account $ACCOUNT_DB_PASSWORD postgres"; do
  read -r role password database <<< "$pair"
  answer=$(docker compose exec -T postgres \
    psql "postgresql://$role:$password@127.0.0.1/$database" --command 'SELECT 1' 2>&1) && fail "$role may connect to $database"
  [[ $answer == *"permission denied for database"* ]] || fail "$role, connecting to $database: $answer"
done
say "no role can connect to a database that is not its own"

users=$(docker compose exec -T rabbitmq rabbitmqctl --quiet --no-table-headers list_users | cut -f 1 | sort | xargs)
[[ $users == "account operator transfer" ]] || fail "the broker's users are: $users"
management=$(address rabbitmq 15672) # another than before its restart
ask --user "operator:$operator_password" "$management/api/whoami" > /dev/null || fail "operator is refused by the management interface"
code=$(curl --silent --output /dev/null --write-out '%{http_code}' --user "account:$account_password" "$management/api/whoami")
[[ $code == 401 ]] || fail "a service's user gets $code from the management interface"
answer=$(docker compose run --rm -T --env "AMQP_URL=amqp://account:$account_password@rabbitmq:5672/banking" \
  bank publish --exchange transfer.retry --key any <<< '{}' 2>&1) && fail "account may publish to an exchange of transfer's"
[[ $answer == *ACCESS_REFUSED* ]] || fail "account, publishing to an exchange of transfer's: $answer"
say "the broker knows account, operator and transfer, and refuses account what is transfer's"

quietly docker compose --profile tools create bank # so that all containers are there to be looked at
mapfile -t containers < <(docker compose --profile tools ps --all --quiet)
services=$(docker compose --profile tools config --services | wc -l)
((${#containers[@]} == services)) || fail "${#containers[@]} containers for $services services"
sum=0
for container in "${containers[@]}"; do
  read -r name memory readonly killed restarts < <(docker inspect --format \
    '{{.Name}} {{.HostConfig.Memory}} {{.HostConfig.ReadonlyRootfs}} {{.State.OOMKilled}} {{.RestartCount}}' "$container")
  name=${name#/}
  ((memory > 0)) || fail "$name has no memory limit"
  sum=$((sum + memory))
  [[ $readonly == true ]] || fail "$name can write to its root file system"
  [[ $killed == false && $restarts == 0 ]] || fail "$name: killed for memory: $killed, restarts: $restarts"
  docker inspect --format '{{.HostConfig.CapDrop}} {{.HostConfig.CapAdd}} {{.HostConfig.SecurityOpt}}' "$container" |
    grep -qx '\[ALL\] \[\] \[no-new-privileges:true\]' || fail "$name has privileges"
  ! docker inspect --format '{{range .HostConfig.PortBindings}}{{range .}}{{println .HostIp}}{{end}}{{end}}' "$container" |
    grep -v -e '^$' -e '^127\.0\.0\.1$' || fail "$name is reachable from outside"
done
((sum < 1000000000)) || fail "the memory limits sum to $sum bytes"
say "memory limits sum to $((sum / 1000000)) MB; nothing was killed or restarted; loopback ports only"
mapfile -t running < <(docker compose ps --quiet)
docker stats --no-stream --format '       {{.Name}}  {{.MemUsage}}' "${running[@]}"
