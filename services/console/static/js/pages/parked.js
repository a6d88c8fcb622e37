// Parked: the messages that were given up, of all services. What is in them is shown to who is signed in.

import { h, put } from '../dom.js';
import { parkedCount, quarantines, services } from '../bank.js';
import { session, signInForm } from '../session.js';
import { plural } from '../format.js';
import { card, empty } from '../widgets.js';
import { register } from '../pages.js';
import { parkedList } from './parked-list.js';
import { parkedMessage } from './parked-message.js';
import { parkedAudit } from './parked-audit.js';

const live = (rest) => session.signedIn && rest.length === 0;

register({
  path: 'parked', title: 'Parked', secret: true, badge: parkedCount,
  topics: (rest) => live(rest) ? services().map((name) => 'parked:' + name) : [],
  show(place, rest) {
    if (!session.signedIn) return locked(place);
    if (rest[0] === 'message' && rest.length === 3) return parkedMessage(place, rest[1], rest[2]);
    if (rest[0] === 'audit') return parkedAudit(place);
    return parkedList(place);
  },
});

// locked is what who is not signed in sees: that there is something, but not what.
function locked(place) {
  const depths = h('div', {});
  place.append(h('div', { class: 'page-head' }, h('h1', {}, 'Parked')),
    h('div', { class: 'locked' },
      card('Sign in to look inside', { level: 2 }, h('p', { class: 'muted intro' }, 'Messages hold what people pay to whom, and replaying or discarding one moves money. Both need the admin token.'), signInForm()),
      card('In quarantine', {}, depths)));
  return {
    update() {
      const all = quarantines();
      put(depths, all.length === 0 ? empty('The broker has not told yet.')
        : h('ul', { class: 'depths' }, all.map((q) => h('li', { class: q.depth ? 'holds' : null }, h('span', { class: 'mono' }, q.name), h('span', {}, plural(q.depth, 'message'))))));
    },
  };
}
