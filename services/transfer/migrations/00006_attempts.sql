-- Attempts that did not end well, as pkg/journal wants them, and the transfer that an audited message names, as pkg/quarantine does; a
-- test compares.

-- +goose Up
create table attempts (
    transfer_id uuid        not null,
    message_id  text        collate "C" not null,
    queue       text        collate "C" not null,
    at          timestamptz not null,
    type        text        not null,
    attempt     integer     not null,
    class       text        not null,
    outcome     text        not null check (outcome in ('RETRY', 'QUARANTINE', 'SPARED', 'CANCELLED')),
    reason      text        not null,
    delay_ms    bigint      not null,
    error       text        not null,
    primary key (transfer_id, message_id, queue, at)
);

alter table quarantine_audit add column transfer_id uuid; -- null: the message names none
create index quarantine_audit_by_transfer on quarantine_audit (transfer_id) where transfer_id is not null;
create index quarantine_audit_by_message on quarantine_audit (message_id);

-- +goose Down
drop index quarantine_audit_by_message;
drop index quarantine_audit_by_transfer;
alter table quarantine_audit drop column transfer_id;
drop table attempts;
