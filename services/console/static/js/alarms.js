// What would page somebody. The rules are those of the monitoring's alerts, as far as they can be told from the present alone.

import { Rows, h, put, say, attribute } from './dom.js';
import { connection, troubled } from './live.js';
import { conserved, consumers, goingRun, isQuarantine, ledger, metric, owner, quarantines, queues, services } from './bank.js';
import { clock, money, plural, span } from './format.js';

// alarms answers [{key, tone, text, more, link}], the worst first.
export function alarms() {
  const found = [];
  const bad = (key, text, more, link) => found.push({ key, tone: 'bad', text, more, link });
  const warn = (key, text, more, link) => found.push({ key, tone: 'warn', text, more, link });

  if (!connection.up && connection.since) {
    bad('connection', `The console does not answer since ${clock(connection.since)}`, 'What is shown is what was last known. It is tried again all the time.');
    return found;
  }
  for (const { upstream, silent, since, reason } of troubled()) {
    bad('source/' + upstream, `${upstream} ${silent ? 'does not answer' : 'answers with errors'} since ${clock(since)}`, withoutName(reason, upstream));
  }
  const away = new Set(troubled().filter((s) => s.silent).map((s) => s.upstream));
  if (!conserved()) {
    for (const c of ledger().currencies.filter((c) => BigInt(c.sumMinor) !== 0n)) {
      bad('conservation/' + c.currency, `Money is not conserved: the books in ${c.currency} are off by ${money(c.sumMinor, c.currency)}`,
        'Customers, transit and funding must add up to 0 at every moment.', ['#/', 'Overview']);
    }
  }
  for (const c of consumers()) {
    if (c.breaker === 'open') bad('breaker/' + c.queue, `${c.queue}: the breaker is open`, 'Its messages kept failing, so it takes none until what they need is back. No attempt is spent.');
    else if (c.breaker === 'half-open') warn('breaker/' + c.queue, `${c.queue}: the breaker is half-open`, 'One message at a time, to see whether they succeed again.');
    else if (c.paused) warn('budget/' + c.queue, `${c.queue}: the retry budget is used up`, 'It slows down instead of making a sick dependency sicker.');
  }
  for (const service of services()) serviceAlarms(service, bad, warn);
  for (const q of queues()) {
    // Of a service that does not answer it is said already that it does not.
    if (!isQuarantine(q.name) && !q.name.includes('.retry') && q.consumers === 0 && !away.has(q.name.split('.')[0])) {
      bad('reader/' + q.name, `Nobody reads ${q.name}`, q.ready ? `${plural(q.ready, 'message')} wait.` : 'Messages will wait there.');
    }
  }
  for (const q of quarantines().filter((q) => q.depth > 0)) {
    const service = owner(q.name);
    const age = metric(service, 'quarantine_oldest_age_seconds', { queue: q.name }) || 0;
    (age > 3600 ? bad : warn)('parked/' + q.name, `${plural(q.depth, 'message')} in ${q.name}`,
      age > 0 ? `The oldest has waited for ${span(age * 1000)}. Somebody has to decide about it.` : 'Given up; somebody has to decide about it.', ['#/parked', 'Look']);
  }
  const run = goingRun();
  if (run) warn('exercise', `Exercise ${run.exercise} is running`, 'What breaks now breaks on purpose, and is put back.', [`#/exercises/${run.exercise}`, 'Watch']);
  return found.sort((a, b) => (a.tone === 'bad' ? 0 : 1) - (b.tone === 'bad' ? 0 : 1));
}

function serviceAlarms(service, bad, warn) {
  if (metric(service, 'messaging_session_up') === 0) bad('session/' + service, `${service} has lost the broker`, 'It connects again by itself; what it wants to say waits in its outbox.');
  const age = metric(service, 'outbox_oldest_age_seconds') || 0;
  if (age > 30) bad('outbox/' + service, `The outbox of ${service} is not emptied`, `The oldest message in it is ${span(age * 1000)} old.`);
  const aside = metric(service, 'outbox_set_aside_messages') || 0;
  if (aside > 0) warn('aside/' + service, `${plural(aside, 'message')} of ${service} were set aside`, 'The broker refuses them for themselves: bin/bank outbox.');
  const overdue = metric(service, 'transfers_overdue') || 0;
  if (overdue > 0) bad('overdue', `${plural(overdue, 'transfer')} ${overdue === 1 ? 'is' : 'are'} open past the timeout`, 'Money may be in transit.', ['#/transfers', 'Look']);
}

function withoutName(reason, name) {
  return String(reason || '').replace(new RegExp(`^${name} (does not answer|answers \\d+)[^:]*: `), '');
}

let rows = null;
let strip = null;

// notices shows the alarms above the page: all of them on the overview, their number and the worst one elsewhere.
export function notices(place, found, page) {
  if (!rows) {
    const all = h('ul', { class: 'alarms', 'aria-label': 'What needs somebody' });
    strip = h('a', { class: 'alarm-strip', href: '#/', hidden: true });
    place.append(all, strip);
    rows = new Rows(all, (a) => a.key, () => {
      const text = h('strong', {});
      const more = h('span', { class: 'alarm-more' });
      const end = h('span', { class: 'alarm-link' });
      const element = h('li', {}, h('i', { 'aria-hidden': 'true' }), h('div', {}, text, ' ', more), end);
      return {
        element,
        update(a) {
          attribute(element, 'class', `alarm ${a.tone}`);
          say(text, a.text);
          say(more, a.more);
          if (a.link && !end.firstChild) put(end, h('a', { href: a.link[0] }, a.link[1]));
        },
      };
    });
  }
  const overview = page?.path === '';
  rows.show(overview ? found : found.filter((a) => a.key === 'connection' || a.key.startsWith('source/')));
  const rest = overview ? [] : found.filter((a) => a.key !== 'connection' && !a.key.startsWith('source/') && !(page?.path === 'parked' && a.key.startsWith('parked/')) && !(page?.path === 'exercises' && a.key === 'exercise'));
  strip.hidden = rest.length === 0;
  if (rest.length) {
    attribute(strip, 'class', `alarm-strip ${rest[0].tone}`);
    say(strip, rest[0].text + (rest.length > 1 ? ` · and ${rest.length - 1} more` : ''));
  }
}

