// What the topics mean: queues, consumers and figures of the bank, as the pages need them.

import { known, list, part, topic } from './live.js';
import { session } from './session.js';

// others are the services that somebody has added; of them is known what every service tells, and not what they do.
export function others() { return session.others; }
export function services() { return ['account', 'transfer', ...session.others]; }

export function isQuarantine(queue) { return queue.endsWith('.dead-letters') || queue.endsWith('_error'); }
export function isRetry(queue) { return queue.startsWith('transfer.account-events.retry'); }

// owner is the service that keeps a quarantine queue: those of added services begin with their name.
export function owner(queue) {
  return session.others.find((name) => queue.startsWith(name + '.')) || (queue.endsWith('_error') ? 'account' : 'transfer');
}

export function queues() {
  const { keys, parts } = topic('queues');
  return keys.map((name) => ({ name, ...parts[name], depth: parts[name].ready + parts[name].unacked }));
}

export function depth(name) {
  const q = part('queues', name);
  return q ? q.ready + q.unacked : 0;
}

// quarantines are the quarantine queues with what is in them. Looking into one holds its messages, so held ones count.
export function quarantines() { return queues().filter((q) => isQuarantine(q.name)); }

export function parkedCount() { return quarantines().reduce((sum, q) => sum + q.depth, 0); }

// metric answers a series' value, undefined when there is none.
export function metric(service, name, labels = {}) {
  const samples = part('metrics:' + service, name);
  const found = samples?.find((s) => Object.entries(labels).every(([k, v]) => s.labels?.[k] === v));
  return found?.value;
}

// total sums up all series of a metric that have the labels.
export function total(service, name, labels = {}) {
  const samples = part('metrics:' + service, name) || [];
  return samples.filter((s) => Object.entries(labels).every(([k, v]) => [].concat(v).includes(s.labels?.[k])))
    .reduce((sum, s) => sum + s.value, 0);
}

const breakerStates = ['closed', 'half-open', 'open'];

// consumers are those that a service tells of, with the state of their dampers.
export function consumers() {
  return services().flatMap((service) => (part('metrics:' + service, 'messaging_paused') || []).map(({ labels: { queue } }) => {
    const at = { queue };
    const breaker = metric(service, 'messaging_breaker_state', at);
    return {
      service, queue,
      paused: metric(service, 'messaging_paused', at) === 1,
      breaker: breaker === undefined ? null : breakerStates[breaker] || 'unknown',
      opened: metric(service, 'messaging_breaker_opened_total', at) || 0,
      tokens: metric(service, 'messaging_retry_budget_tokens', at),
      limit: metric(service, 'messaging_rate_limit_per_second', at),
      waiting: metric(service, 'messaging_waiting', at) || 0,
      done: total(service, 'messaging_deliveries_total', { ...at, outcome: ['done', 'retried', 'quarantined'] }),
      failures: total(service, 'messaging_failures_total', at),
      suspects: metric(service, 'messaging_suspects_total', at) || 0,
      attached: part('queues', queue)?.consumers,
    };
  }));
}

// inWords says how a consumer is, and how bad that is.
export function inWords(c) {
  if (c.breaker === 'open') return { tone: 'bad', text: 'Paused: the breaker is open' };
  if (c.breaker === 'half-open') return { tone: 'warn', text: 'Trying one message at a time' };
  if (c.paused) return { tone: 'warn', text: 'Paused: the retry budget is used up' };
  if (c.attached === 0) return { tone: 'bad', text: 'Not attached to its queue' };
  if (c.waiting > 0) return { tone: 'warn', text: `Flowing, ${c.waiting} between attempts` };
  return { tone: 'good', text: 'Flowing' };
}

export function ledger() { return part('ledger', 'ledger'); }

export function conserved() {
  const l = ledger();
  return !l || l.ok && l.currencies.every((c) => BigInt(c.sumMinor) === 0n);
}

export const openStatuses = ['REQUESTED', 'DEBITED', 'REFUNDING'];
export const statuses = [...openStatuses, 'COMPLETED', 'REJECTED', 'REFUNDED'];

export function summary() { return known('summary') ? part('summary', 'summary') : undefined; }

export function accounts() { return list('accounts'); }

// runOver says whether nothing more comes of a run in a state.
export function runOver(state) { return !['running', 'looking', 'stopping'].includes(state); }

// goingRun is the run of an exercise that goes on, whoever has ordered it.
export function goingRun() { return list('exercises').find((r) => !runOver(r.state)); }
