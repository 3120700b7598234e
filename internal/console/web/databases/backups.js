/** The screen Backups: how old the last ones are, making one, and how to restore it. */

import { say } from '../core/dialog.js';
import { fill, h } from '../core/dom.js';
import { form } from '../core/form.js';
import { ago, bytes } from '../lib/format.js';

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
    label: 'Back up now', submit: 'Back up now', fields: [{ label: 'Directory', code: true, hint: 'On the machine of the server. It must be empty or not exist.' }],
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
  const restore = () => fill(lines, `livetree backup verify ${quoted(target())}\nlivetree restore ${quoted(target())} ./livetree-data\nlivetree serve --data ./livetree-data`);
  made.controls.Directory?.addEventListener('input', restore);
  restore();
  const status = async () => {
    const metrics = await app.api.text('/metrics');
    fill(facts, h('dt', null, 'Last backup'), h('dd', null, age(metrics, 'livetree_backup_age_seconds')), h('dt', null, 'Last verified'), h('dd', null, age(metrics, 'livetree_restore_verified_age_seconds')));
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

/**
 * The age that a metric tells, in words.
 * @param {string} metrics
 * @param {string} name
 */
function age(metrics, name) {
  const [, text] = new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics) ?? [];
  const seconds = Number(text);
  return Number.isFinite(seconds) ? ago(seconds) : 'never';
}
