package inbox

// Schema creates the tables. Each service has it in its own migrations, so that they lie in the database of the effects; a test
// there compares the migrated tables with this text.
//
// The only index is the key: everything else would be paid for by every message. Retention does without one, see package janitor.
// Ids are compared bytewise (collation "C"), which is cheaper than any language's order and the same on every server.
const Schema = `
create table inbox (
    consumer     text        collate "C" not null,
    message_id   text        collate "C" not null,
    payload_hash bytea       not null,
    received_at  timestamptz not null default now(),
    primary key (consumer, message_id)
) with (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    vacuum_truncate = false
);

create table starts (
    consumer text        collate "C" not null,
    key      bytea       not null,
    starts   integer     not null check (starts >= 0),
    noted_at timestamptz not null default now(),
    primary key (consumer, key)
);`
