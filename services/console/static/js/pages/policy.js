// Policy: what the retry policy does, in plots. Every figure and every drawing is computed by the server, from the code that the
// services run; the settings are checked there as well.

import { attribute, h, put } from '../dom.js';
import { call } from '../api.js';
import { card, empty, field, problemText } from '../widgets.js';
import { register } from '../pages.js';

register({
  path: 'policy', title: 'Policy', topics: () => [],
  show(place) {
    const plots = h('div', { class: 'plots' });
    place.append(
      h('div', { class: 'page-head' }, h('h1', {}, 'Policy'), h('p', { class: 'quiet-line' }, 'What becomes of a message that fails, computed by the code that decides it.')),
      plots);
    let open = true;
    load();
    return { close() { open = false; } };

    async function load() {
      try {
        const { plots: all, decisions } = await call('GET', '/api/policy');
        if (!open) return;
        put(plots, h('div', { class: 'plot-list', role: 'group', 'aria-label': 'On this page' }, [...all.map(({ name, title }) => [name, title]), ['decisions', 'The decisions']].map(([name, title]) => jump(name, title))),
          all.map((plot) => panel(plot)), decisionTable(decisions));
      } catch (problem) {
        if (open) put(plots, empty(problem.message), h('p', { class: 'empty' }, h('button', { type: 'button', onclick: load }, 'Try again')));
      }
    }
  },
});

// jump leads to a plot. The address is the router's, so it is a button that moves the focus, and the view with it.
function jump(name, title) {
  return h('button', { type: 'button', class: 'quiet', onclick() {
    const target = document.getElementById(`plot-${name}`);
    target.focus({ preventScroll: true });
    target.scrollIntoView({ block: 'start' });
  } }, title);
}

// panel is one plot with its settings; a change asks for it anew.
function panel({ name, title, settings }) {
  const controls = settings.map((setting) => control(setting));
  const problem = h('div', { class: 'problem', role: 'alert' });
  const image = h('img', { alt: '', width: 720 });
  const narrow = h('source', { media: '(max-width: 760px)' });
  const drawing = h('picture', {}, narrow, image);
  const story = h('div', { class: 'story' });
  const figures = h('div', { class: 'stack' });
  const form = h('form', { class: 'settings', novalidate: true, 'aria-label': `Settings of: ${title}`, onsubmit(event) { event.preventDefault(); load(); }, onchange: () => load() },
    controls.map(({ element }) => element));
  const box = card(title, { name: 'plot' }, form, problem,
    h('div', { class: 'plot-body' }, h('figure', {}, drawing), story),
    h('details', {}, h('summary', {}, 'The figures'), figures));
  box.id = `plot-${name}`;
  box.tabIndex = -1;
  let turn = 0;
  load();
  return box;

  async function load() {
    const mine = ++turn;
    const query = new URLSearchParams(controls.map(({ name, input }) => [name, input.value.trim()]));
    attribute(box, 'aria-busy', 'true');
    let report = null;
    let refused = null;
    try {
      report = await call('GET', `/api/policy/${name}?${query}`);
    } catch (found) {
      refused = found;
    }
    if (mine !== turn) return; // another change has overtaken this one
    attribute(box, 'aria-busy', null);
    for (const { name, input } of controls) attribute(input, 'aria-invalid', refused?.fields.some((f) => f.field === name) ? 'true' : null);
    put(problem, refused ? problemText(refused) : null);
    if (!report) return;
    narrow.srcset = `/api/policy/${name}/drawing?${query}&width=narrow`;
    image.src = `/api/policy/${name}/drawing?${query}`;
    image.alt = report.about;
    put(story, h('h3', {}, 'What to see'), h('p', {}, report.see), h('h3', {}, 'What it means'), h('p', {}, report.means),
      h('h3', {}, 'In an interview'), h('blockquote', {}, report.interview));
    put(figures, report.tables.map((t) => table(t)));
  }
}

// control is a setting's input. Its bounds are told; that they are kept is the server's to see.
function control({ name, label, default: initial, least, most, choices }) {
  const input = choices
    ? h('select', {}, choices.map((choice) => h('option', { value: choice, selected: choice === initial }, choice)))
    : h('input', { inputmode: 'numeric', autocomplete: 'off', value: initial });
  return { name, input, element: field(label, input, choices ? null : `${least} to ${most}`) };
}

function table({ caption, columns, rows }) {
  const cell = (tag, more, i, text) => h(tag, { ...more, class: columns[i].number ? 'end' : null }, text);
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption }, h('table', {}, h('caption', {}, caption),
    h('thead', {}, h('tr', {}, columns.map((c, i) => cell('th', { scope: 'col' }, i, c.name)))),
    h('tbody', {}, rows.map((row) => h('tr', {}, row.map((text, i) => i === 0 ? cell('th', { scope: 'row' }, i, text) : cell('td', {}, i, text)))))));
}

function decisionTable(decisions) {
  const box = card('The decisions', {}, h('p', { class: 'muted' }, 'One function turns the class of a failure, the attempt and the age of the message into a decision. This is its table, printed from the code.'), table(decisions));
  box.id = 'plot-decisions';
  box.tabIndex = -1;
  return box;
}
