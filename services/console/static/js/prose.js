// Texts of the documentation, as the server has read them: a tree of blocks and spans, which becomes elements. See package markdown.

import { h } from './dom.js';

const elements = { em: 'em', strong: 'strong' };

// prose makes the elements of blocks.
export function prose(blocks) { return h('div', { class: 'prose' }, blocks.map(block)); }

function block(b) {
  switch (b.kind) {
    case 'heading': return h('h3', {}, spans(b.spans));
    case 'code': return h('pre', { tabindex: 0, role: 'region', 'aria-label': 'Commands or output' }, h('code', {}, b.code));
    case 'list': return h('ul', {}, b.items.map((item) => h('li', {}, spans(item))));
    case 'numbered': return h('ol', {}, b.items.map((item) => h('li', {}, spans(item))));
    case 'table': return table(b.rows);
    default: return h('p', {}, spans(b.spans));
  }
}

function table([head, ...rows]) {
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Table' }, h('table', {},
    h('thead', {}, h('tr', {}, head.map((cell) => h('th', { scope: 'col' }, cell.length ? spans(cell) : h('span', { class: 'visually-hidden' }, 'What'))))),
    h('tbody', {}, rows.map((row) => h('tr', {}, row.map((cell, i) => i === 0 ? h('th', { scope: 'row' }, spans(cell)) : h('td', {}, spans(cell))))))));
}

function spans(all) { return (all || []).map(span); }

function span(s) {
  if (s.kind === 'text') return s.text;
  if (s.kind === 'code') return h('code', {}, s.text);
  if (s.kind === 'link') return link(s);
  return h(elements[s.kind] || 'span', {}, spans(s.spans));
}

// link leads to another exercise. A file of the repository has no address here, so that its name is all there is.
function link(s) {
  const exercise = /^(?:\.\.\/exercises\/)?(\d\d)-[a-z-]+\.md$/.exec(s.to || '');
  if (exercise) return h('a', { href: `#/exercises/${Number(exercise[1])}` }, spans(s.spans));
  return h('span', { class: 'file', title: String(s.to || '').replace(/^(\.\.\/)+/, '') }, spans(s.spans));
}
