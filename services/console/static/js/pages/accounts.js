// Accounts: balances, a statement, and what can be done to an account.

import { Rows, attribute, h, put, say, toggle } from '../dom.js';
import { known, list, part, stale } from '../live.js';
import { call } from '../api.js';
import { byOwner, count, money, moment } from '../format.js';
import { amount, card, dialog, empty, facts, id as idButton, problemText, status, toast } from '../widgets.js';
import { register } from '../pages.js';

register({
  path: 'accounts', title: 'Accounts',
  topics: ([id]) => ['accounts', ...(id ? ['account:' + id] : [])],
  show(place, rest) {
    const side = h('div', { class: 'side' });
    const body = h('tbody', {});
    const totals = h('span', { class: 'muted' });
    const nothing = h('div', {});
    const search = h('input', { type: 'search', placeholder: 'Find an owner', 'aria-label': 'Find an owner', class: 'find' });
    const box = card('Accounts', { level: 1, end: search }, h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Accounts' },
      h('table', {}, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Owner'), h('th', { scope: 'col' }, 'Status'), h('th', { scope: 'col', class: 'end' }, 'Balance'))), body)), nothing, h('p', { class: 'more' }, totals));
    place.append(h('div', { class: 'with-side' }, box, side));
    const rows = new Rows(body, (a) => a.id, (a) => row(a));
    let selected = null;
    let panel = null;
    const page = {
      turn([id]) {
        if (panel && selected === (id || null)) return true;
        selected = id || null;
        toggle(place.firstChild, 'accounts-empty', !selected);
        panel = selected ? statement(selected) : { element: card('Statement', {}, empty('Choose an account.', 'Its statement is kept up to date as long as you look.')) };
        put(side, panel.element);
        page.update();
        return true;
      },
      update() {
        const wanted = search.value.trim().toLowerCase();
        const all = list('accounts').sort(byOwner);
        const items = all.filter((a) => !wanted || a.owner.toLowerCase().includes(wanted) || a.id.startsWith(wanted));
        rows.show(items.map((a) => ({ ...a, selected: a.id === selected })));
        put(nothing, known('accounts') && items.length === 0 ? empty(all.length ? 'No account matches.' : 'There are no accounts yet.') : null);
        say(totals, all.length === 0 ? '' : part('accounts', 'next') ? `The newest ${count(all.length)} accounts.` : sums(all));
        toggle(box, 'stale', stale('accounts'));
        panel?.update?.();
      },
    };
    search.addEventListener('input', () => page.update());
    page.turn(rest);
    return page;
  },
});

// sums adds the balances of each currency.
function sums(accounts) {
  const by = new Map();
  for (const a of accounts) by.set(a.currency, (by.get(a.currency) || 0n) + BigInt(a.balanceMinor));
  return 'In all: ' + [...by].sort().map(([currency, sum]) => `${money(sum, currency)} ${currency}`).join(', ');
}

function row({ id }) {
  const link = h('a', { href: '#/accounts/' + id, class: 'row-link' });
  const [state, balance] = [h('td', {}), h('td', { class: 'end' })];
  const element = h('tr', { class: 'link', onclick: (event) => { if (!event.target.closest('a, button')) location.hash = '#/accounts/' + id; } }, h('th', { scope: 'row' }, link), state, balance);
  let last = '';
  return {
    element,
    update(a) {
      attribute(element, 'aria-current', a.selected ? 'true' : null);
      const now = [a.owner, a.status, a.balanceMinor].join('\n');
      if (now === last) return;
      last = now;
      say(link, a.owner);
      put(state, status(a.status));
      put(balance, amount(a.balanceMinor, a.currency));
    },
  };
}

const kinds = { OPENING: 'Opening balance', DEBIT: 'Paid', CREDIT: 'Received', REFUND: 'Paid back' };

function statement(id) {
  const topic = 'account:' + id;
  const head = h('div', {});
  const body = h('tbody', {});
  const more = h('p', { class: 'muted more' });
  const nothing = h('div', {});
  const table = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Statement' }, h('table', {}, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Posted'), h('th', { scope: 'col' }, 'What'),
    h('th', { scope: 'col', class: 'end' }, 'Amount'))), body));
  const element = card('Statement', {}, head, nothing, table, more);
  const rows = new Rows(body, (e) => e.id, (e) => {
    const what = e.transferId ? h('a', { href: '#/transfers/' + e.transferId }, kinds[e.kind] || e.kind) : h('span', {}, kinds[e.kind] || e.kind);
    const row = h('tr', {}, h('td', {}, h('time', { datetime: e.postedAt }, moment(e.postedAt))), h('td', {}, what),
      h('td', { class: 'end' }, amount(e.amountMinor, e.currency, { sign: true })));
    return { element: row, update() {} };
  });
  let last = '';
  return {
    element,
    update() {
      const account = part(topic, 'account');
      put(nothing, known(topic) && !account ? empty('No account has this id.', id) : null);
      table.hidden = !account;
      if (!account) return;
      const now = JSON.stringify(account);
      if (now !== last) put(head, headOf(account));
      last = now;
      const entries = part(topic, 'entries');
      rows.show((entries?.items || []).map((e) => ({ ...e, currency: account.currency })));
      say(more, entries?.next ? 'The newest 100 entries.' : '');
      toggle(element, 'stale', stale(topic));
    },
  };
}

function headOf(account) {
  const problem = h('p', { class: 'problem', role: 'alert' });
  const act = (verb, done) => async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    put(problem);
    try {
      await call('POST', `/api/accounts/${account.id}/${verb}`);
      toast(`${account.owner}: ${done}.`);
    } catch (wrong) {
      put(problem, problemText(wrong));
    } finally {
      button.disabled = false;
    }
  };
  const close = () => dialog(`Close the account of ${account.owner}?`, (end) => [
    h('p', {}, 'A closed account refuses debits and credits for good; a refund of what is still under way is posted. It is refused while there is a balance.'),
    h('div', { class: 'actions' }, h('button', { class: 'danger', type: 'button', onclick: (event) => { act('close', 'closed')(event); end(); } }, 'Close the account'),
      h('button', { class: 'quiet', type: 'button', onclick: end }, 'Leave it open'))]);
  return [
    h('div', { class: 'sum-line' }, h('span', { class: 'sum' }, amount(account.balanceMinor, account.currency)), status(account.status)),
    facts(['Owner', account.owner], ['Opened', moment(account.createdAt)], ['Id', idButton(account.id, { full: true, label: 'account id' })]),
    problem,
    h('div', { class: 'actions account-actions' },
      account.status === 'OPEN' ? h('button', { type: 'button', onclick: act('freeze', 'frozen') }, 'Freeze') : null,
      account.status === 'FROZEN' ? h('button', { type: 'button', onclick: act('unfreeze', 'no longer frozen') }, 'Unfreeze') : null,
      account.status !== 'CLOSED' ? h('button', { class: 'danger', type: 'button', onclick: close }, 'Close…') : null),
  ];
}
