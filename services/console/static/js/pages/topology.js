// The system drawn as it is: what is there and how deep comes from the broker, what is handled from the services. Each dot is a
// message that was counted; when there are too many to draw, a dot stands for several.

import { attribute, put, s, say, toggle } from '../dom.js';
import { at as toldAt, part, stale, topic } from '../live.js';
import { consumers, depth, inWords, isRetry, metric, queues, total } from '../bank.js';
import { count, perSecond, plural, span } from '../format.js';
import { rate } from '../rates.js';
import { eventsQueue, layout, pathOf, requestQueues } from './topology-layout.js';

const narrow = matchMedia('(max-width: 760px)');
const still = matchMedia('(prefers-reduced-motion: reduce)');
const mostDots = 6; // of one line in one second
const travel = 900; // ms

export class Topology {
  constructor(place) {
    this.place = place;
    this.redraw = () => { this.draw(); this.update(); };
    narrow.addEventListener('change', this.redraw);
    this.draw();
  }

  close() {
    narrow.removeEventListener('change', this.redraw);
    cancelAnimationFrame(this.frame);
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.dots = [];
    const l = layout(narrow.matches);
    this.edges = new Map();
    this.nodes = new Map();
    const svg = s('svg', { class: 'topology', viewBox: `0 0 ${l.w} ${l.h}`, role: 'img', 'aria-labelledby': 'topology-text' });
    svg.append(s('defs', {}, ['flow', 'dead', 'faint'].map((kind) => s('marker', {
      id: 'arrow-' + kind, class: 'arrow ' + kind, viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto-start-reverse',
    }, s('path', { d: 'M0 0.8 L7.2 4 L0 7.2 z' })))));
    if (l.zone) {
      svg.append(s('rect', { class: 'zone', x: l.zone.x, y: l.zone.y, width: l.zone.w, height: l.zone.h, rx: 14 }),
        s('text', { class: 'zone-name', x: l.zone.x + 14, y: l.zone.y + 20 }, 'Quarantine'));
    }
    const lines = s('g', {});
    this.dotLayer = s('g', { class: 'dots', 'aria-hidden': 'true' });
    const boxes = s('g', {});
    svg.append(lines, this.dotLayer, boxes);
    for (const e of l.edges) lines.append(this.line(e));
    for (const [name, n] of Object.entries(l.nodes)) boxes.append(this.box(name, n));
    put(this.place, svg);
  }

  line(e) {
    const path = s('path', { class: 'edge ' + e.kind, d: pathOf(e.points), 'marker-end': `url(#arrow-${e.kind})` });
    const label = e.at ? s('text', { class: 'edge-rate', x: e.at[0], y: e.at[1], 'text-anchor': e.start ? 'start' : 'middle' }) : null;
    this.edges.set(e.id, { path, label, length: 0 });
    return s('g', {}, path, label);
  }

  box(name, { kind, x, y, w, h }) {
    const g = s('g', { class: `node ${kind} ${kind === 'service' ? name : ''}`, transform: `translate(${x} ${y})` });
    const node = { g, kind, w, h };
    if (kind === 'exchange') {
      const tall = h > 100;
      g.append(s('rect', { width: w, height: h, rx: tall ? 22 : h / 2 }),
        s('text', { class: 'name', x: w / 2, y: h / 2 - 2, 'text-anchor': 'middle' }, name),
        node.sub = s('text', { class: 'sub', x: w / 2, y: h / 2 + 13, 'text-anchor': 'middle' }));
    } else if (kind === 'service') {
      const y0 = h > 100 ? 34 : 26;
      g.append(s('rect', { width: w, height: h, rx: 14 }), s('text', { class: 'title', x: 16, y: y0 }, name),
        node.mark = s('circle', { class: 'mark', cx: w - 18, cy: y0 - 5, r: 5 }));
      node.lines = [0, 1, 2, 3].map((i) => {
        const line = s('text', { class: 'sub', x: 16, y: y0 + 20 + i * 17 });
        g.append(line);
        return line;
      });
      if (h < 100) node.lines.splice(1);
    } else {
      node.name = s('text', { class: 'name', x: 12, y: 21 }, name);
      g.append(s('rect', { width: w, height: h, rx: 8 }), node.name,
        node.depth = s('text', { class: 'depth', x: 12, y: 46 }),
        node.sub = s('text', { class: 'sub', x: w - 12, y: 45, 'text-anchor': 'end' }),
        s('rect', { class: 'fill-back', x: 12, y: h - 8, width: w - 24, height: 3, rx: 1.5 }),
        node.fill = s('rect', { class: 'fill', x: 12, y: h - 8, width: 0, height: 3, rx: 1.5 }));
    }
    this.nodes.set(name, node);
    return g;
  }

  // update shows the present, and lets the dots go of what has been counted since the last time.
  update() {
    this.showQueues();
    this.showExchanges();
    this.showServices();
    this.showRates();
    toggle(this.place, 'stale', stale('queues'));
  }

  showQueues() {
    const all = queues();
    const there = topic('queues').told;
    for (const [name, node] of this.nodes) {
      if (!node.depth) continue;
      const meant = name === 'retry' ? all.filter((q) => isRetry(q.name)) : all.filter((q) => q.name === name);
      toggle(node.g, 'missing', there && meant.length === 0);
      const ready = meant.reduce((n, q) => n + q.ready, 0);
      const unacked = meant.reduce((n, q) => n + q.unacked, 0);
      const shown = node.kind === 'parked' ? ready + unacked : ready;
      say(node.depth, there && meant.length === 0 ? 'not there' : count(shown));
      say(node.sub, this.subOf(name, node, meant, unacked));
      toggle(node.g, 'holds', shown > 0);
      attribute(node.fill, 'width', (node.w - 24) * Math.min(1, Math.log10(1 + shown) / 4));
      if (name === 'retry') say(node.name, meant.length > 1 ? `retry, ${meant.length} tiers` : narrow.matches ? 'transfer.account-events.retry' : '…account-events.retry');
    }
  }

  subOf(name, node, meant, unacked) {
    if (node.kind === 'parked') return depth(name) > 0 ? 'waiting for somebody' : 'empty';
    if (name === 'retry') return meant.length === 1 && meant[0].ttlMs ? `each for ${span(meant[0].ttlMs)}` : '';
    return unacked > 0 ? `${count(unacked)} in hand` : meant[0]?.consumers === 0 ? 'no reader' : '';
  }

  showExchanges() {
    for (const [name, node] of this.nodes) {
      if (node.kind !== 'exchange') continue;
      const found = part('topology', 'exchange/' + name);
      toggle(node.g, 'missing', topic('topology').told && !found);
      say(node.sub, found ? found.type : topic('topology').told ? 'not there' : '');
    }
  }

  showServices() {
    const all = consumers();
    for (const service of ['account', 'transfer']) {
      const node = this.nodes.get(service);
      const mine = all.filter((c) => c.service === service);
      const states = mine.map(inWords);
      const worst = states.find((w) => w.tone === 'bad') || states.find((w) => w.tone === 'warn') || states[0];
      const { source } = topic('metrics:' + service);
      const away = source && !source.ok;
      const waiting = metric(service, 'outbox_waiting_messages') || 0;
      const words = away ? ['does not answer'] : !worst ? ['…'] : [
        worst.tone === 'good' ? 'flowing' : worst.text.split(':')[0].toLowerCase(),
        plural(mine.length, 'consumer'),
        waiting > 0 ? `outbox: ${count(waiting)}` : 'outbox empty',
        metric(service, 'messaging_session_up') === 0 ? 'no broker' : '',
      ];
      node.lines.forEach((line, i) => say(line, node.lines.length === 1 ? words.filter(Boolean).slice(0, 3).join(' · ') : words[i] || ''));
      attribute(node.mark, 'class', 'mark ' + (away ? 'bad' : worst?.tone || ''));
      toggle(node.g, 'away', away);
    }
  }

  showRates() {
    const at = (service) => toldAt('metrics:' + service);
    this.flow('requests', total('transfer', 'outbox_published_total', { outcome: 'acked' }), at('transfer'));
    this.flow('answers', total('account', 'outbox_published_total', { outcome: 'acked' }), at('account'));
    for (const queue of requestQueues) {
      this.flow('in/' + queue, this.arrived('account', queue), at('account'));
      this.flow('work/' + queue, this.handled('account', queue), at('account'));
      this.flow('error/' + queue, total('account', 'messaging_quarantined_total', { queue }), at('account'));
    }
    this.flow('events', this.arrived('transfer', eventsQueue), at('transfer'));
    this.flow('work/' + eventsQueue, this.handled('transfer', eventsQueue), at('transfer'));
    const retried = total('transfer', 'messaging_deliveries_total', { queue: eventsQueue, outcome: 'retried' });
    const given = total('transfer', 'messaging_quarantined_total', { queue: eventsQueue });
    this.flow('rejected', retried, at('transfer'));
    this.flow('waits', retried, at('transfer'));
    const waiting = queues().filter((q) => isRetry(q.name)).reduce((n, q) => n + q.depth, 0);
    this.returned = Math.max(this.returned || 0, retried - waiting); // what went in and is no longer there has come back
    this.flow('returns', this.returned, toldAt('queues'));
    this.flow('gives up', given, at('transfer'));
    this.flow('parks', given, at('transfer'));
  }

  handled(service, queue) {
    return total(service, 'messaging_deliveries_total', { queue, outcome: ['done', 'retried', 'quarantined'] });
  }

  // arrived is what has come into a queue: what has left it, and what is in it. The broker's own counter is told every five seconds
  // only.
  arrived(service, queue) { return this.handled(service, queue) + depth(queue); }

  // flow shows one line's rate.
  flow(id, counter, at) {
    const e = this.edges.get(id);
    if (at === undefined || e.seen === at) return;
    e.seen = at;
    const { rate: r, grown } = rate('edge/' + id, counter, at);
    if (e.label) say(e.label, r >= 0.05 ? `${perSecond(r)}/s` : '');
    toggle(e.path, 'busy', r >= 0.05);
    if (grown > 0 && !still.matches && !document.hidden) this.send(e, Math.min(mostDots, Math.ceil(grown)));
  }

  send(e, n) {
    e.length ||= e.path.getTotalLength();
    const now = performance.now();
    for (let i = 0; i < n; i++) {
      const dot = s('circle', { r: 4, class: e.path.classList.contains('dead') ? 'dead' : '' });
      this.dots.push({ dot, e, start: now + i * 1000 / n + Math.random() * 120 });
    }
    if (!this.frame) this.frame = requestAnimationFrame((t) => this.move(t));
  }

  move(t) {
    this.dots = this.dots.filter(({ dot, e, start }) => {
      const way = (t - start) / Math.max(travel, e.length * 2);
      if (way >= 1) { dot.remove(); return false; }
      if (way < 0) return true;
      if (!dot.parentNode) this.dotLayer.append(dot);
      const { x, y } = e.path.getPointAtLength(e.length * (way < 0.5 ? 2 * way * way : 1 - 2 * (1 - way) * (1 - way)));
      dot.setAttribute('cx', x);
      dot.setAttribute('cy', y);
      return true;
    });
    this.frame = this.dots.length ? requestAnimationFrame((next) => this.move(next)) : 0;
  }
}

// described is the drawing in words, for who does not see it.
export function described() {
  return queues().map((q) => `${q.name}: ${plural(q.depth, 'message')}`).join('; ');
}

