-- Accounts, the ledger's entries and one leg record per transfer.
--
-- Lock order of every transaction that writes here: inbox rows, then legs by id, then accounts by id. Entries are only ever
-- inserted. There is no row for transit or funding: both are sums of entries, because a counter would be the one row that
-- every transfer has to lock.

-- +goose Up
create table accounts (
    id               uuid        primary key,
    owner            text        not null check (char_length(owner) between 1 and 200),
    currency         text        not null check (currency ~ '^[A-Z]{3}$'),
    status           text        not null check (status in ('OPEN', 'FROZEN', 'CLOSED')),
    balance_minor    bigint      not null check (balance_minor >= 0),
    -- Upper bound of what refunds may still bring back. A credit leaves room for it, since a refund is never refused.
    may_return_minor bigint      not null default 0,
    -- What POST /accounts asked for: tells a repetition from another body under the same id.
    opening_minor    bigint      not null check (opening_minor >= 0),
    created_at       timestamptz not null,
    constraint accounts_room_for_refunds check (may_return_minor between 0 and 9223372036854775807 - balance_minor)
) with (fillfactor = 50); -- room for a row's next versions on its own page: a new balance then touches no index

-- Pages of GET /accounts. Neither column ever changes.
create index accounts_newest on accounts (created_at desc, id desc);

create table legs (
    id                     uuid        primary key, -- the transfer's id
    state                  text        not null check (state in ('DEBITED', 'DEBIT_REJECTED', 'CREDITED', 'CREDIT_REJECTED', 'REFUNDED')),
    reason                 text,
    source_account_id      uuid        not null,
    destination_account_id uuid        not null,
    amount_minor           bigint      not null check (amount_minor >= 1),
    currency               text        not null check (currency ~ '^[A-Z]{3}$'),
    updated_at             timestamptz not null,
    constraint legs_two_accounts check (source_account_id <> destination_account_id),
    constraint legs_refusal_has_reason check (reason is not null or state not in ('DEBIT_REJECTED', 'CREDIT_REJECTED')),
    constraint legs_success_has_none check (reason is null or state not in ('DEBITED', 'CREDITED'))
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);

-- What is in transit, without reading every transfer that ever was: in all for GET /ledger, and by payer to compute
-- may_return_minor anew. A leg leaves this index when its transfer ends, so it stays as small as the number of open
-- transfers as long as vacuum keeps up, hence the settings above.
create index legs_in_transit on legs (source_account_id) include (currency, amount_minor) where state in ('DEBITED', 'CREDIT_REJECTED');

-- No foreign key to accounts: an account is never deleted, the transaction that inserts an entry holds its account's row, and the
-- check would be one more row lock for each entry.
create table entries (
    id           uuid        primary key, -- version 7: new rows meet at the right edge of the index
    ledger       text        not null check (ledger in ('CUSTOMER', 'TRANSIT', 'FUNDING')),
    account_id   uuid,
    transfer_id  uuid,
    kind         text        not null check (kind in ('OPENING', 'DEBIT', 'CREDIT', 'REFUND')),
    amount_minor bigint      not null,
    currency     text        not null check (currency ~ '^[A-Z]{3}$'),
    posted_at    timestamptz not null,
    constraint entries_account check ((account_id is not null) = (ledger = 'CUSTOMER')),
    constraint entries_transfer check ((transfer_id is null) = (kind = 'OPENING')),
    constraint entries_counterpart check (ledger = 'CUSTOMER' or (ledger = 'FUNDING') = (kind = 'OPENING')),
    -- A debit takes from the customer and gives to transit; everything else gives to the customer and takes from the other side.
    constraint entries_sign check (amount_minor <> 0 and (amount_minor < 0) = ((kind = 'DEBIT') = (ledger = 'CUSTOMER')))
) with (autovacuum_vacuum_insert_scale_factor = 0.1);

-- Whatever the code does: one debit per transfer, and one credit or one refund, never both and nothing twice.
create unique index entries_once on entries (transfer_id, (kind = 'DEBIT')) where ledger = 'CUSTOMER' and transfer_id is not null;

-- Pages of an account's statement.
create index entries_statement on entries (account_id, id desc) where ledger = 'CUSTOMER';

-- The funding side of the ledger: one entry per account, so transfers never write here.
create index entries_funding on entries (currency) include (amount_minor) where ledger = 'FUNDING';

-- +goose Down
drop table entries;
drop table legs;
drop table accounts;
