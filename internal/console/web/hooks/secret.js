/** The secret of a webhook, which the server shows once: when it has drawn it. */

import { ask } from '../core/dialog.js';
import { h } from '../core/dom.js';

/**
 * Shows the secret that came with an answer, if there is one, until the dialog is closed.
 * @param {import('../app.js').App} app
 * @param {import('./words.js').Hook} hook
 */
export async function showSecret(app, hook) {
  const { secret } = hook;
  if (!secret) return;
  await ask({
    label: `Secret of ${hook.name}`, buttons: ['Close'],
    body: [h('p', null, 'Deliveries are signed with this secret. Give it to the receiver now: it is not shown again.'),
      h('p', { class: 'hook-secret' }, h('code', { class: 'secret-value', data: { testid: 'secret' } }, secret), h('button', { type: 'button', on: { click: () => app.copy(secret) } }, 'Copy secret'))],
  });
}
