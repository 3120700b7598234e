/** The form that signs in. */

import { h } from './core/dom.js';
import { form } from './core/form.js';
import { sign, themeButton } from './shell.js';

/**
 * @param {import('./app.js').App} app
 * @param {string} refusal what to say at first
 * @returns {HTMLElement}
 */
export function signIn(app, refusal) {
  const made = form({
    label: 'Sign in', submit: 'Sign in', class: 'sign-in',
    before: [h('div', { class: 'sign-in-title' }, sign(), h('h1', null, 'Livetree'))],
    fields: [
      { label: 'Credential', kind: 'password', autocomplete: 'current-password', hint: 'The operator’s token, or the secret of a database.' },
      { label: 'Database', hint: 'Only with the secret of a database.' },
    ],
    done: async (texts, self) => {
      const database = (texts.Database ?? '').trim();
      if (!texts.Credential) throw new Error('Enter a credential.');
      const problem = await app.exchange({ credential: texts.Credential, ...(database ? { database } : {}) });
      if (self.controls.Credential) self.controls.Credential.value = '';
      if (problem) {
        self.controls.Credential?.focus();
        throw new Error(problem);
      }
      await app.enter();
    },
  });
  if (refusal) made.fail(refusal);
  queueMicrotask(() => made.controls.Credential?.focus());
  return h('main', { class: 'sign-in-page' }, h('div', { class: 'sign-in-theme' }, themeButton()), made.element,
    h('p', { class: 'hint' }, 'No credential at hand? On the server, ', h('code', null, 'livetree console'), ' prints a link that signs you in.'));
}
