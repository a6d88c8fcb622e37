// One parked message with everything in it: why it is here, the way it went, its headers and its body.

import { h, put } from '../dom.js';
import { call } from '../api.js';
import { owner } from '../bank.js';
import { moment, words } from '../format.js';
import { card, choices, empty, facts, id as idButton, problemText } from '../widgets.js';
import { discardDialog, forecastMark, order, replayDialog } from './parked-run.js';
import { auditTable } from './parked-audit.js';
import { laps } from './laps.js';
import { pretty } from './pretty.js';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function parkedMessage(place, queue, key) {
  const service = owner(queue);
  const content = h('div', {}, empty('Looking…'));
  place.append(h('p', { class: 'crumb' }, h('a', { href: '#/parked' }, '← Parked')), content);
  let gone = false;
  const load = async () => {
    try {
      const m = await call('GET', `/api/parked/${service}/message/${encodeURIComponent(queue)}/${encodeURIComponent(key)}`);
      if (!gone) show(content, m, service, load);
    } catch (wrong) {
      if (gone) return;
      if (wrong.status === 404) return showGone(content, service, key);
      put(content, h('div', { class: 'problem', role: 'alert' }, problemText(wrong)), h('div', { class: 'actions' }, h('button', { type: 'button', onclick: load }, 'Look again')));
    }
  };
  load();
  return { close() { gone = true; } };
}

function showGone(content, service, key) {
  const audit = h('div', {});
  put(content, h('div', { class: 'page-head' }, h('h1', { class: 'mono' }, key)), card('This message is no longer parked', {}, h('p', {}, 'It was replayed or discarded. If it failed again, it comes back here after its attempts.')), audit);
  showAudit(audit, service, key);
}

async function showAudit(place, service, key) {
  try {
    const found = await call('GET', `/api/parked/${service}/audit?id=${encodeURIComponent(key)}&limit=20`);
    if (found.items.length) put(place, card('What was done with it', {}, auditTable(found.items)));
  } catch { /* the message itself is what one came for */ }
}

function show(content, m, service, reload) {
  const orders = [{ service, count: m.copies, filter: { ids: [m.key], queue: m.queue, limit: m.copies } }];
  const forecast = h('span', { class: 'muted' }, 'Looking what a replay would do…');
  const audit = h('div', {});
  put(content,
    h('div', { class: 'page-head message-head' }, h('div', {}, h('h1', {}, m.type || 'A message without a type'), h('p', { class: 'muted' }, idButton(m.key, { full: true, label: 'message key' }))),
      h('div', { class: 'actions' }, h('button', { class: 'primary', type: 'button', onclick: () => replayDialog(orders, reload) }, 'Replay…'),
        h('button', { class: 'danger', type: 'button', onclick: () => discardDialog(orders, reload) }, 'Discard…'))),
    h('div', { class: 'message' },
      h('div', { class: 'stack-cards' },
        card('Why it is here', {}, m.error ? h('p', { class: 'error-box' }, m.error) : null, facts(
          ['If replayed', forecast],
          ['Reason', words(m.reason)], ['Class', m.class],
          ['Attempts', m.attempts || ''], ['Parked', m.parkedAt ? `${moment(m.parkedAt)} in ${m.queue}` : m.queue],
          ['First failed', m.firstFailedAt ? moment(m.firstFailedAt) : ''],
          ['Failed in', m.originQueue], ['Came through', m.originExchange ? `${m.originExchange}, key ${m.originRoutingKey}` : m.originRoutingKey],
          ['Transfer', m.transferId ? uuid.test(m.transferId) ? h('a', { href: '#/transfers/' + m.transferId.toLowerCase() }, m.transferId) : m.transferId : ''],
          ['Copies', m.copies > 1 ? m.copies : ''], ['Replayed', m.replayCount ? `${m.replayCount}×` : '']))),
      h('div', { class: 'stack-cards' }, bodyCard(m.body))),
    h('div', { class: 'stack-cards' }, card('The way it went', {}, laps(m), deathTable(m.deaths)), headerCard(m), audit));
  order(service, 'replay', { ids: [m.key], queue: m.queue, limit: 1 }).then(
    ({ items: [item] }) => put(forecast, !item ? 'It is no longer there.' : item.outcome === 'REFUSED' ? `It is refused: ${item.detail}` : forecastMark(item.forecast)),
    (wrong) => put(forecast, wrong.message));
  showAudit(audit, service, m.key);
}

function bodyCard(body) {
  const box = h('pre', { tabindex: 0, 'aria-label': 'Body' });
  const note = h('p', { class: 'muted more' });
  const tidy = body.text === undefined ? null : pretty(body.text);
  const pick = choices('Show the body', show);
  function show(way) {
    pick.show([...(tidy ? [{ value: 'pretty', label: 'Pretty' }] : []), { value: 'raw', label: 'Raw' }], way);
    put(box, way === 'pretty' ? tidy : body.text ?? body.base64);
    put(note, `${body.size} bytes` + (body.text === undefined ? ', not UTF-8: written in base64' : tidy ? '' : ', no JSON'));
  }
  show(tidy ? 'pretty' : 'raw');
  return card('Body', { end: pick.element }, body.size === 0 ? empty('The body is empty.') : box, note);
}

function deathTable(deaths) {
  if (!deaths.length) return null;
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Deaths that the broker noted' }, h('table', { class: 'deaths' },
    h('thead', {}, h('tr', {}, ['Queue', 'Left it', 'Times', 'First', 'Came through'].map((n) => h('th', { scope: 'col', class: n === 'Times' ? 'end' : null }, n)))),
    h('tbody', {}, deaths.map((d) => h('tr', {}, h('td', { class: 'mono' }, d.queue), h('td', {}, d.reason), h('td', { class: 'end' }, d.count), h('td', {}, d.firstAt ? moment(d.firstAt) : '–'),
      h('td', { class: 'mono' }, [d.exchange || '(default exchange)', ...d.routingKeys].join(' · ')))))));
}

function headerCard(m) {
  const value = (v) => typeof v === 'string' ? v : JSON.stringify(v);
  const table = (entries) => h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Headers and properties' }, h('table', { class: 'headers' }, h('tbody', {},
    entries.map(([name, v]) => h('tr', {}, h('th', { scope: 'row', class: 'mono' }, name), h('td', { class: 'mono' }, value(v)))))));
  const headers = Object.entries(m.headers || {}).sort(([a], [b]) => a.localeCompare(b));
  const properties = Object.entries(m.properties || {});
  return card('Headers', {}, headers.length ? table(headers) : empty('It has no headers.'), properties.length ? [h('h3', { class: 'life-title' }, 'Properties'), table(properties)] : null);
}

