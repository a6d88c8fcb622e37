// Interview: the questions of this field. The answers are shown one after the other, when they are asked for.

import { h, put } from '../dom.js';
import { call } from '../api.js';
import { prose } from '../prose.js';
import { card, empty } from '../widgets.js';
import { register } from '../pages.js';

register({
  path: 'interview', title: 'Interview',
  topics: () => [],
  show: (place, [number]) => number ? onePage(place, number) : listPage(place),
});

// load asks until it is answered or the page is left.
function load(place, path, show) {
  let open = true;
  const ask = async () => {
    try {
      const found = await call('GET', path);
      if (open) show(found);
    } catch (problem) {
      if (open) put(place, empty(problem.message), h('p', { class: 'empty' }, problem.status === 404 ? h('a', { href: '#/interview' }, 'All questions') : h('button', { type: 'button', onclick: ask }, 'Try again')));
    }
  };
  ask();
  return { update() {}, close() { open = false; } };
}

const address = (q) => `#/interview/${q.number}`;

function atRandom(items, but) {
  const others = items.filter((q) => q.number !== but);
  return others[Math.floor(Math.random() * others.length)];
}

function listPage(place) {
  const body = h('div', {}, empty('One moment…'));
  place.append(h('div', { class: 'page-head' }, h('h1', {}, 'Interview'), h('p', { class: 'quiet-line' }, 'Say your answer aloud before you look. An answer that can be run is remembered.')), body);
  return load(body, '/api/interview', ({ items }) => {
    const groups = [...new Set(items.map((q) => q.group))];
    put(body,
      h('div', { class: 'actions' }, h('button', { class: 'primary', type: 'button', onclick: () => { location.hash = address(atRandom(items)); } }, 'Ask me one')),
      h('div', { class: 'stack-cards interview-groups' }, groups.map((group) => card(group, {},
        h('ol', { class: 'interview-list' }, items.filter((q) => q.group === group)
          .map((q) => h('li', {}, h('a', { href: address(q) }, `${q.number}. ${q.question}`))))))));
  });
}

function onePage(place, number) {
  const body = h('div', {}, empty('One moment…'));
  place.append(h('p', { class: 'crumb' }, h('a', { href: '#/interview' }, 'All questions')), body);
  return load(body, `/api/interview/${encodeURIComponent(number)}`, (q) => {
    const parts = new Map(q.sections.map((s) => [s.name, s]));
    const section = (name) => card(name, {}, prose(parts.get(name).blocks));
    const answers = h('div', { class: 'stack-cards' });
    // Each step shows some sections, and what comes next.
    const steps = [['In thirty seconds', ['30 seconds']], ['In three minutes', ['3 minutes', 'Follow-ups', 'Wrong answers', 'Proof']]];
    const step = (at) => {
      const button = at < steps.length
        ? h('button', { class: 'primary', type: 'button', onclick: () => open(at) }, steps[at][0])
        : h('button', { class: 'primary', type: 'button', onclick: another }, 'Ask me another');
      return h('div', { class: 'actions' }, button);
    };
    const open = (at) => {
      answers.lastElementChild.remove();
      const shown = steps[at][1].map(section);
      answers.append(...shown, step(at + 1));
      const first = shown[0].querySelector('h2');
      first.tabIndex = -1;
      first.focus();
    };
    const another = async () => {
      try {
        const { items } = await call('GET', '/api/interview');
        location.hash = address(atRandom(items, q.number));
      } catch {
        location.hash = '#/interview';
      }
    };
    answers.append(step(0));
    put(body, h('div', { class: 'page-head' }, h('h1', {}, q.question), h('p', { class: 'quiet-line' }, `Question ${q.number} · ${q.group}`)), answers);
  });
}
