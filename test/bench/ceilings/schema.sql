-- The least that a bank of two services has to write, in one database: the same log, and no network between them.
drop schema if exists payer, desk cascade;
create schema payer; -- account's side
create schema desk;  -- transfer's side

create table payer.accounts (id int primary key, balance bigint not null check (balance >= 0)) with (fillfactor = 80);
create table payer.entries (
    id bigint generated always as identity primary key, transfer uuid not null, kind "char" not null, account int not null, amount bigint not null,
    at timestamptz not null default now(), unique (transfer, kind)
);
create table desk.transfers (
    id uuid primary key, source int not null, destination int not null, amount bigint not null check (amount > 0), state "char" not null,
    at timestamptz not null default now(), changed_at timestamptz not null default now()
) with (fillfactor = 70);

create table payer.inbox (message uuid primary key, at timestamptz not null default now());
create table desk.inbox (like payer.inbox including all);
create table payer.outbox (
    id bigint generated always as identity primary key, message uuid not null, transfer uuid not null, kind text not null, body text not null,
    sent_at timestamptz
);
create table desk.outbox (like payer.outbox including all);
create index on payer.outbox (id) where sent_at is null;
create index on desk.outbox (id) where sent_at is null;

insert into payer.accounts select i, 1000000000000 from generate_series(1, 10000) i;
vacuum analyze;
