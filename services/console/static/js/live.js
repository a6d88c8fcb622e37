// What the console knows, as the server tells it by server-sent events. The page says which topics it looks at; each is kept as
// {keys, parts, source}, and whoever listens is told once for each frame which topics have changed.

const topics = new Map();
const listeners = new Set();
const everywhere = ['queues', 'metrics:account', 'metrics:transfer', 'ledger', 'exercises'];
const silentAfter = 13000; // a beat comes at least every 5 s
const hiddenFor = 10000;

let wanted = [];
let looked = [];
let stream = null;
let changed = new Set();
let heard = 0;
let hideTimer = 0;
let retryTimer = 0;
export const connection = { up: false, since: null };

export function topic(name) { return topics.get(name) || { keys: [], parts: {}, source: null }; }

export function part(name, key) { return topic(name).parts[key]; }

// at is when a topic was last told, on the page's clock. A topic that is not told because nothing changes is still known to be as it
// was, and now counts.
export function at(name) {
  const known = topics.get(name);
  if (!known) return undefined;
  const now = performance.now();
  return now - known.at > 1600 && !stale(name) ? now : known.at;
}

// list answers the parts of a topic in order, without the mark that more follow.
export function list(name) {
  const { keys, parts } = topic(name);
  return keys.filter((key) => key !== 'next').map((key) => parts[key]);
}

// known says whether a topic has told its state yet.
export function known(name) { return topics.has(name) && topics.get(name).told; }

export function listen(f) {
  listeners.add(f);
  return () => listeners.delete(f);
}

// watch sets what the page looks at, beside what is looked at everywhere.
export function watch(names) {
  looked = names;
  const next = [...new Set([...everywhere, ...names])].sort();
  if (stream && next.join() === wanted.join()) return;
  wanted = next;
  for (const name of topics.keys()) if (!wanted.includes(name)) topics.delete(name);
  open();
}

// watchEverywhere adds to what is looked at whatever page is shown.
export function watchEverywhere(names) {
  const fresh = names.filter((name) => !everywhere.includes(name));
  if (fresh.length === 0) return;
  everywhere.push(...fresh);
  if (stream) watch(looked);
}

function open() {
  clearTimeout(retryTimer);
  if (stream) stream.close();
  stream = null;
  if (document.hidden && !hideTimer) return;
  const mine = new EventSource('/events?topics=' + encodeURIComponent(wanted.join()));
  stream = mine;
  heard = Date.now();
  mine.addEventListener('beat', () => hear(mine));
  mine.addEventListener('state', (event) => {
    if (stream !== mine) return;
    hear(mine);
    take(JSON.parse(event.data));
  });
  mine.addEventListener('end', () => {
    mine.close();
    document.dispatchEvent(new Event('session-ended'));
  });
  mine.onerror = () => {
    if (stream !== mine) return;
    lose();
    if (mine.readyState !== EventSource.CLOSED) return; // else the browser tries again by itself
    document.dispatchEvent(new Event('stream-refused'));
    retryTimer = setTimeout(open, 2000);
  };
}

function hear(from) {
  if (from !== stream) return;
  heard = Date.now();
  if (connection.up) return;
  Object.assign(connection, { up: true, since: null });
  mark('connection');
}

function lose() {
  if (!connection.up && connection.since) return;
  Object.assign(connection, { up: false, since: new Date() });
  mark('connection');
}

function take(update) {
  const known = topics.get(update.topic) || { keys: [], parts: {}, source: null, told: false };
  const parts = { ...known.parts, ...update.parts };
  if (update.keys) {
    known.keys = update.keys;
    known.told = true;
    const kept = new Set(update.keys);
    for (const key of Object.keys(parts)) if (!kept.has(key)) delete parts[key];
  }
  known.parts = parts;
  known.at = performance.now();
  if (update.source) known.source = update.source;
  topics.set(update.topic, known);
  mark(update.topic);
}

function mark(name) {
  if (changed.size === 0) requestAnimationFrame(tell);
  changed.add(name);
}

function tell() {
  const now = changed;
  changed = new Set();
  for (const f of listeners) f(now);
}

// silent lists who does not answer, or answers with errors: {upstream, silent, since, reason}, each upstream once.
export function troubled() {
  const found = new Map();
  for (const { source } of topics.values()) {
    if (!source || source.ok) continue;
    const known = found.get(source.upstream);
    if (!known || source.silent && !known.silent || source.silent === known.silent && source.since < known.since) found.set(source.upstream, source);
  }
  return [...found.values()];
}

// stale says whether what is shown of a topic may have been overtaken.
export function stale(...names) {
  return !connection.up || names.some((name) => { const { source } = topic(name); return source && !source.ok; });
}

setInterval(() => mark('clock'), 1000); // rates fall and ages rise also when nothing comes

setInterval(() => {
  if (!stream || document.hidden || Date.now() - heard < silentAfter) return;
  lose();
  open();
}, 1000);

// A hidden page asks for nothing. Browsers also open only six connections to one server, which hidden tabs would use up.
document.addEventListener('visibilitychange', () => {
  clearTimeout(hideTimer);
  hideTimer = 0;
  if (!document.hidden) {
    if (!stream) open();
    return;
  }
  hideTimer = setTimeout(() => {
    hideTimer = 0;
    if (stream) stream.close();
    stream = null;
  }, hiddenFor);
});
