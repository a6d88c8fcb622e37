package quarantine

// Schema creates the table. Each service has it in its own migrations; a test there compares the migrated table with this text.
//
// One row for each message that was replayed or discarded. It is written before anything happens to the message, with the outcome STARTED,
// so that a process that dies half-way leaves a trace of what it was at. A discarded message is kept here whole: headers and
// properties as JSON (type json, because jsonb cannot hold every character that a header can), the body byte for byte.
// Rows are looked up by message and by run, newest first. They are kept for ever, on purpose: this is the record of who did what.
const Schema = `
create table quarantine_audit (
    id         bigint generated always as identity primary key,
    run        uuid        not null,
    action     text        not null check (action in ('REPLAY', 'DISCARD')),
    outcome    text        not null check (outcome in ('STARTED', 'DONE', 'FAILED', 'UNKNOWN')),
    queue      text        not null,
    key        text        not null,
    message_id text        not null,
    type       text        not null,
    operator   text        not null,
    because    text        not null,
    target     text        not null,
    detail     text        not null default '',
    started_at timestamptz not null default now(),
    ended_at   timestamptz,
    headers    json,
    properties json,
    body       bytea,
    transfer_id uuid, -- null: the message names none
    check ((action = 'DISCARD') = (body is not null and because <> ''))
);

create index quarantine_audit_by_transfer on quarantine_audit (transfer_id) where transfer_id is not null;
create index quarantine_audit_by_message on quarantine_audit (message_id);
create index quarantine_audit_by_key on quarantine_audit (key, id);
create index quarantine_audit_by_run on quarantine_audit (run, id);`
