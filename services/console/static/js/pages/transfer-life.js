// One transfer's life: what both services and the quarantines did with it, in one timeline.

import { Rows, attribute, h, put, say, toggle } from '../dom.js';
import { known, part, stale } from '../live.js';
import { owner } from '../names.js';
import { money, span, words } from '../format.js';
import { amount, card, empty, facts, id as idButton, status, time } from '../widgets.js';

export function transferLife(id) {
  const head = h('div', {});
  const steps = h('ol', { class: 'life' });
  const wait = h('p', { class: 'life-wait', role: 'status' });
  const nothing = h('div', {});
  const element = card('Transfer', { name: 'life-card', end: h('a', { href: '#/transfers' }, 'New transfer') }, head, nothing, h('h3', { class: 'life-title' }, 'What happened'), steps, wait);
  const rows = new Rows(steps, (e) => e.key, (e) => step(e));
  let last = '';
  const update = () => {
    const t = part('transfer:' + id, 'transfer');
    const leg = part('leg:' + id, 'leg');
    put(nothing, known('transfer:' + id) && !t ? empty('No transfer has this id.', id) : null);
    const events = collect(t, id);
    const now = JSON.stringify([t, leg]) + (t ? owner(t.sourceAccountId, update) + owner(t.destinationAccountId, update) : '');
    if (t && now !== last) put(head, summaryOf(t, leg, update));
    last = now;
    const begin = events.length ? Date.parse(events[0].at) : 0;
    rows.show(events.map((e, i) => ({ ...e, since: i ? Date.parse(e.at) - begin : 0, first: i === 0, transfer: t, again: update })));
    const open = t && ['REQUESTED', 'DEBITED', 'REFUNDING'].includes(t.status);
    say(wait, !t ? '' : open ? `${waitsFor(t.status)} ${span(Date.now() - Date.parse(t.updatedAt))}` : `Ended after ${span(Date.parse(t.updatedAt) - Date.parse(t.createdAt))}.`);
    toggle(wait, 'open', open);
    toggle(element, 'stale', stale('transfer:' + id));
  };
  return { element, update };
}

function waitsFor(state) {
  return { REQUESTED: 'Waiting for account to debit:', DEBITED: 'Waiting for account to credit:', REFUNDING: 'Waiting for account to pay back:' }[state];
}

function summaryOf(t, leg, again) {
  return [
    h('div', { class: 'sum-line' }, h('span', { class: 'sum' }, amount(t.amountMinor, t.currency)), status(t.status)),
    facts(
      ['From', h('a', { href: '#/accounts/' + t.sourceAccountId }, owner(t.sourceAccountId, again))],
      ['To', h('a', { href: '#/accounts/' + t.destinationAccountId }, owner(t.destinationAccountId, again))],
      ['Reason', t.reason ? words(t.reason) : ''],
      ['Reference', t.reference],
      ['Account says', leg ? words(leg.state) + (leg.reason ? ` (${words(leg.reason).toLowerCase()})` : '') : ''],
      ['Id', idButton(t.id, { full: true, label: 'transfer id' })]),
  ];
}

// collect puts together what both services tell. A service that tells no life is represented by the facts of the transfer.
function collect(t, id) {
  const lives = [part('transfer:' + id, 'life'), part('leg:' + id, 'life')].filter(Boolean);
  const events = lives.flatMap((l) => (l.events || []).map((e, i) => ({ ...e, service: l.service, key: `${l.service}/${i}` })));
  if (!lives.some((l) => l.service === 'transfer' && l.events?.length)) {
    for (const e of t?.timeline || []) events.push({ kind: 'FACT', at: e.at, detail: e.fact, messageId: e.messageId, service: 'transfer', key: `fact/${e.fact}/${e.messageId}` });
  }
  return events.map((e, i) => ({ ...e, i })).sort((a, b) => Date.parse(a.at) - Date.parse(b.at) || a.i - b.i);
}

const tones = { FAILED: 'bad', PARKED: 'bad', WAITING: 'warn', DISCARDED: 'bad', REPLAYED: 'warn', POSTED: 'good', FACT: 'good' };

function step(e) {
  const when = h('span', { class: 'life-when' });
  const text = h('span', { class: 'life-text' });
  const more = h('span', { class: 'life-more' });
  const who = h('span', { class: 'life-service' });
  const message = h('span', {});
  const element = h('li', {}, h('i', { 'aria-hidden': 'true' }), h('div', {}, h('div', { class: 'life-line' }, text, who), more, message), when);
  let shown = '';
  return {
    element,
    update(now) {
      attribute(element, 'class', `life-step ${now.service} ${tones[now.kind] || ''}`);
      say(text, sentence(now));
      say(who, now.service);
      say(more, detail(now));
      // With the message: while the transfer is under way, another event of the same moment can come into this place.
      const key = [now.at, now.since, now.messageId].join();
      if (key !== shown) {
        shown = key;
        put(when, time(now.at, true), now.first ? null : h('span', { class: 'life-since' }, '+' + span(now.since)));
        put(message, now.messageId ? ['message ', idButton(now.messageId, { label: 'message id' })] : null);
        message.className = 'life-message';
      }
    },
  };
}

const factsInWords = {
  REQUESTED: 'Requested', DEBITED: 'Debited', DEBIT_REJECTED: 'The debit was refused', CREDITED: 'Credited', CREDIT_REJECTED: 'The credit was refused',
  REFUNDED: 'Paid back', TIMED_OUT: 'Open for too long: turned back',
};

// sentence says in words what happened.
function sentence(e) {
  const attempt = e.attempt > 1 ? `, attempt ${e.attempt}` : '';
  const type = e.type ? e.type.split('.').at(-1) : 'a message';
  switch (e.kind) {
    case 'ACCEPTED': return 'Accepted';
    case 'SENT': return `Sent ${type}`;
    case 'WAITING': return `Waits${e.nextDelayMs ? ' ' + span(e.nextDelayMs) : ''} before the next attempt`;
    case 'HANDLED': return `Handled ${type}${attempt}`;
    case 'FACT': return factsInWords[e.detail] || factsInWords[e.reason] || words(e.detail || e.type);
    case 'POSTED': return `Posted ${posted(e)}`;
    case 'FAILED': return `Failed${e.attempt ? `, attempt ${e.attempt}` : ''}: ${words(e.class).toLowerCase() || 'for an unknown reason'}`;
    case 'PARKED': return 'Given up, and parked';
    case 'REPLAYED': return `Replayed${e.by ? ` by ${e.by}` : ''}`;
    case 'DISCARDED': return `Discarded${e.by ? ` by ${e.by}` : ''}`;
  }
  return words(e.kind);
}

function posted(e) {
  const sum = e.amountMinor === undefined ? '' : money(e.amountMinor, e.currency || e.transfer?.currency || '', { sign: true });
  return [sum, e.accountId ? `for ${owner(e.accountId, e.again)}` : ''].filter(Boolean).join(' ');
}

function detail(e) {
  if (e.kind === 'ACCEPTED' && e.transfer) {
    const t = e.transfer;
    return `${money(t.amountMinor, t.currency)} ${t.currency} from ${owner(t.sourceAccountId, e.again)} to ${owner(t.destinationAccountId, e.again)}`;
  }
  const said = e.kind === 'FACT' ? (factsInWords[e.detail] ? '' : e.detail) : e.detail;
  return [e.kind === 'FACT' ? '' : e.reason ? words(e.reason) : '', said, e.queue && e.kind !== 'HANDLED' ? e.queue : ''].filter(Boolean).join(' · ');
}

