-- The faults that were ordered, as their package wants them (control.Schema; a test compares). Empty unless FAULTS=on.

-- +goose Up
create table faults (
    id         uuid        primary key, -- version 7: in the order in which they were armed
    point      text        not null,
    action     text        not null,
    class      text,
    delay      interval,
    message_id text,
    remaining  bigint      check (remaining >= 0), -- null: until it is deleted
    fired      bigint      not null default 0,
    created_at timestamptz not null default now()
);

-- +goose Down
drop table faults;
