/**
 * The screen Hooks: the webhooks of a database with how each is, and a form for a new one. With a
 * name in the address it shows that one, which is a module of its own.
 */

import { say } from '../core/dialog.js';
import { fill, h } from '../core/dom.js';
import { form } from '../core/form.js';
import { Keyed } from '../core/keyed.js';
import { marked } from '../core/marks.js';
import { onEnd } from '../core/signal.js';
import { count } from '../lib/format.js';
import { address, encodeKey } from '../lib/route.js';
import { showSecret } from './secret.js';
import { events, lag, request, stateOf } from './words.js';

/** @typedef {import('../app.js').App} App */
/** @typedef {import('./words.js').Hook} Hook */

const refreshMillis = 5000;

/**
 * @param {App} app
 * @param {HTMLElement} main
 * @param {import('../lib/route.js').Route} route
 */
export async function show(app, main, route) {
  const stop = new AbortController();
  onEnd(() => stop.abort());
  const base = `/v1/databases/${encodeKey(route.database)}/hooks`;
  if (!app.operator) return void main.append(h('div', { class: 'screen' }, h('h1', null, 'Hooks'), h('p', { class: 'hint' }, 'Webhooks need the operator’s credential.')));
  const [name] = route.path;
  const screen = name === undefined ? list(app, main, route.database, base) : (await import('./one.js')).one(app, main, { database: route.database, name, base, ended: stop.signal });
  await screen();
  if (stop.signal.aborted) return;
  const note = h('p', { role: 'status', class: 'hint hook-result' });
  main.querySelector('.screen > header')?.append(note);
  follow(screen, stop.signal, note);
}

/**
 * Reads again and again while the screen is in sight, and notes if that fails.
 * @param {() => Promise<void>} read
 * @param {AbortSignal} ended
 * @param {HTMLElement} note
 */
function follow(read, ended, note) {
  const again = async () => {
    try {
      await read();
      if (note.firstChild) fill(note);
    } catch (error) {
      if (!ended.aborted) fill(note, `This may be old. It could not be read again: ${error instanceof Error ? error.message : error}`);
    }
  };
  const timer = setInterval(() => document.hidden || again(), refreshMillis);
  ended.addEventListener('abort', () => clearInterval(timer));
}

/**
 * Draws the list and returns what reads it.
 * @param {App} app
 * @param {HTMLElement} main
 * @param {string} database
 * @param {string} base
 */
function list(app, main, database, base) {
  const body = h('tbody');
  const none = h('p', { class: 'hint empty', hidden: true }, 'There are none yet.');
  const rows = new Keyed(body, (/** @type {Hook} */ hook) => hook.name, (hook) => row(database, hook));
  const read = async () => {
    const { hooks } = /** @type {{hooks: Hook[]}} */ (await app.api.json(base));
    rows.show(hooks);
    none.hidden = hooks.length > 0;
  };
  const head = ['Name', 'State', 'Path', 'Receiver', 'Events', 'Delivered', 'Given up', 'Waiting', 'Lag'];
  main.append(h('div', { class: 'screen' }, h('header', null, h('h1', null, 'Hooks'), h('span', { class: 'muted' }, `of ${database}`), h('a', { to: '/console/docs/triggers', class: 'end' }, 'About webhooks')),
    h('div', { class: 'table-scroll', tabIndex: 0, role: 'group', 'aria-label': 'Hooks' }, h('table', { 'aria-label': 'Hooks', class: 'table hooks-table' },
      h('thead', null, h('tr', null, ...head.map((name, i) => h('th', { scope: 'col', class: i > 4 ? 'number' : '' }, name)))), body), none),
    h('section', { class: 'card' }, h('h2', null, 'New hook'), h('p', { class: 'hint' }, 'Every change of the locations is sent to the receiver, signed, from the next write on.'),
      h('fieldset', { class: 'guard', disabled: () => !app.editing.value }, fresh(app, base, read).element), h('p', { class: 'hint', hidden: () => app.editing.value }, 'Switch Editing on to add a hook.'))));
  return read;
}

/**
 * @param {App} app
 * @param {string} base
 * @param {() => Promise<void>} read
 */
function fresh(app, base, read) {
  return form({
    label: 'New hook', submit: 'Add hook', class: 'hook-form',
    fields: [
      { label: 'Name', code: true, hint: 'Small letters, digits and hyphens.' }, { label: 'Path', code: true, hint: '$name stands for any key: /orders/$id' }, { label: 'URL', code: true, hint: 'Of the receiver, by https.' },
      ...events.map((name) => /** @type {const} */ ({ label: name, kind: 'checkbox', value: 'true' })),
    ],
    done: async (texts, self) => {
      if (!app.editing.peek()) throw new Error('Editing is off.');
      const added = /** @type {Hook} */ (await app.api.json(base, { body: request(texts) }));
      for (const name of ['Name', 'Path', 'URL']) if (self.controls[name]) self.controls[name].value = '';
      say(`The hook ${added.name} was added.`);
      await read().catch(() => {});
      await showSecret(app, added);
    },
  });
}

/**
 * @param {string} database
 * @param {Hook} hook
 */
function row(database, hook) {
  const state = h('td');
  const numbers = Array.from({ length: 4 }, () => h('td', { class: 'number' }));
  const element = h('tr', { data: { name: hook.name } }, h('th', { scope: 'row' }, h('a', { to: address({ screen: 'hooks', database, path: [hook.name] }) }, hook.name)), state,
    h('td', null, marked(hook.path, 'code')), h('td', null, marked(hook.url, 'code')), h('td', null, hook.events.join(', ')), ...numbers);
  const draw = (/** @type {Hook} */ now) => {
    drawState(state, now);
    const { delivered = 0, failed = 0, pending = 0, lag: behind = 0 } = now.stat ?? {};
    [count(delivered), count(failed), count(pending), lag(behind)].forEach((text, i) => numbers[i] && fill(numbers[i], text));
  };
  return { element, draw };
}

/**
 * @param {Element} place
 * @param {Hook} hook
 */
export function drawState(place, hook) {
  const { state, why } = stateOf(hook);
  fill(place, h('span', { class: 'hook-state', data: { state } }, state), why ? h('span', { class: 'hook-why' }, why) : null);
}
