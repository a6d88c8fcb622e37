import { h } from '../dom.js';
import { register } from '../pages.js';
register({ path: 'parked', title: 'Parked', topics: () => [], show(place) { place.append(h('h1', {}, 'Parked')); return {}; } });
