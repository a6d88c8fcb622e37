// Replaying and discarding. Both begin with a dry run: what would happen is shown, and only then can it be made to happen.

import { h, put, say, attribute } from '../dom.js';
import { Problem } from '../api.js';
import { plural, words } from '../format.js';
import { dialog, field, problemText, toast } from '../widgets.js';

export const forecasts = {
  RUN: ['good', 'will run'],
  DUPLICATE: ['good', 'will be absorbed as a duplicate'],
  ELSEWHERE: ['plain', 'will be taken by another service'],
  UNKNOWN_TRANSFER: ['bad', 'will fail again: unknown transfer'],
  CONTRADICTION: ['bad', 'will fail again: its id was used for another message'],
  INVALID: ['bad', 'will fail again: nobody can read it'],
  '': ['plain', 'cannot be foreseen'],
};

export function forecastMark(name) {
  const [tone, text] = forecasts[name] || ['plain', words(name)];
  return h('span', { class: `status ${tone}` }, text);
}

// order carries one order out, or would: it answers {items, matched, done, refused, failed, missing, stopped}. seen is told how many items have come.
export async function order(service, verb, body, { signal, seen } = {}) {
  let answer;
  try {
    answer = await fetch(`/api/parked/${service}/${verb}`, {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body), credentials: 'same-origin', signal,
    });
  } catch (wrong) {
    if (wrong.name === 'AbortError') throw wrong;
    throw new Problem(0, { detail: 'The console does not answer. Look at the audit before you do it again.' });
  }
  const text = await collect(answer, seen);
  let document;
  try { document = JSON.parse(text); } catch { document = null; }
  if (!answer.ok) {
    if (answer.status === 401) globalThis.document.dispatchEvent(new Event('session-ended'));
    throw new Problem(answer.status, document || {});
  }
  if (!document) throw new Problem(0, { detail: 'The answer broke off. Look at the audit before you do it again.' });
  return document;
}

// collect reads an answer as it comes. Every item ends with a line break, and texts in JSON have none.
async function collect(answer, seen) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  let items = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text;
    text += value;
    items += value.split('\n').length - 1;
    seen?.(items);
  }
}

export function replayDialog(orders, done) {
  const total = orders.reduce((n, o) => n + o.count, 0);
  run(`Replay ${plural(total, 'message')}`, 'replay', orders, done, ({ changed }) => {
    const canary = h('input', { type: 'number', min: 0, max: total, value: total > 3 ? 1 : 0 });
    const rate = h('input', { type: 'number', min: 1, max: 1000, value: 50 });
    const to = h('select', {}, h('option', { value: 'queue' }, 'the queue that failed on it'), h('option', { value: 'exchange' }, 'its exchange: every subscriber gets it again'));
    const force = h('input', { type: 'checkbox' });
    for (const control of [to, force]) control.addEventListener('change', changed);
    return {
      element: h('div', { class: 'stack' },
        field('Send to', to),
        total > 1 ? h('div', { class: 'pair' },
          field('Canary', canary, 'So many first; the others only if none of these comes back.'),
          field('Messages a second', rate)) : null,
        h('label', { class: 'check' }, force, ' also those that were replayed three times already')),
      body: () => ({ to: to.value, force: force.checked, canary: total > 1 ? Number(canary.value) || 0 : 0, rate: Number(rate.value) || 50 }),
      verb: 'Replay',
    };
  });
}

export function discardDialog(orders, done) {
  const total = orders.reduce((n, o) => n + o.count, 0);
  run(`Discard ${plural(total, 'message')}`, 'discard', orders, done, () => {
    const because = h('input', { type: 'text', maxlength: 1000, required: true });
    return {
      element: h('div', { class: 'stack' },
        h('p', {}, 'Discarded messages are kept whole in the audit, and reach nobody any more.'),
        field('Because', because, 'Why they may be thrown away. It stands in the audit.')),
      body: () => ({ because: because.value.trim() || 'dry run' }),
      ready: () => because.value.trim() !== '' || (because.focus(), 'Say why they may be thrown away.'),
      verb: 'Discard', danger: true,
    };
  });
}

function run(title, verb, orders, done, makeOptions) {
  const abort = new AbortController();
  let acted = false;
  dialog(title, (close) => {
    const preview = h('div', { class: 'preview', role: 'status' });
    const problem = h('div', { class: 'problem', role: 'alert' });
    const progress = h('progress', { hidden: true, 'aria-label': 'Progress' });
    let dry = 0;
    const look = async () => {
      const mine = ++dry;
      go.disabled = true;
      put(problem);
      try {
        const found = await each(orders, verb, { ...options.body(), canary: undefined, rate: undefined }, { signal: abort.signal });
        if (mine !== dry) return;
        put(preview, previewOf(found, verb));
        const would = found.reduce((n, f) => n + f.done, 0);
        say(go, `${options.verb} ${plural(would, 'message')}`);
        go.disabled = would === 0;
      } catch (wrong) {
        if (wrong.name !== 'AbortError' && mine === dry) put(problem, problemText(wrong));
      }
    };
    const options = makeOptions({ changed: look });
    const act = async () => {
      const ready = options.ready?.() ?? true;
      if (ready !== true) { put(problem, ready); return; }
      put(problem);
      go.disabled = true;
      progress.hidden = false;
      acted = true;
      const total = orders.reduce((n, o) => n + o.count, 0);
      attribute(progress, 'max', total);
      try {
        let before = 0;
        const found = [];
        for (const o of orders) {
          const answer = await order(o.service, verb, { ...o.filter, ...options.body(), confirm: true }, { signal: abort.signal, seen: (n) => { progress.value = before + n; } });
          before += o.count;
          found.push(answer);
          if (answer.stopped) break; // what stopped one service's run, a canary that came back, is a reason to stop
        }
        finished(found);
      } catch (wrong) {
        put(problem, wrong.name === 'AbortError' ? 'Stopped. What was done is in the audit.' : problemText(wrong));
      } finally {
        progress.hidden = true;
      }
    };
    const finished = (found) => {
      const sum = (name) => found.reduce((n, f) => n + f[name], 0);
      const why = found.map((f) => f.stopped).filter(Boolean);
      const trouble = found.flatMap((f) => f.items).filter((i) => !['REPLAYED', 'DISCARDED'].includes(i.outcome));
      if (why.length === 0 && trouble.length === 0) {
        toast(`${plural(sum('done'), 'message')} ${verb === 'replay' ? 'replayed' : 'discarded'}.`);
        close();
        return;
      }
      put(preview, h('p', {}, h('strong', {}, `${plural(sum('done'), 'message')} ${verb === 'replay' ? 'replayed' : 'discarded'}`), `, ${sum('refused')} refused, ${sum('failed')} failed.`),
        why.map((text) => h('p', { class: 'problem' }, `The run ended early: ${text}.`)), itemList(trouble));
      go.hidden = true;
    };
    const go = h('button', { class: options.danger ? 'danger' : 'primary', type: 'submit', disabled: true }, options.verb);
    look();
    return h('form', { class: 'stack', novalidate: true, onsubmit: (event) => { event.preventDefault(); act(); } },
      put(preview, h('p', { class: 'muted' }, 'Looking what would happen…')), options.element, progress, problem,
      h('div', { class: 'actions' }, go, h('button', { class: 'quiet', type: 'button', onclick: close }, 'Close')));
  }, { wide: true, onclose: () => { abort.abort(); done?.(acted); } });
}

async function each(orders, verb, body, how) {
  const found = [];
  for (const o of orders) found.push(await order(o.service, verb, { ...o.filter, ...body }, how));
  return found;
}

// previewOf says what would happen, the same things together.
function previewOf(found, verb) {
  const items = found.flatMap((f) => f.items);
  const groups = new Map();
  for (const i of items) {
    const key = i.outcome === 'REFUSED' ? 'REFUSED\n' + i.detail : verb === 'replay' ? i.forecast : 'DISCARD';
    groups.set(key, [...(groups.get(key) || []), i]);
  }
  if (items.length === 0) return h('p', {}, 'None of them is there any more.');
  return [h('h3', {}, 'What would happen'), h('ul', { class: 'forecasts' }, [...groups].sort((a, b) => b[1].length - a[1].length).map(([key, those]) => h('li', {},
    h('span', { class: 'forecast-count' }, those.length),
    key.startsWith('REFUSED') ? h('span', { class: 'status warn' }, 'will be refused: ' + key.slice(8)) : key === 'DISCARD' ? h('span', { class: 'status bad' }, 'will be thrown away') : forecastMark(key),
    h('details', {}, h('summary', {}, 'which'), itemList(those)))))];
}

function itemList(items) {
  return h('ul', { class: 'items' }, items.slice(0, 100).map((i) => h('li', {}, h('span', { class: 'mono' }, i.key),
    i.target ? ` → ${i.target}` : '', i.detail ? h('span', { class: 'muted' }, ` ${i.detail}`) : '')), items.length > 100 ? h('li', { class: 'muted' }, `and ${items.length - 100} more`) : null);
}
