# shellcheck shell=bash disable=SC2034,SC2154 # what is set here is read by the script that sources this, and the other way round
# The bank, for a run.sh that measures several systems on one work: it sources this file, with the folder of it in $SYSTEM and one for
# programs in $BUILD.
#
# The bank is asked over HTTP, by a load generator of its own. The other systems make their transfers inside the transfer service, which
# is less work: the rows of this one include the requests. Its queues are quorum queues.

build() {
	(cd "$SYSTEM/../../../.." &&
		CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$BUILD/" ./services/account ./services/transfer ./test/bench/peers/bank/client)
}

# The services make their own tables when they start, so they run once before the accounts are put in.
setup() {
	start_services
	stop_services
	load_schema "$SYSTEM/account.sql" "$SYSTEM/transfer.sql"
}

start_services() {
	local database=postgres://$PGUSER@$PGHOST:$PGPORT ports
	mapfile -t ports < <("$BUILD/client" ports)
	ACCOUNT_URL=http://127.0.0.1:${ports[0]} TRANSFER_URL=http://127.0.0.1:${ports[1]}
	HTTP_ADDR=127.0.0.1:${ports[0]} DATABASE_URL=$database/account "$BUILD/account" </dev/null >"$LOG.account" 2>&1 9>&- &
	ACCOUNT_PID=$!
	PIDS+=($!)
	HTTP_ADDR=127.0.0.1:${ports[1]} DATABASE_URL=$database/transfer "$BUILD/transfer" </dev/null >"$LOG.transfer" 2>&1 9>&- &
	TRANSFER_PID=$!
	PIDS+=($!)
	until "$BUILD/client" ready "$ACCOUNT_URL" "$TRANSFER_URL" 2>/dev/null; do
		alive
		sleep 0.1
	done
}

load() { "$BUILD/client" load "$TRANSFER_URL" "$1" "$2" >&2; }
rate() { "$BUILD/client" rate "$TRANSFER_URL" "$1" "$2" >&2; }
