-- One transfer in nine transactions, one statement a round trip.
\set source random(1, 10000)
\set destination 1 + mod(:source + random(0, 9998), 10000)
\set amount random(1, 1000)
select gen_random_uuid() as transfer, gen_random_uuid() as request, gen_random_uuid() as debited, gen_random_uuid() as credited,
    gen_random_uuid() as completed, repeat('x', 240) as body \gset
-- asked for
begin;
insert into desk.transfers (id, source, destination, amount, state) values (:transfer::uuid, :source::int, :destination::int, :amount::bigint, 'r');
insert into desk.outbox (message, transfer, kind, body) values (:request::uuid, :transfer::uuid, 'requested', :body::text);
commit;
-- sent
begin;
select coalesce(max(id), 0) as out from (select id, body from desk.outbox where sent_at is null order by id limit 1 for update skip locked) o \gset
update desk.outbox set sent_at = now() where id = :out::bigint;
commit;
-- debited
begin;
insert into payer.inbox (message) values (:request::uuid) on conflict do nothing;
update payer.accounts set balance = balance - :amount::bigint where id = :source::int and balance >= :amount::bigint;
insert into payer.entries (transfer, kind, account, amount) values (:transfer::uuid, 'd', :source::int, -(:amount::bigint));
insert into payer.outbox (message, transfer, kind, body) values (:debited::uuid, :transfer::uuid, 'debited', :body::text);
commit;
-- sent
begin;
select coalesce(max(id), 0) as out from (select id, body from payer.outbox where sent_at is null order by id limit 1 for update skip locked) o \gset
update payer.outbox set sent_at = now() where id = :out::bigint;
commit;
-- credited
begin;
insert into payer.inbox (message) values (:debited::uuid) on conflict do nothing;
update payer.accounts set balance = balance + :amount::bigint where id = :destination::int;
insert into payer.entries (transfer, kind, account, amount) values (:transfer::uuid, 'c', :destination::int, :amount::bigint);
insert into payer.outbox (message, transfer, kind, body) values (:credited::uuid, :transfer::uuid, 'credited', :body::text);
commit;
-- transfer hears of the debit
begin;
insert into desk.inbox (message) values (:debited::uuid) on conflict do nothing;
update desk.transfers set state = 'd', changed_at = now() where id = :transfer::uuid and state = 'r';
commit;
-- sent
begin;
select coalesce(max(id), 0) as out from (select id, body from payer.outbox where sent_at is null order by id limit 1 for update skip locked) o \gset
update payer.outbox set sent_at = now() where id = :out::bigint;
commit;
-- transfer hears of the credit
begin;
insert into desk.inbox (message) values (:credited::uuid) on conflict do nothing;
update desk.transfers set state = 'c', changed_at = now() where id = :transfer::uuid and state in ('r', 'd');
insert into desk.outbox (message, transfer, kind, body) values (:completed::uuid, :transfer::uuid, 'completed', :body::text);
commit;
-- sent
begin;
select coalesce(max(id), 0) as out from (select id, body from desk.outbox where sent_at is null order by id limit 1 for update skip locked) o \gset
update desk.outbox set sent_at = now() where id = :out::bigint;
commit;
