// Both quarantines as one list, grouped by what the messages have in common, with what can be done about a group.

import { Rows, attribute, h, put, say, toggle } from '../dom.js';
import { known, list, part, stale, topic } from '../live.js';
import { owner, quarantines, services } from '../bank.js';
import { moment, plural, short, span, words } from '../format.js';
import { card, choices, empty } from '../widgets.js';
import { discardDialog, replayDialog } from './parked-run.js';

const groupings = { reason: 'Reason', class: 'Class', type: 'Type' };
const nothingOf = { reason: 'no reason given', class: 'no class', type: 'no type' };
const firstRows = 50;
const picked = { queue: '', by: 'reason', value: null }; // stays when one comes back from a message

export function parkedList(place) {
  const queueBoxes = h('div', { class: 'queues', role: 'group', 'aria-label': 'Quarantine queues' });
  const by = choices('Group by', (value) => { Object.assign(picked, { by: value, value: null }); page.update(); });
  const groups = choices('Group', (value) => { picked.value = value === all ? null : value; page.update(); });
  const replay = h('button', { type: 'button', class: 'primary', onclick: () => replayDialog(orders(), page.update) }, 'Replay…');
  const discard = h('button', { type: 'button', class: 'danger', onclick: () => discardDialog(orders(), page.update) }, 'Discard…');
  const body = h('tbody', {});
  const table = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Parked messages' }, h('table', { class: 'parked' }, h('thead', {}, h('tr', {},
    ['Parked', 'Reason', 'Type', 'Message', 'Attempts', 'Error'].map((n) => h('th', { scope: 'col', class: n === 'Attempts' ? 'end' : null }, n)))), body));
  const nothing = h('div', {});
  const more = h('p', { class: 'muted more' });
  const end = h('div', { class: 'actions' }, replay, discard);
  const box = card('Messages', { end }, h('div', { class: 'group-row' }, h('span', { class: 'muted' }, 'Group by'), by.element), groups.element, table, nothing, more);
  place.append(h('div', { class: 'page-head' }, h('h1', {}, 'Parked'), h('a', { href: '#/parked/audit' }, 'Who did what: the audit')), queueBoxes, box);

  const boxes = new Rows(queueBoxes, (q) => q.name, (q) => queueBox(q, () => { picked.queue = picked.queue === q.name ? '' : q.name; page.update(); }));
  const rows = new Rows(body, (m) => m.row, row);
  const page = {
    update() {
      boxes.show(quarantines().map((q) => ({ ...q, picked: picked.queue === q.name, oldest: oldest(q.name) })));
      const inQueue = messages().filter((m) => !picked.queue || m.queue === picked.queue);
      const counts = new Map();
      for (const m of inQueue) counts.set(m[picked.by] || '', (counts.get(m[picked.by] || '') || 0) + 1);
      if (picked.value !== null && !counts.has(picked.value)) picked.value = null;
      by.show(Object.entries(groupings).map(([value, label]) => ({ value, label })), picked.by);
      groups.show([{ value: all, label: 'All', count: inQueue.length }, ...[...counts].sort((a, b) => b[1] - a[1])
        .map(([value, count]) => ({ value, label: label(picked.by, value), count }))], picked.value === null ? all : picked.value);
      const meant = chosen();
      // What fills the screen comes first: a thousand rows at once would take longer than people wait for the first of them.
      const screen = rows.known.size === 0 && meant.length > firstRows;
      rows.show(screen ? meant.slice(0, firstRows) : meant);
      if (screen) requestAnimationFrame(() => setTimeout(page.update));
      const told = services().every((name) => known('parked:' + name));
      box.hidden = false;
      for (const element of [table, end, groups.element, by.element.parentNode]) element.hidden = inQueue.length === 0;
      put(nothing, told && inQueue.length === 0 ? empty(picked.queue ? `Nothing is parked in ${picked.queue}.` : 'Nothing is parked.',
        'A message comes here when its consumer has tried it as often as the policy allows, or knows that trying again is of no use.') : !told ? empty('Looking…') : null);
      say(replay, meant.length === 1 ? 'Replay it…' : `Replay these ${meant.length}…`);
      say(discard, meant.length === 1 ? 'Discard it…' : 'Discard…');
      for (const button of [replay, discard]) button.disabled = meant.length === 0;
      say(more, services().some((name) => part('parked:' + name, 'next')) ? 'The first 1,000 of a service are shown.' : '');
      toggle(box, 'stale', stale('parked:account', 'parked:transfer'));
    },
  };
  page.update();
  return page;
}

const all = '\u0000all'; // no group is called so

function messages() {
  return services().flatMap((name) => topic('parked:' + name).keys.filter((k) => k !== 'next').map((k) => ({ ...part('parked:' + name, k), row: k })));
}

function chosen() {
  return messages().filter((m) => (!picked.queue || m.queue === picked.queue) && (picked.value === null || (m[picked.by] || '') === picked.value))
    .sort((a, b) => Date.parse(b.parkedAt || 0) - Date.parse(a.parkedAt || 0));
}

function oldest(queue) {
  const times = list('parked:' + owner(queue)).filter((m) => m.queue === queue && m.parkedAt).map((m) => Date.parse(m.parkedAt));
  return times.length ? Math.min(...times) : null;
}

// orders says to each service which of its messages are meant: by the filter, or by their keys when no filter says it.
function orders() {
  const meant = chosen();
  return services().map((service) => {
    const mine = meant.filter((m) => owner(m.queue) === service);
    const filter = picked.value === '' ? { ids: mine.map((m) => m.key) } : picked.value === null ? {} : { [picked.by]: picked.value };
    return { service, count: mine.length, filter: { ...filter, ...(picked.queue ? { queue: picked.queue } : {}), limit: mine.length } };
  }).filter((o) => o.count > 0);
}

function label(by, value) {
  if (value === '') return nothingOf[by];
  return by === 'type' ? value.split('.').slice(-1)[0] : words(value);
}

function queueBox({ name }, onclick) {
  const depth = h('span', { class: 'figure-value' });
  const note = h('span', { class: 'figure-note' });
  const element = h('button', { type: 'button', class: 'queue-box', onclick }, h('span', { class: 'mono' }, name), depth, note);
  return {
    element,
    update(q) {
      say(depth, q.depth);
      say(note, q.depth === 0 ? 'empty' : q.oldest ? `oldest ${span(Date.now() - q.oldest)}` : 'waiting');
      toggle(element, 'holds', q.depth > 0);
      attribute(element, 'aria-pressed', String(q.picked));
    },
  };
}

export function messageAddress(m) { return `#/parked/message/${encodeURIComponent(m.queue)}/${encodeURIComponent(m.key)}`; }

function row(m) {
  const address = messageAddress(m);
  const link = h('a', { class: 'row-link mono', href: address, title: m.key }, short(m.key));
  const when = h('td', {});
  const cells = [when, h('td', {}, h('span', { class: 'reason' }, words(m.reason) || '–'), h('span', { class: 'under' }, m.class === m.reason ? '' : words(m.class))),
    h('td', {}, m.type ? h('span', { title: m.type }, m.type.split('.').slice(-1)[0]) : h('span', { class: 'muted' }, 'none'), h('span', { class: 'under mono' }, m.queue)),
    h('td', {}, link), h('td', { class: 'end' }, m.attempts || '–'), h('td', { class: 'error', title: m.error }, m.error)];
  const element = h('tr', { class: 'link', onclick: (event) => { if (!event.target.closest('a, button')) location.hash = address; } }, cells);
  return { element, update() { say(when, m.parkedAt ? moment(m.parkedAt) : '–'); } };
}
