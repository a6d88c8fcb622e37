package outbox

// Schema creates the table. Each service has it in its own migrations, so that row and business change share a transaction; a
// test there compares the migrated table with this text.
//
// A service may also insert into it by hand, for instance to make one statement of a whole request. It then gives
// message_id, type, routing_key, body, correlation_id, trace_parent, mandatory and occurred_at, and leaves the rest alone: the
// relay sends such rows. How they are sent directly is told at Queued.
//
// next_attempt_at keeps relays off: for a while after a failure, and for a few seconds of a row that is published directly.
//
// The table is a queue: every row is deleted within milliseconds, so what matters is how fast its dead rows go. Vacuum starts
// at a fixed number of them and does not pause in between; it never shortens the file, because that takes an exclusive lock in
// the middle of the traffic; and inserts alone do not start it.
const Schema = `
create table outbox (
    id              bigint generated always as identity primary key,
    message_id      text        not null,
    type            text        not null,
    routing_key     text        not null,
    body            text        not null,
    correlation_id  text        not null default '',
    trace_parent    text        not null default '',
    mandatory       boolean     not null,
    occurred_at     timestamptz not null,
    attempts        integer     not null default 0,
    next_attempt_at timestamptz,
    last_error      text,
    set_aside_at    timestamptz
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_threshold = -1,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = false
);`
