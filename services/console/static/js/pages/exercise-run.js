// The run of an exercise: it is ordered here and happens in the bank's keeper. Every page is told of it, also one that is opened later.

import { Rows, attribute, h, put, say, toggle } from '../dom.js';
import { connection, part, stale, topic } from '../live.js';
import { goingRun, runOver } from '../bank.js';
import { call } from '../api.js';
import { session, signIn } from '../session.js';
import { clock } from '../format.js';
import { card, problemText, toast } from '../widgets.js';

const states = {
  running: ['busy', 'running'], looking: ['warn', 'waits for you'], stopping: ['warn', 'stopping'], passed: ['good', 'passed'],
  failed: ['bad', 'has not passed'], stopped: ['plain', 'stopped'], broken: ['bad', 'broke off'],
};

export function runMark(state) {
  const [tone, text] = states[state] || ['plain', state];
  return h('span', { class: `status ${tone}` }, text);
}

// command is a line for the terminal, to be copied.
function command(text) {
  return h('div', { class: 'command' }, h('code', {}, text), h('button', { type: 'button', class: 'quiet', 'aria-label': `Copy ${text}`, async onclick() {
    try {
      await navigator.clipboard.writeText(text);
      toast('Copied.');
    } catch {
      toast('The browser does not let this page copy. ' + text, 'warn');
    }
  } }, 'Copy'));
}

// elsewhere says why nothing can be run from this page, and where it can.
export function elsewhere(e) {
  const number = e ? e.number : 'N';
  const anywhere = !e || !e.needs.includes('control');
  return h('div', { class: 'stack' },
    h('p', {}, 'From this page exercises run in a bank of ', h('code', {}, 'make up'), ': its keeper does it, and the console is told where that is by ', h('code', {}, 'CONTROL_URL'),
      '. This console was started without, as in the Docker composition: a page should hold neither the database’s password nor the right to kill processes.'),
    h('p', {}, e && e.needs.length ? 'In a terminal, with a bank from make up:' : 'In a terminal:'), command(`bin/bank exercise run ${number}`),
    anywhere ? [h('p', {}, e?.needs.includes('faults') ? 'In the composition, when it was started with FAULTS=on:' : e ? 'In the composition:' : 'In the composition, those that say “runs on any bank”:'), command(`docker compose run --rm bank exercise run ${number}`)] : null);
}

// runPanel is the card with the buttons and what happens.
export function runPanel(e) {
  const name = `exercise:${e.number}`;
  const mark = h('span', { role: 'status' });
  const problem = h('div', { class: 'problem', role: 'alert' });
  const note = h('div', { class: 'run-note' });
  const run = h('button', { type: 'button', class: 'primary', onclick: () => session.signedIn ? order('run') : signIn(() => order('run')) }, 'Run it');
  const goOn = h('button', { type: 'button', class: 'primary', onclick: () => session.signedIn ? order('continue') : signIn(() => order('continue')) }, 'Put things back');
  const stop = h('button', { type: 'button', class: 'danger', onclick: () => session.signedIn ? order('stop') : signIn(() => order('stop')) }, 'Stop');
  const progress = h('progress', { max: e.takesSeconds, 'aria-label': 'Time of the run, of what it usually takes' });
  const steps = h('ol', { class: 'steps', role: 'log', 'aria-label': 'What happens', tabindex: 0 });
  const verdict = h('div', { class: 'run-verdict' });
  const box = card('Run', { end: mark, name: 'run' }, e.possible ? [note, h('div', { class: 'actions' }, run, goOn, stop), progress, problem] : elsewhere(e), verdict, steps);
  const rows = new Rows(steps, (s) => s.key, step);
  const redraw = () => panel.update();
  let drawn = '';
  let asking = false;

  async function order(verb) {
    if (asking) return;
    asking = true;
    put(problem);
    redraw();
    try {
      await call('POST', `/api/exercises/${e.number}/${verb}`);
    } catch (wrong) {
      put(problem, problemText(wrong));
    } finally {
      asking = false;
      redraw();
    }
  }

  const panel = {
    element: box,
    update() {
      const now = part(name, 'run');
      const going = now && !runOver(now.state);
      const running = goingRun();
      const other = running && running.exercise !== e.number ? running : null;
      const state = now ? now.state : '';
      run.hidden = Boolean(going);
      run.disabled = asking || Boolean(other) || !connection.up;
      say(run, now ? 'Run it again' : 'Run it');
      stop.hidden = !going;
      stop.disabled = asking || state === 'stopping';
      goOn.hidden = state !== 'looking';
      goOn.disabled = asking;
      progress.hidden = state !== 'running';
      if (going) attribute(progress, 'value', Math.min(e.takesSeconds, Math.max(0, (Date.now() - new Date(now.startedAt)) / 1000)));
      const key = [state, other?.exercise, session.signedIn, now?.startedAt, now?.dropped].join();
      if (key !== drawn) {
        if (drawn) put(problem); // what was refused then says nothing of what is now
        drawn = key;
        put(mark, now ? runMark(state) : null);
        put(note, noteOf(state, other));
        put(verdict, now && runOver(state) ? verdictOf(now, events(name)) : null);
      }
      const begun = now && new Date(now.startedAt);
      rows.show(now ? events(name).filter((s) => s.kind !== 'begun').map((s, i) => ({ ...s, key: `${now.startedAt}/${i}`, begun })) : []);
      toggle(box, 'stale', stale(name));
    },
    close() { document.removeEventListener('session', redraw); },
  };
  document.addEventListener('session', redraw);
  return panel;
}

// events are what a run has told so far, in its order.
function events(name) {
  const { keys, parts } = topic(name);
  return keys.filter((key) => key !== 'run').map((key) => parts[key]);
}

function noteOf(state, other) {
  if (state === 'looking') {
    return h('p', { class: 'look-around' }, h('strong', {}, 'Look around: nothing has been put back yet.'), ' The links below lead to what it has made. After ten minutes it is put back by itself.');
  }
  if (state === 'running') return h('p', { class: 'muted' }, 'It goes on when you leave this page. Open the Overview in a second window to see the queues move.');
  if (state === 'stopping') return h('p', { class: 'muted' }, 'Everything that was changed is put back.');
  if (other) return h('p', {}, h('a', { href: `#/exercises/${other.exercise}` }, `Exercise ${other.exercise} is running.`), ' One at a time: two faults at once would prove nothing.');
  return h('p', { class: 'muted' }, session.signedIn ? 'It breaks this bank for real, proves it, and puts everything back.' : 'It breaks this bank for real, proves it, and puts everything back. That needs the admin token.');
}

function verdictOf(now, all) {
  const books = all.findLast((s) => s.proves === 'invariants');
  const [tone] = states[now.state] || ['plain'];
  const said = { passed: 'Passed: the fault happened, and the bank got over it.', stopped: 'Stopped before its end. Everything has been put back.' }[/putting things back/.test(now.said) ? 'failed' : now.state] || now.said;
  return h('div', { class: `verdict-box ${tone}` },
    h('p', {}, h('strong', {}, said)),
    h('p', {}, books ? `${books.ok ? 'Every invariant holds' : 'An invariant does not hold'}: ${(books.figures || []).map((f) => `${f.name} ${f.value}`).join(', ')}.` : 'The invariants were not checked: bin/bank verify does it.'),
    h('p', { class: 'muted' }, `Begun at ${clock(now.startedAt)}, ended at ${now.endedAt ? clock(now.endedAt) : '–'}${now.dropped ? `; ${now.dropped} steps were too many to be kept` : ''}.`));
}

const marks = { doing: ['plain', 'does'], saw: ['busy', 'sees'], looking: ['warn', 'waits'], reset: ['plain', 'puts back'], ended: ['plain', 'ends'] };
const proofs = { fault: 'that the fault happened', recovery: 'that the bank got over it', invariants: 'that nothing is lost or doubled' };

function step(s) {
  const [tone, word] = s.kind === 'checked' ? s.ok ? ['good', 'holds'] : ['bad', 'fails'] : s.kind === 'ended' ? [s.ok ? 'good' : 'bad', 'ends'] : marks[s.kind] || ['plain', s.kind];
  const element = h('li', { class: `step ${tone}` },
    h('time', { class: 'step-when', datetime: s.at, title: clock(s.at, true) }, `+${(Math.max(0, new Date(s.at) - s.begun) / 1000).toFixed(1)} s`),
    h('div', { class: 'step-what' },
      h('p', {}, h('span', { class: `status ${tone}` }, word), ' ', h('span', { class: 'step-text' }, s.text)),
      s.proves ? h('p', { class: 'step-more' }, 'Proves ', proofs[s.proves] || s.proves, '.') : null,
      s.figures?.length ? h('dl', { class: 'step-figures' }, s.figures.map((f) => h('div', {}, h('dt', {}, f.name), h('dd', {}, figure(f))))) : null,
      s.where ? h('p', { class: 'step-more' }, 'Look: ', s.where.split(' · ').map((text, i) => [i ? ' · ' : '', place(text, s)])) : null));
  return { element, update() {} };
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function figure({ name, value }) { return name === 'transfer' && uuid.test(value) ? h('a', { href: `#/transfers/${value}` }, value) : value; }

// place is where people can see the same: a page of the console where it has one, beside the command.
function place(text, s) {
  const page = /^console: (Overview|Transfers|Parked|Accounts)\b/.exec(text);
  if (page) return h('a', { href: page[1] === 'Overview' ? '#/' : `#/${page[1].toLowerCase()}` }, text);
  const transfer = /^bank transfer show (\S+)/.exec(text);
  if (transfer && uuid.test(transfer[1])) return [h('code', {}, text), ' ', h('a', { href: `#/transfers/${transfer[1]}` }, 'its life here')];
  const parked = /^bank parked show (\S+)$/.exec(text);
  const queue = s.figures?.find((f) => f.name === 'queue')?.value;
  if (parked && queue) return [h('code', {}, text), ' ', h('a', { href: `#/parked/message/${encodeURIComponent(queue)}/${encodeURIComponent(parked[1])}` }, 'the message here')];
  return h('code', {}, text);
}
