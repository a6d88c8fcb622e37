// The pieces that all pages are made of.

import { h, put } from './dom.js';
import { clock, day, money, short, words } from './format.js';

let fields = 0;

// field puts a label to a control, with a hint if there is something to say.
export function field(label, control, hint) {
  control.id = control.id || `field-${++fields}`;
  const note = hint ? h('span', { class: 'hint', id: control.id + '-hint' }, hint) : null;
  if (note) control.setAttribute('aria-describedby', note.id);
  return h('div', { class: 'field' }, h('label', { for: control.id }, label), control, note);
}

// problemText is a refusal in words, each wrong field on a line of its own.
export function problemText(problem) {
  return [h('span', {}, problem.message), ...(problem.fields || []).map((f) => h('span', { class: 'field-problem' }, `${f.field} ${f.message}`))];
}

// dialog opens a modal dialog. make(close) answers what is in it.
export function dialog(title, make, { wide = false, onclose } = {}) {
  const heading = h('h2', { id: `dialog-${++fields}` }, title);
  const box = h('dialog', { class: wide ? 'wide' : null, 'aria-labelledby': heading.id });
  const close = () => box.close();
  box.append(h('header', {}, heading, h('button', { class: 'quiet', type: 'button', 'aria-label': 'Close', onclick: close }, '✕')));
  box.append(h('div', { class: 'dialog-body' }, make(close)));
  box.addEventListener('close', () => { box.remove(); onclose?.(); });
  document.body.append(box);
  box.showModal();
  return box;
}

// toast says in passing what was done.
export function toast(text, kind = 'good') {
  const note = h('div', { class: `toast ${kind}` }, text);
  document.getElementById('toasts').append(note);
  setTimeout(() => note.remove(), 6000);
}

const tones = {
  COMPLETED: 'good', OPEN: 'good', REQUESTED: 'busy', DEBITED: 'busy', REFUNDING: 'warn', REFUNDED: 'warn', REJECTED: 'bad', FROZEN: 'warn', CLOSED: 'plain',
};

// status is the state of a transfer or an account, in words and colour.
export function status(name) { return h('span', { class: `status ${tones[name] || 'plain'}` }, words(name)); }

export function amount(minor, currency, options) {
  return h('span', { class: 'amount' }, money(minor, currency, options), h('span', { class: 'currency' }, currency));
}

export function time(at, precise = false) {
  return h('time', { datetime: at, title: `${day(at)} ${clock(at, true)}` }, clock(at, precise));
}

// id is an identifier that can be copied.
export function id(text, { full = false, label = 'id' } = {}) {
  const button = h('button', {
    class: 'id', type: 'button', title: `${text} – copy`, 'aria-label': `Copy ${label} ${text}`,
    onclick: async (event) => {
      event.stopPropagation();
      try {
        await navigator.clipboard.writeText(text);
        toast('Copied.');
      } catch {
        toast('The browser does not let this page copy. ' + text, 'warn');
      }
    },
  }, full ? text : short(text));
  return button;
}

// card is a section with a heading.
export function card(title, { end, name, level = 2 } = {}, ...children) {
  const heading = h(`h${level}`, { id: `card-${++fields}` }, title);
  return h('section', { class: `card ${name || ''}`, 'aria-labelledby': heading.id }, h('header', { class: 'card-head' }, heading, end), children);
}

// empty is what stands where nothing is.
export function empty(text, more) { return h('div', { class: 'empty' }, h('p', {}, text), more ? h('p', { class: 'muted' }, more) : null); }

// choices are buttons of which one is pressed: [{value, label, count}].
export function choices(label, onpick) {
  const group = h('div', { class: 'choices', role: 'group', 'aria-label': label });
  const buttons = new Map();
  return {
    element: group,
    show(options, picked) {
      const kept = new Set(options.map((o) => o.value));
      for (const [value, b] of buttons) if (!kept.has(value)) { b.button.remove(); buttons.delete(value); }
      for (const o of options) {
        if (!buttons.has(o.value)) {
          const number = h('span', { class: 'number' });
          const button = h('button', { type: 'button', onclick: () => onpick(o.value) }, o.label, number);
          buttons.set(o.value, { button, number });
          group.append(button);
        }
        const { button, number } = buttons.get(o.value);
        button.setAttribute('aria-pressed', String(o.value === picked));
        put(number, o.count === undefined ? '' : String(o.count));
      }
    },
  };
}

// facts is a list of names and values; what has no value is left out.
export function facts(...pairs) {
  return h('dl', { class: 'facts' }, pairs.filter(([, value]) => value !== undefined && value !== null && value !== '')
    .map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))));
}
