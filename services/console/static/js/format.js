// How figures, times and names are written. Amounts are texts of minor units and are handled as texts and BigInts: a float
// would be wrong from 2^53 on.

const digits = new Map();

// fraction is how many digits of a currency's amounts come after the point.
export function fraction(currency) {
  if (!digits.has(currency)) {
    let n = 2;
    try { n = new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits; } catch { /* no such currency: 2 */ }
    digits.set(currency, n);
  }
  return digits.get(currency);
}

// money writes minor units in major ones: money('-250000', 'EUR') is −2,500.00.
export function money(minor, currency, { sign = false } = {}) {
  let value;
  try { value = BigInt(minor); } catch { return String(minor ?? '–'); }
  const n = fraction(currency);
  const text = (value < 0n ? -value : value).toString().padStart(n + 1, '0');
  const whole = text.slice(0, text.length - n).replace(/\B(?=(\d{3})+$)/g, ',');
  return (value < 0n ? '−' : sign && value > 0n ? '+' : '') + whole + (n ? '.' + text.slice(-n) : '');
}

// minor reads an amount as people write it, 1,234.50 or 1234.5, into minor units; null when it is none.
export function minor(text, currency) {
  const n = fraction(currency);
  const found = /^(\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d*))?$/.exec(text.trim());
  if (!found || (found[2] || '').length > n) return null;
  const value = BigInt(found[1].replaceAll(',', '') + (found[2] || '').padEnd(n, '0'));
  return value > 0n && value <= 9223372036854775807n ? value.toString() : null;
}

export function count(n) { return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ','); }

export function plural(n, one, many = one + 's') { return `${count(n)} ${n === 1 ? one : many}`; }

export function perSecond(rate) {
  if (!(rate >= 0.05)) return '0';
  return rate < 9.95 ? rate.toFixed(1) : count(rate);
}

const pad = (n, width = 2) => String(n).padStart(width, '0');

// clock is the time of day here: 14:03:27, with milliseconds if wanted.
export function clock(at, precise = false) {
  const d = new Date(at);
  if (Number.isNaN(d.getTime())) return '–';
  return `${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}` + (precise ? `.${pad(d.getMilliseconds(), 3)}` : '');
}

// moment is the time of day, with the date when that is not today's.
export function moment(at) {
  const d = new Date(at);
  if (Number.isNaN(d.getTime())) return '–';
  return d.toDateString() === new Date().toDateString() ? clock(at) : `${day(at)} ${clock(at)}`;
}

export function day(at) {
  const d = new Date(at);
  return `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())}`;
}

// span writes a duration in milliseconds with what matters of it: 12 ms, 5.2 s, 3 min 20 s, 2 h 5 min.
export function span(ms) {
  if (ms < 0) ms = 0;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10000) return `${(ms / 1000).toFixed(1).replace(/\.0$/, '')} s`;
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s % 60 ? ` ${s % 60} s` : ''}`;
  const m = Math.round(s / 60);
  if (m < 48 * 60) return `${Math.floor(m / 60)} h${m % 60 ? ` ${m % 60} min` : ''}`;
  return `${Math.round(m / 1440)} days`;
}

// short is the end of a UUID: ids that begin with their time, as all of ours do, begin alike.
export function short(id) { return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id || '') ? '…' + id.slice(-8) : id; }

// words makes a sentence of a name in capitals: INSUFFICIENT_FUNDS is Insufficient funds.
export function words(name) {
  const text = String(name || '').toLowerCase().replaceAll('_', ' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const names = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

// byOwner sorts accounts as people look for them: Load 9 before Load 10.
export function byOwner(a, b) { return names.compare(a.owner, b.owner) || names.compare(a.id, b.id); }
