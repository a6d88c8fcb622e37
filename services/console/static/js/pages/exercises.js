// Exercises: what can be broken, and a page for each. What people write down as their prediction stays in their browser.

import { Rows, attribute, h, put } from '../dom.js';
import { list } from '../live.js';
import { runOver } from '../bank.js';
import { call } from '../api.js';
import { prose } from '../prose.js';
import { card, empty, field } from '../widgets.js';
import { register } from '../pages.js';
import { span } from '../format.js';
import { elsewhere, runMark, runPanel } from './exercise-run.js';

register({
  path: 'exercises', title: 'Exercises',
  topics: ([number]) => /^[1-9]\d?$/.test(number || '') ? [`exercise:${number}`] : [],
  show: (place, [number]) => number ? onePage(place, number) : listPage(place),
});

// whereTo says what an exercise needs.
export function whereTo(needs) {
  if (needs.includes('control')) return 'needs a bank from make up';
  if (needs.includes('faults')) return 'needs a bank from make up, or FAULTS=on';
  return 'runs on any bank';
}

const takes = (e) => `about ${span(e.takesSeconds * 1000)}`;

// load asks until it is answered or the page is left.
function load(place, path, show) {
  let open = true;
  const ask = async () => {
    try {
      const found = await call('GET', path);
      if (open) show(found);
    } catch (problem) {
      if (open) put(place, empty(problem.message), problem.status === 404 ? h('p', { class: 'empty' }, h('a', { href: '#/exercises' }, 'All exercises')) : h('p', { class: 'empty' }, h('button', { type: 'button', onclick: ask }, 'Try again')));
    }
  };
  ask();
  return () => { open = false; };
}

function listPage(place) {
  const note = h('div', {});
  const grid = h('ol', { class: 'exercise-list' });
  const body = h('div', {}, note, grid);
  place.append(h('div', { class: 'page-head' }, h('h1', {}, 'Exercises'), h('p', { class: 'quiet-line' }, 'Break the bank, see it break, see it recover. Predict first: what you did not expect is what you will remember.')), body);
  const rows = new Rows(grid, (e) => e.number, exerciseRow);
  let all = [];
  const page = {
    update() { rows.show(all.map((e) => ({ ...e, run: list('exercises').find((r) => r.exercise === e.number) }))); },
  };
  page.close = load(body, '/api/exercises', ({ items, possible }) => {
    all = items;
    put(body, possible ? null : card('They run elsewhere', { name: 'exercise-note' }, elsewhere()), grid);
    page.update();
  });
  return page;
}

function exerciseRow(e) {
  const last = h('span', { class: 'exercise-last' });
  const element = h('li', { class: 'card exercise-card' },
    h('h2', {}, h('a', { href: `#/exercises/${e.number}` }, `${e.number}. ${e.title}`)),
    h('p', { class: 'exercise-question' }, e.question),
    h('p', { class: 'exercise-meta' }, h('span', {}, takes(e)), h('span', {}, whereTo(e.needs)), last));
  let told = '';
  return {
    element,
    update({ run }) {
      attribute(element, 'aria-current', run && !runOver(run.state) ? 'true' : null);
      if (told === run?.state) return;
      told = run?.state;
      put(last, run ? runMark(run.state) : null);
    },
  };
}

const hidden = ['What you see', 'Why', 'Replay and repair', 'Check', 'Interview question'];

function onePage(place, number) {
  const body = h('div', {}, empty('One moment…'));
  place.append(h('p', { class: 'crumb' }, h('a', { href: '#/exercises' }, 'All exercises')), body);
  let panel = null;
  const stop = load(body, `/api/exercises/${encodeURIComponent(number)}`, (e) => {
    const parts = new Map(e.sections.map((s) => [s.name, s]));
    const section = (name) => card(name, {}, prose(parts.get(name)?.blocks || []));
    const answers = h('div', { class: 'stack-cards exercise-answers' });
    panel = runPanel(e);
    put(body,
      h('div', { class: 'page-head' }, h('h1', {}, `${e.number}. ${e.title}`), h('p', { class: 'quiet-line' }, `${takes(e)} · ${whereTo(e.needs)}`)),
      h('div', { class: 'exercise' },
        h('div', { class: 'stack-cards exercise-ask' }, section('Question'), predict(e, parts, answers, section)),
        h('div', { class: 'exercise-side' }, panel.element),
        h('div', { class: 'stack-cards exercise-do' }, section('Do'), answers)));
    panel.update();
  });
  return { update() { panel?.update(); }, close() { stop(); panel?.close(); } };
}

// predict is where one writes down what one expects. Only then is shown what one sees, and why.
function predict(e, parts, answers, section) {
  const key = `exercise-${e.number}-prediction`;
  const text = h('textarea', { rows: 4, maxlength: 2000, value: remembered(key) || '' });
  const button = h('button', { class: 'primary', type: 'submit' }, 'Show what one sees, and why');
  const reveal = () => {
    const mine = text.value.trim();
    button.hidden = true;
    put(answers, mine ? h('section', { class: 'card', 'aria-label': 'Your prediction' }, h('h2', {}, 'You expected'), h('blockquote', { class: 'prediction' }, mine)) : null,
      hidden.map(section));
  };
  if (remembered(key) !== null) reveal();
  else put(answers, h('p', { class: 'muted exercise-hidden' }, 'What one sees, and why, is shown when you have predicted it.'));
  return card('Predict', {}, prose(parts.get('Predict')?.blocks || []), h('form', { class: 'stack predict', onsubmit(event) {
    event.preventDefault();
    try { localStorage.setItem(key, text.value.trim()); } catch { /* not allowed here: it lasts as long as the page */ }
    reveal();
    const first = answers.querySelector('h2');
    first.tabIndex = -1;
    first.focus();
  } }, field('Your prediction', text, 'It stays in this browser. On paper is as good.'), h('div', { class: 'actions' }, button)));
}

function remembered(key) {
  try { return localStorage.getItem(key); } catch { return null; }
}
