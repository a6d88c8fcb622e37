-- What operators did with quarantined messages, as its package wants it (quarantine.Schema; a test compares).

-- +goose Up
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
    check ((action = 'DISCARD') = (body is not null and because <> ''))
);
create index quarantine_audit_by_key on quarantine_audit (key, id);
create index quarantine_audit_by_run on quarantine_audit (run, id);

-- +goose Down
drop table quarantine_audit;
