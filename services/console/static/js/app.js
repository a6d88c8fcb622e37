// The frame around the pages: which page is shown, what it looks at, and what is said above all of them.
//
// A page is a module that registers itself:
//
//   register({ path: 'things', title: 'Things', topics: (rest) => ['things'], show(place, rest) { …; return { update, close } } })
//
// and is imported here. rest is what follows the path in the address: #/things/ID gives ['ID']. update(changed) is called with
// the names of the topics that have changed, at most once a frame; close() when another page is shown.

import { h, put, say, toggle, attribute } from './dom.js';
import { connection, listen, troubled, watch, watchEverywhere } from './live.js';
import { pages } from './pages.js';
import { alarms, notices } from './alarms.js';
import { refresh, session, sessionButton } from './session.js';
import './pages/overview.js';
import './pages/transfers.js';
import './pages/accounts.js';
import './pages/parked.js';
import './pages/exercises.js';
import './pages/policy.js';
import './pages/interview.js';

const main = document.getElementById('main');
const nav = document.getElementById('nav');
let shown = null; // {page, rest, update, close}

const links = pages.map((page) => {
  const badge = h('span', { class: 'badge', hidden: true });
  const link = h('a', { href: '#/' + page.path }, page.title, badge);
  nav.append(link);
  return { page, link, badge };
});

function address() {
  const [path, ...rest] = location.hash.replace(/^#\/?/, '').split('/').map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  return { page: pages.find((p) => p.path === path) || pages[0], rest: rest.filter(Boolean) };
}

function route({ focus = true } = {}) {
  const { page, rest } = address();
  if (shown && shown.page === page && shown.turn?.(rest)) {
    watch(page.topics(rest));
    shown.rest = rest;
    return;
  }
  shown?.close?.();
  put(main);
  main.className = `page-${page.path || 'overview'}`;
  document.title = `${page.title} · Banking console`;
  shown = { page, rest };
  Object.assign(shown, page.show(main, rest));
  watch(page.topics(rest));
  shown.update?.(new Set(page.topics(rest)));
  for (const { page: p, link } of links) attribute(link, 'aria-current', p === page ? 'page' : null);
  // On a narrow screen the tabs are wider than it. The row alone is scrolled, not the page.
  const { link } = links.find((l) => l.page === page);
  const [row, tab] = [nav.getBoundingClientRect(), link.getBoundingClientRect()];
  nav.scrollLeft += tab.left + tab.width / 2 - row.left - row.width / 2;
  if (focus) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

const liveMark = document.getElementById('live');
const liveText = document.getElementById('live-text');

function frame() {
  const silent = troubled();
  toggle(liveMark, 'down', !connection.up);
  toggle(liveMark, 'part', connection.up && silent.length > 0);
  say(liveText, !connection.up ? connection.since ? 'no connection' : 'connecting' : silent.length > 0 ? 'partly live' : 'live');
  const found = alarms();
  notices(document.getElementById('notices'), found, shown?.page);
  for (const { page, badge } of links) {
    const n = page.badge?.() || 0;
    badge.hidden = n === 0;
    say(badge, n > 99 ? '99+' : n);
    attribute(badge, 'aria-label', n ? `${n} waiting` : null);
  }
}

listen((changed) => {
  frame();
  shown?.update?.(changed);
});

document.getElementById('skip').addEventListener('click', () => main.focus());
sessionButton(document.getElementById('session'));
addEventListener('hashchange', () => route());
// Who signs in or out sees the page anew: what it may look at is another.
document.addEventListener('session', () => {
  watchEverywhere(session.others.map((name) => 'metrics:' + name));
  const key = `${session.signedIn}`;
  if (route.session !== undefined && route.session !== key && shown?.page.secret) {
    shown.turn = null;
    route({ focus: false });
  }
  route.session = key;
});
for (const name of ['session-ended', 'stream-refused']) document.addEventListener(name, () => refresh());

// Only a page that shows different things to who is signed in has to wait until that is known.
route.session = `${session.signedIn}`;
const asked = refresh();
if (address().page.secret) await asked;
route({ focus: false });
frame();
