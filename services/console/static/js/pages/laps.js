// The way of a given-up message, drawn: above, its attempts in the queue that failed; below, where it waited between them.

import { s } from '../dom.js';
import { isRetry, queues } from '../bank.js';
import { span } from '../format.js';

const eventsQueue = 'transfer.account-events';
const most = 7; // laps that are drawn; more are told by a number

export function laps(m) {
  const waits = m.deaths.filter((d) => d.reason === 'expired' && d.queue !== m.originQueue);
  const waited = waits.reduce((n, d) => n + d.count, 0);
  const attempts = Math.max(m.attempts || 0, waited + (m.attempts ? 1 : 0));
  const moved = !m.attempts; // by the broker itself: no consumer has failed
  const drawn = Math.min(Math.max(attempts, 1), most);
  // transfer retries through the broker, and the copy that is parked no longer tells of its laps; account waits in process.
  const onBroker = waited > 0 || m.originQueue === eventsQueue && attempts > 1;
  const step = Math.min(150, 640 / drawn);
  const left = 24, top = 46, bottom = 118;
  const x = (i) => left + 16 + i * step;
  const width = x(drawn - 1) + 250;
  const height = onBroker ? 156 : 92;
  const svg = s('svg', { class: 'laps', width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': inWords(m, attempts, onBroker, moved) });
  svg.append(s('text', { class: 'lane', x: left, y: 16 }, m.originQueue || 'unknown queue'));
  if (onBroker) svg.append(s('text', { class: 'lane', x: left, y: height - 8 }, waits.map((d) => d.queue).join(', ') || retryQueues()));
  for (let i = 0; i < drawn - 1; i++) {
    const [a, b] = [x(i) + 13, x(i + 1) - 13];
    const middle = (a + b) / 2;
    svg.append(onBroker
      ? s('path', { class: 'lap', d: `M${a} ${top} C${a + 20} ${top} ${middle - 34} ${bottom} ${middle} ${bottom} S${b - 20} ${top} ${b} ${top}` })
      : s('path', { class: 'lap', d: `M${a} ${top} L${b} ${top}` }));
    if (onBroker) svg.append(s('circle', { class: 'wait', cx: middle, cy: bottom, r: 5 }));
  }
  const end = x(drawn - 1);
  svg.append(s('path', { class: 'lap last', d: `M${end + 13} ${top} L${end + 66} ${top}` }),
    s('rect', { class: 'parked', x: end + 68, y: top - 18, width: 150, height: 36, rx: 8 }),
    s('text', { class: 'parked-name', x: end + 143, y: top + 4, 'text-anchor': 'middle' }, m.queue.endsWith('_error') ? '…_error' : m.queue));
  for (let i = 0; i < drawn; i++) {
    const n = attempts > most && i >= most - 2 ? attempts - (drawn - 1 - i) : i + 1;
    svg.append(s('circle', { class: 'attempt', cx: x(i), cy: top, r: 13 }), s('text', { class: 'attempt-n', x: x(i), y: top + 4, 'text-anchor': 'middle' }, moved ? '–' : n));
  }
  const took = m.firstFailedAt && m.parkedAt ? Date.parse(m.parkedAt) - Date.parse(m.firstFailedAt) : 0;
  svg.append(s('text', { class: 'took', x: end + 68, y: top + 36 }, moved ? 'moved by the broker' : took > 0 ? `given up after ${span(took)}` : 'given up at once'));
  return svg;
}

function retryQueues() {
  const names = queues().map((q) => q.name).filter(isRetry);
  return names.length > 1 ? 'retry queues' : names[0] || eventsQueue + '.retry';
}

function inWords(m, attempts, onBroker, moved) {
  if (moved) return `Moved into ${m.queue} by the broker itself.`;
  return `${attempts} attempts in ${m.originQueue || 'an unknown queue'}${onBroker ? ', with a wait in a retry queue between them' : ''}, then given up into ${m.queue}.`;
}
