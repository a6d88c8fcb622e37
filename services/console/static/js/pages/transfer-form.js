// The form for a new transfer. It sends an Idempotency-Key, so that sending it twice moves the money once.

import { attribute, h, put, say } from '../dom.js';
import { known, list, topic } from '../live.js';
import { exchange, uuid } from '../api.js';
import { byOwner, minor, money } from '../format.js';
import { card, field, problemText } from '../widgets.js';

export function transferForm(done) {
  const from = h('select', { required: true });
  const to = h('select', { required: true });
  const sum = h('input', { type: 'text', inputmode: 'decimal', required: true, placeholder: '25.00', autocomplete: 'off' });
  const reference = h('input', { type: 'text', maxlength: 140, autocomplete: 'off', placeholder: 'optional' });
  const key = h('input', { type: 'text', class: 'mono', maxlength: 255, value: uuid(), spellcheck: 'false', autocomplete: 'off' });
  const keep = h('input', { type: 'checkbox', id: 'keep-key' });
  const exact = h('span', { class: 'hint' });
  const problem = h('div', { class: 'problem', role: 'alert' });
  const answer = h('p', { class: 'answer', role: 'status' });
  const button = h('button', { class: 'primary', type: 'submit' }, 'Send');
  const form = h('form', { class: 'stack', novalidate: true },
    field('From', from), field('To', to),
    h('div', { class: 'field' }, field('Amount', sum), exact),
    field('Reference', reference),
    h('details', { class: 'key' }, h('summary', {}, 'Idempotency key'),
      h('div', { class: 'stack' }, field('Idempotency-Key', key, 'Sent twice with the same key, it is the same transfer. With another body, the key is refused.'),
        h('label', { class: 'check' }, keep, ' keep this key, and what is filled in, for the next one'))),
    problem, answer, h('div', { class: 'actions' }, button));
  const element = card('New transfer', {}, form);

  const source = () => list('accounts').find((a) => a.id === from.value);
  const unknown = () => list('accounts').length === 0 && topic('accounts').source?.ok === false ? 'The accounts are not known: account does not answer.' : '';
  const showExact = () => {
    const a = source();
    const exactly = a && minor(sum.value, a.currency);
    say(exact, !a ? unknown() : sum.value.trim() === '' ? `In ${a.currency}; ${money(a.balanceMinor, a.currency)} are there.`
      : exactly ? `${exactly} minor units of ${a.currency}` : `Write an amount such as 25 or 25.00, above 0.`);
    attribute(sum, 'aria-invalid', a && sum.value.trim() !== '' && !exactly ? 'true' : null);
  };
  for (const control of [from, sum]) control.addEventListener('input', showExact);

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    put(problem);
    say(answer, '');
    const a = source();
    const exactly = a && minor(sum.value, a.currency);
    if (!exactly) {
      put(problem, a ? 'The amount must be a number such as 25 or 25.00, above 0, with at most the digits that the currency has.' : unknown() || (known('accounts') ? 'Choose the account that pays.' : 'The accounts are not known yet.'));
      (a ? sum : from).focus();
      return;
    }
    const body = { sourceAccountId: from.value, destinationAccountId: to.value, currency: a.currency };
    if (reference.value) body.reference = reference.value;
    button.disabled = true;
    try {
      // The amount is put in as digits: a JavaScript number could not hold every one.
      const text = JSON.stringify(body).slice(0, -1) + `,"amountMinor":${exactly}}`;
      const { found: made, headers } = await exchange('POST', '/api/transfers', text, key.value ? { 'Idempotency-Key': key.value } : {});
      if (!keep.checked) {
        key.value = uuid();
        sum.value = '';
        reference.value = '';
      }
      if (headers.get('Idempotency-Replayed')) {
        put(answer, 'The same answer as before: this key has made ', h('a', { href: '#/transfers/' + made.id }, 'that transfer'), ' already, and makes no second one.');
      } else done(made);
    } catch (wrong) {
      put(problem, problemText(wrong));
    } finally {
      button.disabled = false;
      showExact();
    }
  });

  let shown = '';
  return {
    element,
    update() {
      const all = list('accounts');
      if (all.length === 0) showExact();
      const now = all.map((a) => [a.id, a.owner, a.status, a.currency].join()).join('\n');
      if (!known('accounts') || now === shown) return;
      shown = now;
      const [first, second] = [from.value, to.value];
      const options = () => sorted(all).map((a) => h('option', { value: a.id }, `${a.owner} · ${a.currency}${a.status === 'OPEN' ? '' : ` · ${a.status.toLowerCase()}`}`));
      put(from, options());
      put(to, options());
      from.value = first || sorted(all)[0]?.id || '';
      to.value = second || sorted(all).find((a) => a.id !== from.value)?.id || '';
      showExact();
    },
  };
}

function sorted(accounts) { return [...accounts].sort(byOwner); }
