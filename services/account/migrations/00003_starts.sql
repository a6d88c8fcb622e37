-- Starts of messages that may be ending the process, as inbox.Schema wants them; a test compares.

-- +goose Up
create table starts (
    consumer text        collate "C" not null,
    key      bytea       not null,
    starts   integer     not null check (starts >= 0),
    noted_at timestamptz not null default now(),
    primary key (consumer, key)
);

-- +goose Down
drop table starts;
