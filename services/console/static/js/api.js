// Calls to the console's own API. A refusal is thrown as a Problem, in the words of whoever refused.

export class Problem extends Error {
  constructor(status, document) {
    super(document.detail || document.title || `The answer was ${status}.`);
    this.status = status;
    this.fields = document.errors || [];
  }
}

// call makes one call and gives what is answered. body is an object, or JSON as a text already.
export async function call(method, path, body, headers = {}) {
  return (await exchange(method, path, body, headers)).found;
}

// exchange does the same and gives the answer's headers as well.
export async function exchange(method, path, body, headers = {}) {
  const answer = await send(method, path, body, headers);
  return { found: answer.status === 204 ? null : await read(answer), headers: answer.headers };
}

async function send(method, path, body, headers) {
  const options = { method, headers: { ...headers }, credentials: 'same-origin' };
  if (body !== undefined) {
    options.headers['Content-Type'] = 'application/json';
    options.body = typeof body === 'string' ? body : JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    const harmless = method === 'GET' || headers['Idempotency-Key'];
    throw new Problem(0, { detail: `The console does not answer. ${harmless ? 'The same call may be made again.' : 'It is not known whether this was done: look before you repeat it.'}` });
  }
  if (answer.ok) return answer;
  const text = await answer.text().catch(() => '');
  let document = {};
  try { document = JSON.parse(text); } catch { /* no problem document: the status has to do */ }
  if (answer.status === 401 && path !== '/api/session') document.dispatchEvent(new Event('session-ended'));
  throw new Problem(answer.status, document);
}

async function read(answer) {
  try {
    return await answer.json();
  } catch {
    throw new Problem(answer.status, { detail: 'The answer broke off. Look again before you repeat the call.' });
  }
}

// uuid makes a key for one call, so that repeating it is harmless.
export function uuid() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16)); // without TLS, on another host than this one
  bytes[6] = bytes[6] & 15 | 64;
  bytes[8] = bytes[8] & 63 | 128;
  const hex = [...bytes].map((b) => b.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
