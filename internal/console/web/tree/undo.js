/** Taking writes back: the question when others have written since, and the button. */

import { ask, complain, say } from '../core/dialog.js';
import { h } from '../core/dom.js';
import { ApiError } from '../lib/api.js';

/** @typedef {import('./write.js').Writer} Writer */

/**
 * Takes the last write back, unless others have written there since.
 * @param {Writer} writer
 */
export async function undo(writer) {
  try {
    const name = await writer.undo();
    if (name) say(`Undone: ${name}.`);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 412) return complain(error instanceof Error ? error.message : String(error));
    const answer = await ask({
      label: 'Changed meanwhile', role: 'alertdialog', buttons: ['Leave it', 'Undo anyway'], danger: true,
      body: [h('p', null, 'Somebody else has written there since. Nothing was undone.')],
    });
    if (answer === 'Undo anyway') await writer.undo(true).catch((/** @type {Error} */ problem) => complain(problem.message));
  }
}

/**
 * The button for that, which is there once something was written.
 * @param {import('../app.js').App} app
 * @param {Writer} writer
 * @param {() => unknown} [done]
 */
export function undoButton(app, writer, done) {
  return h('button', {
    type: 'button', class: 'quiet', title: 'Take the last change back (Ctrl+Z)', hidden: () => writer.past.value.length === 0, disabled: () => !app.editing.value,
    on: { click: async () => (await undo(writer), done?.()) },
  }, 'Undo');
}
