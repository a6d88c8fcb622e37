// Elements are made by these functions and by nothing else: whatever a message, an account or an error says becomes a text node
// or an attribute's value, never markup.

const SVG = 'http://www.w3.org/2000/svg';

// h makes an element: h('button', {class: 'quiet', type: 'button', onclick: f}, 'Close').
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// s does the same for SVG.
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value' && 'value' in element) element.value = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

// put replaces what is in an element.
export function put(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

// say sets an element's text, and touches it only when it differs: what is selected stays selected.
export function say(element, text) {
  text = String(text ?? '');
  if (element.textContent !== text) element.textContent = text;
}

export function toggle(element, name, on) { element.classList.toggle(name, Boolean(on)); }

// attribute sets, or with null or false removes, an attribute.
export function attribute(element, name, value) {
  if (value === undefined || value === null || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

// Rows keeps one element for each item, by key, in the items' order: make(item) answers {element, update(item)}. Focus and
// selection survive, because an element that stays is not made again.
export class Rows {
  constructor(parent, key, make) { Object.assign(this, { parent, key, make, known: new Map() }); }

  show(items) {
    const kept = new Map();
    let at = this.parent.firstElementChild;
    for (const item of items) {
      const key = this.key(item);
      const row = this.known.get(key) || this.make(item);
      row.update(item);
      kept.set(key, row);
      if (row.element === at) at = at.nextElementSibling;
      else this.parent.insertBefore(row.element, at);
    }
    for (const [key, row] of this.known) if (kept.get(key) !== row) row.element.remove();
    this.known = kept;
  }
}
