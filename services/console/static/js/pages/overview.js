// Overview: the whole bank on one page.

import { Rows, attribute, h, s, say, toggle } from '../dom.js';
import { at, known, stale } from '../live.js';
import { conserved, consumers, inWords, isQuarantine, ledger, metric, openStatuses, others, parkedCount, queues, services, summary } from '../bank.js';
import { alarms } from '../alarms.js';
import { count, money, perSecond, span } from '../format.js';
import { rate } from '../rates.js';
import { card } from '../widgets.js';
import { register } from '../pages.js';
import { Topology, described } from './topology.js';

register({
  path: '', title: 'Overview',
  topics: () => ['topology', 'summary'],
  show(place) {
    const text = h('p', { class: 'visually-hidden', id: 'topology-text' });
    const figure = h('div', { class: 'figure' });
    const topology = new Topology(figure);
    const parts = [figuresStrip(), conservation(), consumersTable(), othersTable()];
    const quiet = h('p', { class: 'quiet-line' });
    place.append(
      h('div', { class: 'page-head' }, h('h1', {}, 'Overview'), quiet),
      parts[0].element,
      card('Flow', {
        name: 'flow', end: h('ul', { class: 'legend' },
          h('li', { class: 'legend-dot' }, 'a message'), h('li', { class: 'legend-flow' }, 'events'), h('li', { class: 'legend-dead' }, 'retries, given up')),
      }, figure, text, queueTable()),
      h('div', { class: 'columns' }, parts[1].element, parts[2].element), parts[3].element);
    return {
      update() {
        topology.update();
        say(text, 'The flow of messages. ' + described());
        for (const p of parts) p.update();
        updateQueueTable();
        const n = alarms().length;
        say(quiet, n === 0 && known('queues') ? 'Nothing needs anybody.' : '');
      },
      close() { topology.close(); },
    };
  },
});

// figuresStrip are the few figures that one looks at first.
function figuresStrip() {
  const history = [];
  const figures = {};
  const line = s('polyline', { class: 'spark', points: '' });
  const make = (key, label, extra) => {
    const value = h('span', { class: 'figure-value' }, '–');
    const note = h('span', { class: 'figure-note' });
    const element = h('div', { class: 'figure-box' }, h('span', { class: 'figure-label' }, label), value, note, extra);
    figures[key] = { value, note, element };
    return element;
  };
  const element = h('div', { class: 'figures' },
    make('pace', 'Transfers ended', s('svg', { class: 'sparkline', viewBox: '0 0 120 28', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, line)),
    make('open', 'Open transfers'), make('transit', 'In transit'), make('work', 'Messages waiting'), make('parked', 'Parked'), make('outbox', 'Oldest in an outbox'));
  let last = 0;
  return {
    element,
    update() {
      const all = summary();
      if (all) {
        const ended = all.COMPLETED + all.REJECTED + all.REFUNDED;
        const { rate: r } = rate('ended', ended, performance.now());
        say(figures.pace.value, `${perSecond(r)}/s`);
        say(figures.pace.note, `${count(ended)} so far`);
        const now = performance.now();
        if (now - last > 900) {
          last = now;
          history.push(r);
          if (history.length > 60) history.shift();
          const top = Math.max(1, ...history);
          attribute(line, 'points', history.map((v, i) => `${120 - (history.length - 1 - i) * 2},${26 - v / top * 24}`).join(' '));
        }
        const open = openStatuses.reduce((n, name) => n + all[name], 0);
        say(figures.open.value, count(open));
        say(figures.open.note, openStatuses.filter((name) => all[name]).map((name) => `${count(all[name])} ${name.toLowerCase()}`).join(', '));
      }
      const waiting = queues().filter((q) => !isQuarantine(q.name));
      say(figures.work.value, count(waiting.reduce((n, q) => n + q.ready, 0)));
      say(figures.work.note, `${count(waiting.reduce((n, q) => n + q.unacked, 0))} in hand`);
      const parked = parkedCount();
      say(figures.parked.value, count(parked));
      say(figures.parked.note, parked ? 'somebody has to decide' : others().length ? 'all quarantines empty' : 'both quarantines empty');
      toggle(figures.parked.element, 'warn', parked > 0);
      const ages = services().map((name) => metric(name, 'outbox_oldest_age_seconds') || 0);
      const oldest = Math.max(...ages);
      const silent = services().filter((name) => stale('metrics:' + name)); // of their outboxes nothing is known, least that they are empty
      say(figures.outbox.value, oldest > 0 ? span(oldest * 1000) : '–');
      say(figures.outbox.note, oldest > 0 ? services()[ages.indexOf(oldest)] : silent.length ? `not known of ${silent.join(', ')}`
        : others().length ? 'all outboxes empty' : 'both outboxes empty');
      toggle(figures.outbox.element, 'warn', oldest > 30);
      const l = ledger();
      if (l) {
        const moving = l.currencies.filter((c) => BigInt(c.inTransitMinor) !== 0n);
        say(figures.transit.value, moving.length === 0 ? '0' : money(moving[0].inTransitMinor, moving[0].currency));
        say(figures.transit.note, moving.length === 0 ? 'nothing under way' : moving.map((c) => c.currency).join(', ') + (moving.length > 1 ? ' …' : ''));
      }
      toggle(figures.open.element, 'stale', stale('summary'));
      toggle(figures.outbox.element, 'stale', silent.length > 0);
      toggle(figures.pace.element, 'stale', stale('summary'));
      toggle(figures.transit.element, 'stale', stale('ledger'));
      toggle(figures.work.element, 'stale', stale('queues'));
      toggle(figures.parked.element, 'stale', stale('queues'));
    },
  };
}

// conservation is the sum that must be 0 at every moment, for each currency, written down as one adds up by hand.
function conservation() {
  const list = h('div', { class: 'sums' });
  const waiting = h('p', { class: 'muted' }, 'The books are not known: account has not answered yet.');
  const verdict = h('span', { class: 'verdict' });
  const element = card('Conservation of money', { name: 'conservation', end: verdict }, waiting, list);
  const rows = new Rows(list, (c) => c.currency, (c) => {
    const values = ['in accounts', 'in transit', 'funding', 'sum'].map((label) => {
      const value = h('td', { class: 'end' });
      return { value, row: h('tr', {}, h('th', { scope: 'row' }, label), value) };
    });
    return {
      element: h('table', { class: 'sum-up' }, h('caption', {}, c.currency), h('tbody', {}, values.map((v) => v.row))),
      update({ currency, customersMinor, inTransitMinor, fundingMinor, sumMinor }) {
        [customersMinor, inTransitMinor, fundingMinor, sumMinor].forEach((v, i) => say(values[i].value, money(v, currency)));
        attribute(values[3].row, 'class', BigInt(sumMinor) === 0n ? 'good' : 'bad');
      },
    };
  });
  return {
    element,
    update() {
      const l = ledger();
      waiting.hidden = Boolean(l);
      if (!l) return;
      rows.show(l.currencies);
      say(verdict, conserved() ? 'Every cent is accounted for' : 'Money is missing, or has come from nowhere');
      attribute(verdict, 'class', 'verdict ' + (conserved() ? 'good' : 'bad'));
      toggle(element, 'stale', stale('ledger'));
    },
  };
}

function consumersTable() {
  const body = h('tbody', {});
  const element = card('Consumers', { name: 'consumers' }, h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Consumers' },
    h('table', {}, h('thead', {}, h('tr', {}, ['Queue', 'State', 'Breaker', 'Retry budget', 'Handled', 'Failed'].map((name, i) => h('th', { scope: 'col', class: i > 3 ? 'end' : null }, name)))), body)));
  const rows = new Rows(body, (c) => c.queue, (c) => {
    const cell = (label, kind) => h('td', { class: kind, 'data-label': label });
    const [state, breaker, budget] = [cell('State'), cell('Breaker'), cell('Retry budget')];
    const [handled, failed] = [cell('Handled', 'end'), cell('Failed', 'end')];
    const dot = h('i', { class: 'dot', 'aria-hidden': 'true' });
    const words = h('span', {});
    state.append(dot, words);
    const breakerText = h('span', { class: 'breaker' });
    breaker.append(breakerText);
    const meter = h('meter', { min: 0, max: 100, low: 20, optimum: 100, 'aria-label': `Retry budget of ${c.queue}` });
    const tokens = h('span', { class: 'tokens' });
    budget.append(meter, tokens);
    return {
      element: h('tr', {}, h('th', { scope: 'row', class: 'mono' }, c.queue), state, breaker, budget, handled, failed),
      update(now) {
        const { tone, text } = inWords(now);
        attribute(dot, 'class', 'dot ' + tone);
        say(words, text);
        say(breakerText, now.breaker === null ? 'off' : now.breaker + (now.opened ? `, opened ${now.opened}×` : ''));
        attribute(breakerText, 'class', 'breaker ' + ({ open: 'bad', 'half-open': 'warn' }[now.breaker] || ''));
        meter.hidden = now.tokens === undefined;
        if (now.tokens !== undefined) meter.value = now.tokens;
        say(tokens, now.tokens === undefined ? 'off' : Math.floor(now.tokens) + (now.limit !== undefined ? ` · at most ${perSecond(now.limit)}/s` : ''));
        const { rate: r } = rate('handled/' + now.queue, now.done, at('metrics:' + now.service));
        say(handled, `${perSecond(r)}/s`);
        say(failed, now.failures ? count(now.failures) : '0');
        toggle(failed, 'bad-text', now.failures > 0);
        toggle(this.element, 'stale', stale('metrics:' + now.service));
      },
    };
  });
  return { element, update() { rows.show(consumers()); } };
}

// othersTable are the services that somebody has added, with what every service tells: the drawing above knows nothing of them.
function othersTable() {
  const body = h('tbody', {});
  const element = card('Added services', { name: 'others' }, h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Added services' },
    h('table', {}, h('thead', {}, h('tr', {}, ['Service', 'State', 'Messages waiting', 'Parked'].map((name, i) => h('th', { scope: 'col', class: i > 1 ? 'end' : null }, name)))), body)));
  const rows = new Rows(body, (s) => s.name, ({ name }) => {
    const dot = h('i', { class: 'dot', 'aria-hidden': 'true' });
    const words = h('span', {});
    const [waiting, parked] = [h('td', { class: 'end' }), h('td', { class: 'end' })];
    return {
      element: h('tr', {}, h('th', { scope: 'row' }, name), h('td', {}, dot, words), waiting, parked),
      update() {
        const up = metric(name, 'messaging_session_up');
        const [tone, text] = stale('metrics:' + name) ? ['bad', 'Does not answer'] : !known('metrics:' + name) ? ['', 'Looking…'] : up === 0 ? ['bad', 'Has lost the broker'] : ['good', 'Running'];
        attribute(dot, 'class', 'dot ' + tone);
        say(words, text);
        const mine = queues().filter((q) => q.name.startsWith(name + '.'));
        const sum = (of) => count(of.reduce((n, q) => n + q.depth, 0));
        say(waiting, sum(mine.filter((q) => !isQuarantine(q.name))));
        say(parked, sum(mine.filter((q) => isQuarantine(q.name))));
        toggle(parked, 'bad-text', mine.some((q) => isQuarantine(q.name) && q.depth > 0));
      },
    };
  });
  return {
    element,
    update() {
      element.hidden = others().length === 0;
      rows.show(others().map((name) => ({ name })));
    },
  };
}

let queueRows;

// queueTable is the drawing as a table, for who wants figures or does not see drawings.
function queueTable() {
  const body = h('tbody', {});
  queueRows = new Rows(body, (q) => q.name, (q) => {
    const cells = [0, 1, 2, 3].map(() => h('td', { class: 'end' }));
    return {
      element: h('tr', {}, h('th', { scope: 'row', class: 'mono' }, q.name), cells),
      update(now) { [now.ready, now.unacked, now.consumers, now.published].forEach((n, i) => say(cells[i], count(n))); },
    };
  });
  return h('details', { class: 'as-table' }, h('summary', {}, 'The same as a table'),
    h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Queues' }, h('table', {},
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Queue'), ['Ready', 'In hand', 'Consumers', 'Published'].map((n) => h('th', { scope: 'col', class: 'end' }, n)))), body)));
}

function updateQueueTable() { queueRows.show(queues()); }

