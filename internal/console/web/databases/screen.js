/** The screen Databases: what there is, how large it is; making and dropping one. */

import { ask, complain, say } from '../core/dialog.js';
import { fill, h } from '../core/dom.js';
import { form } from '../core/form.js';
import { bytes, count } from '../lib/format.js';
import { address, encodeKey } from '../lib/route.js';

/** @typedef {import('../app.js').App} App */
/** @typedef {{name: string, position: number, data_bytes: number, index_bytes: number, log_bytes: number, secrets?: number, open?: boolean}} Database */

const described = 50; // databases whose details are asked for

/**
 * @param {App} app
 * @param {HTMLElement} main
 */
export async function show(app, main) {
  const body = h('tbody');
  const made = form({
    label: 'New database', submit: 'Create', class: 'inline-form', fields: [{ label: 'Name', code: true, hint: 'Small letters, digits and hyphens.' }],
    done: async (texts, self) => {
      if (!app.editing.peek()) throw new Error('Editing is off.');
      const name = (texts.Name ?? '').trim();
      const { secret_file: file } = await app.api.json('/v1/databases', { body: { name } });
      say(`The database ${name} was made.${file ? ` Its secret is in ${file}.` : ''}`);
      if (self.controls.Name) self.controls.Name.value = '';
      await list(app, body);
    },
  });
  const guard = h('fieldset', { class: 'guard', disabled: () => !app.editing.value }, made.element);
  main.append(h('div', { class: 'screen' }, h('header', null, h('h1', null, 'Databases')),
    h('div', { class: 'table-scroll', tabIndex: 0, role: 'group', 'aria-label': 'Databases' }, h('table', { 'aria-label': 'Databases', class: 'table' },
      h('thead', null, h('tr', null, ...['Name', 'Position', 'Data', 'Indexes', 'Change log', 'Secrets', 'Rules', 'Drop'].map((name, i) => h('th', { scope: 'col', class: i > 0 && i < 6 ? 'number' : '' }, name)))), body)),
    h('section', { class: 'card narrow' }, h('h2', null, 'New database'), guard, h('p', { class: 'hint', hidden: () => app.editing.value }, 'Switch Editing on to make or drop databases.'))));
  await list(app, body);
}

/**
 * @param {App} app
 * @param {HTMLElement} body
 */
async function list(app, body) {
  const { databases } = /** @type {{databases: Database[]}} */ (await app.api.json('/v1/databases'));
  app.databases.value = databases.map((one) => one.name);
  const details = await Promise.all(databases.slice(0, described).map((one) => app.api.json(`/v1/databases/${encodeKey(one.name)}`).catch(() => one)));
  fill(body, ...databases.map((one, i) => row(app, body, { ...one, ...details[i] })));
}

/**
 * @param {App} app
 * @param {HTMLElement} body
 * @param {Database} one
 */
function row(app, body, one) {
  return h('tr', { data: { name: one.name } }, h('th', { scope: 'row' }, h('a', { to: address({ screen: 'data', database: one.name }) }, one.name)), h('td', { class: 'number' }, count(one.position)),
    ...[one.data_bytes, one.index_bytes, one.log_bytes].map((size) => h('td', { class: 'number' }, bytes(size))), h('td', { class: 'number' }, one.secrets === undefined ? '' : String(one.secrets)),
    h('td', null, h('a', { to: address({ screen: 'rules', database: one.name }) }, one.open ? h('span', { class: 'warning' }, '⚠ open to everybody') : 'Rules')),
    h('td', null, h('button', { type: 'button', class: 'quiet', 'aria-label': `Drop ${one.name}`, on: { click: () => drop(app, body, one.name) } }, 'Drop')));
}

/**
 * @param {App} app
 * @param {HTMLElement} body
 * @param {string} name
 */
async function drop(app, body, name) {
  if (!app.editing.peek()) return complain('Editing is off. Switch it on to drop a database.');
  const input = h('input', { class: 'code', 'aria-label': `Type ${name} to confirm`, autocomplete: 'off' });
  const answer = await ask({
    label: 'Drop database', role: 'alertdialog', buttons: ['Cancel', 'Drop'], danger: true, ready: () => input.value === name && app.editing.peek(),
    body: [h('p', null, 'The data, rules, secrets and change log of ', h('strong', null, name), ' will be gone. There is no undo; make a backup first.'), h('label', { class: 'confirm' }, `Type ${name} to confirm`, input)],
  });
  if (answer !== 'Drop') return;
  try {
    await app.api.json(`/v1/databases/${encodeKey(name)}`, { method: 'DELETE' });
    say(`The database ${name} was dropped.`);
    await list(app, body);
  } catch (error) {
    complain(error instanceof Error ? error.message : String(error));
  }
}
