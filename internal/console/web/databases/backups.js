/** The screen Backups: how old the last ones are, making one, and how to restore it. */

import { say } from '../core/dialog.js';
import { fill, h } from '../core/dom.js';
import { form } from '../core/form.js';
import { bytes, moment } from '../lib/format.js';

/**
 * @param {import('../app.js').App} app
 * @param {HTMLElement} main
 */
export async function show(app, main) {
  const facts = h('dl', { class: 'facts' });
  const result = h('div', { class: 'backup-result' });
  const target = () => made.controls.Directory?.value || '/var/backups/livetree';
  const lines = h('pre', { class: 'code snippet', tabIndex: 0, 'aria-label': 'Lines for restore' });
  const made = form({
    label: 'Back up now', submit: 'Back up now', fields: [{ label: 'Directory', code: true, hint: 'On the machine of the server. A directory that holds a backup already gets what has changed since.' }],
    done: async (texts) => {
      if (!app.editing.peek()) throw new Error('Editing is off.');
      if (!texts.Directory) throw new Error('Name a directory.');
      fill(result, h('p', { role: 'status' }, 'The backup is being made…'));
      try {
        const answer = await app.api.json('/v1/backup', { body: { target: texts.Directory } });
        say('The backup was made.');
        fill(result, h('dl', { class: 'facts' }, ...Object.entries(answer ?? {}).flatMap(([name, value]) => [h('dt', null, name.replaceAll('_', ' ')), h('dd', { class: 'code' }, /bytes$/.test(name) && typeof value === 'number' ? bytes(value) : typeof value === 'object' ? JSON.stringify(value) : String(value))])));
      } catch (error) {
        fill(result);
        throw error;
      }
      await status();
    },
  });
  const restore = () => fill(lines, `livetree verify ${quoted(target())}\nlivetree restore ${quoted(target())} --data ./livetree-restored`);
  made.controls.Directory?.addEventListener('input', restore);
  restore();
  const status = async () => {
    const found = await app.api.json('/v1/status');
    const backup = found.backup ?? found.backups ?? {};
    const checks = (found.checks ?? []).filter((/** @type {any} */ check) => /backup/.test(check.name));
    fill(facts, h('dt', null, 'Last backup'), h('dd', null, moment(backup.last ?? found.last_backup ?? '') || 'not known here'), h('dt', null, 'Last verified'), h('dd', null, moment(backup.verified ?? found.last_verified ?? '') || 'not known here'),
      ...checks.flatMap((/** @type {any} */ check) => [h('dt', null, check.name), h('dd', null, check.state)]));
  };
  main.append(h('div', { class: 'screen' }, h('header', null, h('h1', null, 'Backups')), h('div', { class: 'columns' },
    h('section', { class: 'card' }, h('h2', null, 'Last backups'), facts),
    h('section', { class: 'card' }, h('h2', null, 'Make one'), h('fieldset', { class: 'guard', disabled: () => !app.editing.value }, made.element), h('p', { class: 'hint', hidden: () => app.editing.value }, 'Switch Editing on to make a backup.'), result),
    h('section', { class: 'card' }, h('h2', null, 'Restore'), h('p', { class: 'hint' }, 'On the machine of the server. Verify first; a restore goes into a new data directory.'), lines))));
  await status();
}

/** @param {string} text */
function quoted(text) {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
