-- Fifty transfers in the same nine transactions, each over the rows of all.
select array_agg(gen_random_uuid())::text as transfers, array_agg(gen_random_uuid())::text as requests, array_agg(gen_random_uuid())::text as debits,
    array_agg(gen_random_uuid())::text as credits, array_agg(gen_random_uuid())::text as ends, array_agg(source)::text as sources,
    array_agg(1 + (source + (random() * 9998)::int) % 10000)::text as destinations, array_agg(1 + (random() * 999)::int)::text as amounts,
    repeat('x', 240) as body
from (select 1 + (random() * 9999)::int as source from generate_series(1, 50)) s \gset
-- asked for
begin;
insert into desk.transfers (id, source, destination, amount, state)
    select t, s, d, a, 'r' from unnest(:transfers::uuid[], :sources::int[], :destinations::int[], :amounts::bigint[]) u (t, s, d, a);
insert into desk.outbox (message, transfer, kind, body) select m, t, 'requested', :body::text from unnest(:requests::uuid[], :transfers::uuid[]) u (m, t);
commit;
-- sent
begin;
select coalesce(array_agg(id), '{}')::text as out, count(body) as bodies
    from (select id, body from desk.outbox where sent_at is null order by id limit 50 for update skip locked) o \gset
update desk.outbox set sent_at = now() where id = any (:out::bigint[]);
commit;
-- debited
begin;
insert into payer.inbox (message) select unnest(:requests::uuid[]) on conflict do nothing returning message;
select id, balance from payer.accounts where id = any (:sources::int[]) order by id for update;
update payer.accounts a set balance = a.balance - u.total
    from (select s, sum(x)::bigint as total from unnest(:sources::int[], :amounts::bigint[]) u (s, x) group by s) u where a.id = u.s;
insert into payer.entries (transfer, kind, account, amount)
    select t, 'd', s, -x from unnest(:transfers::uuid[], :sources::int[], :amounts::bigint[]) u (t, s, x);
insert into payer.outbox (message, transfer, kind, body) select m, t, 'debited', :body::text from unnest(:debits::uuid[], :transfers::uuid[]) u (m, t);
commit;
-- sent
begin;
select coalesce(array_agg(id), '{}')::text as out, count(body) as bodies
    from (select id, body from payer.outbox where sent_at is null order by id limit 50 for update skip locked) o \gset
update payer.outbox set sent_at = now() where id = any (:out::bigint[]);
commit;
-- credited
begin;
insert into payer.inbox (message) select unnest(:debits::uuid[]) on conflict do nothing returning message;
select id, balance from payer.accounts where id = any (:destinations::int[]) order by id for update;
update payer.accounts a set balance = a.balance + u.total
    from (select d, sum(x)::bigint as total from unnest(:destinations::int[], :amounts::bigint[]) u (d, x) group by d) u where a.id = u.d;
insert into payer.entries (transfer, kind, account, amount)
    select t, 'c', d, x from unnest(:transfers::uuid[], :destinations::int[], :amounts::bigint[]) u (t, d, x);
insert into payer.outbox (message, transfer, kind, body) select m, t, 'credited', :body::text from unnest(:credits::uuid[], :transfers::uuid[]) u (m, t);
commit;
-- transfer hears of the debits
begin;
insert into desk.inbox (message) select unnest(:debits::uuid[]) on conflict do nothing returning message;
update desk.transfers set state = 'd', changed_at = now() where id = any (:transfers::uuid[]) and state = 'r';
commit;
-- sent
begin;
select coalesce(array_agg(id), '{}')::text as out, count(body) as bodies
    from (select id, body from payer.outbox where sent_at is null order by id limit 50 for update skip locked) o \gset
update payer.outbox set sent_at = now() where id = any (:out::bigint[]);
commit;
-- transfer hears of the credits
begin;
insert into desk.inbox (message) select unnest(:credits::uuid[]) on conflict do nothing returning message;
update desk.transfers set state = 'c', changed_at = now() where id = any (:transfers::uuid[]) and state in ('r', 'd');
insert into desk.outbox (message, transfer, kind, body) select m, t, 'completed', :body::text from unnest(:ends::uuid[], :transfers::uuid[]) u (m, t);
commit;
-- sent
begin;
select coalesce(array_agg(id), '{}')::text as out, count(body) as bodies
    from (select id, body from desk.outbox where sent_at is null order by id limit 50 for update skip locked) o \gset
update desk.outbox set sent_at = now() where id = any (:out::bigint[]);
commit;
