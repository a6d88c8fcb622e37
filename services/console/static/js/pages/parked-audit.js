// Who replayed or discarded what.

import { h, put } from '../dom.js';
import { call } from '../api.js';
import { services } from '../bank.js';
import { moment, short, words } from '../format.js';
import { card, empty, problemText } from '../widgets.js';

export function parkedAudit(place) {
  const content = h('div', {}, empty('Looking…'));
  place.append(h('p', { class: 'crumb' }, h('a', { href: '#/parked' }, '← Parked')), h('div', { class: 'page-head' }, h('h1', {}, 'Audit'), h('p', { class: 'muted' }, 'What was done with parked messages, newest first.')), content);
  const entries = [];
  const next = Object.fromEntries(services().map((name) => [name, '']));
  let gone = false;
  const load = async () => {
    try {
      for (const service of services().filter((name) => next[name] !== null)) {
        const found = await call('GET', `/api/parked/${service}/audit?limit=50` + (next[service] ? '&after=' + encodeURIComponent(next[service]) : ''));
        entries.push(...found.items);
        next[service] = found.next;
      }
      if (gone) return;
      entries.sort((a, b) => Date.parse(b.startedAt) - Date.parse(a.startedAt));
      put(content, card('Actions', {}, entries.length ? auditTable(entries) : empty('Nobody has replayed or discarded anything yet.'),
        services().some((name) => next[name]) ? h('div', { class: 'actions more' }, h('button', { type: 'button', onclick: load }, 'Show older ones')) : null));
    } catch (wrong) {
      if (!gone) put(content, h('div', { class: 'problem', role: 'alert' }, problemText(wrong)));
    }
  };
  load();
  return { close() { gone = true; } };
}

const tones = { DONE: 'good', FAILED: 'bad', UNKNOWN: 'warn', STARTED: 'warn' };

export function auditTable(entries) {
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Audit' }, h('table', { class: 'audit' },
    h('thead', {}, h('tr', {}, ['When', 'Who', 'What', 'Outcome', 'Message', 'About'].map((n) => h('th', { scope: 'col' }, n)))),
    h('tbody', {}, entries.map((e) => h('tr', {},
      h('td', {}, h('time', { datetime: e.startedAt }, moment(e.startedAt))), h('td', {}, e.operator), h('td', {}, words(e.action)),
      h('td', {}, h('span', { class: `status ${tones[e.outcome] || 'plain'}` }, words(e.outcome))),
      h('td', {}, h('span', { class: 'mono', title: e.key }, short(e.key)), h('span', { class: 'under mono' }, e.queue)),
      h('td', {}, [e.because, e.target ? `to ${e.target}` : '', e.detail].filter(Boolean).join(' · ')))))));
}
