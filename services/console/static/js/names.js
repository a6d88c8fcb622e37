// Whose account an id is. The newest accounts are watched; older ones are asked for once.

import { list } from './live.js';
import { call } from './api.js';
import { short } from './format.js';

const asked = new Map();

export function account(id) {
  return list('accounts').find((a) => a.id === id) || asked.get(id) || null;
}

// owner answers the name, or the short id while nothing better is known; changed is called when it is.
export function owner(id, changed) {
  const found = account(id);
  if (found) return found.owner;
  if (!asked.has(id)) {
    asked.set(id, null);
    call('GET', '/api/accounts/' + encodeURIComponent(id)).then((a) => { asked.set(id, a); changed?.(); }, () => {});
  }
  return short(id);
}
