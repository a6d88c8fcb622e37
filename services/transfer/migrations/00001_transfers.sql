-- +goose Up

-- One row per transfer. Its id is a UUIDv7 of the service's own making and created_at is the instant inside that id, so "newest first",
-- "older than" and "after this page" are all ranges of the primary key and need no index of their own.
create table transfers (
    id                     uuid        primary key,
    source_account_id      uuid        not null,
    destination_account_id uuid        not null,
    amount_minor           bigint      not null check (amount_minor >= 1),
    currency               text        not null check (currency ~ '^[A-Z]{3}$'),
    reference              text        check (char_length(reference) <= 140),
    status                 text        not null check (status in ('REQUESTED', 'DEBITED', 'REFUNDING', 'COMPLETED', 'REJECTED', 'REFUNDED')),
    -- How the transfer ended; null while it is open. It is what the index below holds instead of the status: a step from one open status
    -- to the next then touches no indexed column and stays a heap-only update.
    outcome                text        generated always as (case when status in ('COMPLETED', 'REJECTED', 'REFUNDED') then status end) stored,
    reason                 text,
    created_at             timestamptz not null,
    updated_at             timestamptz not null,
    check (source_account_id <> destination_account_id)
) with (
    -- Room on each page for the row's next versions, which come within milliseconds.
    fillfactor = 60,
    -- Ended transfers leave dead entries among the open ones; clean up long before a fifth of a large table is dead.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 20000
);

-- Lists of one outcome, newest first, and the open transfers (outcome is null) for the sweeper, the summary and the lists of an open status.
create index transfers_by_outcome on transfers (outcome, id);

-- What transfer has been told about each transfer, each fact at most once: the state of the saga and its timeline in one.
-- There is no foreign key: a fact is written only while its transfer's row is locked, and the check would cost as much as the insert.
create table facts (
    transfer_id uuid        not null,
    fact        text        not null check (fact in ('REQUESTED', 'DEBITED', 'DEBIT_REJECTED', 'CREDITED', 'CREDIT_REJECTED', 'REFUNDED', 'TIMED_OUT')),
    at          timestamptz not null,
    message_id  text        not null,
    primary key (transfer_id, fact)
);

-- Which transfer an Idempotency-Key was used for. A key lives as long as its transfer.
create table idempotency_keys (
    key          text  primary key check (char_length(key) between 1 and 255),
    request_hash bytea not null,
    transfer_id  uuid  not null
);

-- How many transfers have ended in each way, as increments to be added up. Each batch appends a row per outcome; nothing is updated in
-- place, so no two transactions ever wait for each other over a count. The sweeper folds the rows into one now and then.
create table outcome_counts (
    outcome text   not null check (outcome in ('COMPLETED', 'REJECTED', 'REFUNDED')),
    n       bigint not null
);

-- +goose Down
drop table outcome_counts;
drop table idempotency_keys;
drop table facts;
drop table transfers;
