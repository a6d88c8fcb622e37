package journal

// Schema creates the table. Each service has it in its own migrations; a test there compares the migrated table with this text.
//
// The key is the only index: it finds the attempts of one transfer, counts those of one message, and makes a batch that is written twice,
// because the answer to the first time was lost, the same rows. Retention does without an index, see package janitor.
const Schema = `
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
);`
