// Who is signed in. The token goes to the server once and is forgotten; the browser keeps a cookie that no script can read.

import { h, put } from './dom.js';
import { call } from './api.js';
import { field, problemText, dialog } from './widgets.js';

export const session = { signedIn: false, available: true, operator: '', known: false, others: [] };

export async function refresh() {
  try {
    const { signedIn, operator, available, others } = await call('GET', '/api/session');
    Object.assign(session, { signedIn, available, operator: operator || '', known: true, others });
  } catch { /* the connection's state tells that */ }
  document.dispatchEvent(new Event('session'));
}

export async function signOut() {
  await call('DELETE', '/api/session').catch(() => {});
  await refresh();
}

// signInForm asks for the token. done is called when it was taken.
export function signInForm(done) {
  if (session.known && !session.available) {
    return h('p', { class: 'muted' }, 'The console was started without ADMIN_TOKEN, so nobody can sign in. Start it with the services’ token.');
  }
  const name = h('input', { type: 'text', autocomplete: 'username', maxlength: 60, spellcheck: 'false', value: remembered() });
  const token = h('input', { type: 'password', autocomplete: 'current-password', required: true, spellcheck: 'false' });
  const problem = h('p', { class: 'problem', role: 'alert' });
  const button = h('button', { class: 'primary', type: 'submit' }, 'Sign in');
  return h('form', {
    class: 'stack', onsubmit: async (event) => {
      event.preventDefault();
      button.disabled = true;
      put(problem);
      try {
        await call('POST', '/api/session', { token: token.value, operator: name.value });
        try { localStorage.setItem('operator', name.value); } catch { /* not allowed here */ }
        token.value = '';
        await refresh();
        done?.();
      } catch (wrong) {
        put(problem, problemText(wrong));
        token.select();
      } finally {
        button.disabled = false;
      }
    },
  },
  field('Your name', name, 'For the audit: who replayed or discarded what.'),
  field('Admin token', token, 'bank up writes it to .bank/admin-token; in the Docker composition it is ADMIN_TOKEN of docker-compose.yml.'),
  problem, h('div', { class: 'actions' }, button));
}

function remembered() {
  try { return localStorage.getItem('operator') || ''; } catch { return ''; }
}

export function signIn(done) {
  dialog('Sign in', (close) => signInForm(() => { close(); done?.(); }));
}

// sessionButton is the corner of the page that says who is signed in.
export function sessionButton(place) {
  const draw = () => {
    if (session.signedIn) {
      put(place, h('span', { class: 'who', title: 'Signed in with the admin token' }, session.operator || 'signed in'),
        h('button', { class: 'quiet', type: 'button', onclick: signOut }, 'Sign out'));
    } else {
      put(place, h('button', { class: 'quiet', type: 'button', onclick: () => signIn() }, 'Sign in'));
    }
  };
  document.addEventListener('session', draw);
  draw();
}
