-- The inbox and the outbox, as their packages want them (inbox.Schema, outbox.Schema; a test compares).

-- +goose Up
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
);

-- +goose Down
drop table outbox;
drop table inbox;
