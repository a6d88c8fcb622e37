-- A thousand accounts, as POST /accounts opens them, and what run.sh reads.
insert into accounts (id, owner, currency, status, balance_minor, opening_minor, created_at)
select ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'Customer ' || i, 'EUR', 'OPEN', 100000000, 100000000, now()
from generate_series(1, 1000) i;

insert into entries (id, ledger, account_id, kind, amount_minor, currency, posted_at)
select ('00000000-0000-7000-8' || n || '00-' || lpad(to_hex(i), 12, '0'))::uuid, ledger,
    case ledger when 'CUSTOMER' then ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid end, 'OPENING', amount, 'EUR', now()
from generate_series(1, 1000) i, (values (1, 'CUSTOMER', 100000000), (2, 'FUNDING', -100000000)) e (n, ledger, amount);

create view bench_accounts as select id, balance_minor as balance, opening_minor as seeded from accounts;

vacuum analyze;
