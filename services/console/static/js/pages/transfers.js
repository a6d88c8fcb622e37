// Transfers: make one, see them go by, and follow one through both services.

import { Rows, attribute, h, put, say, toggle } from '../dom.js';
import { known, list, part, stale } from '../live.js';
import { statuses, summary } from '../bank.js';
import { owner } from '../names.js';
import { count, words } from '../format.js';
import { amount, card, choices, empty, status, time } from '../widgets.js';
import { register } from '../pages.js';
import { transferForm } from './transfer-form.js';
import { transferLife } from './transfer-life.js';

let filter = ''; // a status, or '' for all

const listTopic = () => filter ? 'transfers:' + filter : 'transfers';

register({
  path: 'transfers', title: 'Transfers',
  topics: ([id]) => ['accounts', 'summary', listTopic(), ...(id ? ['transfer:' + id, 'leg:' + id] : [])],
  show(place, rest) {
    const side = h('div', { class: 'side' });
    const body = h('tbody', {});
    const nothing = h('div', {});
    const more = h('p', { class: 'muted more' });
    const table = h('table', { class: 'transfers' }, h('thead', {}, h('tr', {},
      ['Time', 'From', 'To', 'Amount', 'Status', 'About'].map((name) => h('th', { scope: 'col', class: name === 'Amount' ? 'end' : null }, name)))), body);
    const tabs = choices('Show transfers', (value) => {
      filter = value;
      dispatchEvent(new HashChangeEvent('hashchange'));
    });
    const box = card('Transfers', { level: 1, name: 'list' }, tabs.element, h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Transfers' }, table), nothing, more);
    place.append(h('div', { class: 'with-side' }, box, side));
    const rows = new Rows(body, (t) => t.id, (t) => row(t));
    const form = transferForm((made) => { location.hash = '#/transfers/' + made.id; });
    let selected = null;
    let panel = null;

    const page = {
      turn([id]) {
        if (panel && selected === (id || null)) return true;
        selected = id || null;
        toggle(place.firstChild, 'detail', selected);
        panel = selected ? transferLife(selected) : form;
        put(side, panel.element);
        page.update();
        return true;
      },
      update() {
        const all = summary();
        tabs.show([{ value: '', label: 'All' }, ...statuses.map((name) => ({ value: name, label: words(name), count: all ? count(all[name]) : undefined }))], filter);
        const items = list(listTopic());
        rows.show(items.map((t) => ({ ...t, selected: t.id === selected, again: page.update })));
        table.hidden = items.length === 0;
        put(nothing, known(listTopic()) && items.length === 0 ? empty(filter ? `No transfer is ${words(filter).toLowerCase()}.` : 'No money has moved yet.', filter ? '' : 'Make a transfer, and see it go through both services.') : null);
        say(more, part(listTopic(), 'next') ? `The newest ${items.length}. bin/bank transfer list --limit 0 shows all.` : '');
        toggle(box, 'stale', stale(listTopic()));
        panel?.update?.();
      },
      close() { panel?.close?.(); },
    };
    page.turn(rest);
    return page;
  },
});

function row({ id }) {
  const cells = [0, 1, 2, 3, 4, 5].map((i) => h('td', { class: ['', '', '', 'end', '', 'about'][i] || null }));
  const link = h('a', { href: '#/transfers/' + id, class: 'row-link' });
  let last = '';
  const element = h('tr', { class: 'link', onclick: (event) => { if (!event.target.closest('a, button')) location.hash = '#/transfers/' + id; } }, cells);
  return {
    element,
    update(t) {
      attribute(element, 'aria-current', t.selected ? 'true' : null);
      const [from, to] = [owner(t.sourceAccountId, t.again), owner(t.destinationAccountId, t.again)];
      const now = [t.status, t.reason, from, to].join('\n');
      if (now === last) return;
      last = now;
      put(link, time(t.createdAt));
      attribute(link, 'aria-label', `Transfer from ${from} to ${to}`);
      put(cells[0], link);
      say(cells[1], from);
      say(cells[2], to);
      put(cells[3], amount(t.amountMinor, t.currency));
      put(cells[4], status(t.status));
      say(cells[5], [t.reason ? words(t.reason) : '', t.reference].filter(Boolean).join(' · '));
      attribute(cells[5], 'title', t.reference || null);
    },
  };
}
