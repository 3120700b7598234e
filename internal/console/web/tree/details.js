/** The details of the row under the cursor, beside the tree. */

import { ask, complain } from '../core/dialog.js';
import { h, fill } from '../core/dom.js';
import { mark, marked } from '../core/marks.js';
import { bytes, clock, cut, several } from '../lib/format.js';
import { address, encodeKey, join } from '../lib/route.js';
import { maxOpened } from './write.js';

/** @typedef {import('./model.js').RowItem} RowItem */

/**
 * @param {import('./screen.js').DataScreen} screen
 * @returns {HTMLElement}
 */
export function details(screen) {
  const { app, route } = screen;
  const path = h('h2', { class: 'code details-path' });
  const chosen = h('p', { class: 'hint' });
  const facts = new Facts(screen);
  const value = h('pre', { class: 'code details-value', tabIndex: 0, 'aria-label': 'Value' });
  const links = h('div', { class: 'details-links' });
  const changes = h('div', { class: 'details-changes' });
  let shown = '';
  screen.follow((item) => {
    if (!item) return;
    const keys = item.level === 1 ? screen.tree.path : [...item.place.path, item.row.key];
    mark(path, join(keys));
    fill(chosen, screen.view.selected > 1 ? `${several(screen.view.selected, 'row')} selected, to be deleted together. This is the last:` : '');
    facts.show(item);
    value.hidden = item.row.type === 'object' || item.row.type === 'none';
    value.dataset.type = item.row.type;
    value.toggleAttribute('data-cut', Boolean(item.row.cut));
    mark(value, item.row.value ?? '');
    if (item.id === shown) return;
    shown = item.id;
    const at = { database: route.database, path: keys };
    fill(links, link('Open', { screen: 'data', ...at }), link('Table', { screen: 'query', ...at, params: tableParams }), link('Query here', { screen: 'query', ...at }), link('Live here', { screen: 'live', ...at }), link('Past', { screen: 'data', ...at, params: { at: '' } }), link('Rules', { screen: 'rules', database: route.database }),
      h('button', { type: 'button', class: 'quiet', on: { click: () => showJSON(app, screen.writer, keys) } }, 'JSON'));
    fill(changes, h('button', { type: 'button', class: 'quiet', on: { click: () => recent(app, route.database, keys, screen.tree.root.at, changes) } }, 'Recent changes'));
  });
  return h('aside', { class: 'details', 'aria-label': 'Details', data: { open: () => String(screen.sheet.value) } }, path, chosen, facts.element, value, links, changes);
}

/** The table of a node is a query of its first children. */
const tableParams = { orderBy: '"$key"', limitToFirst: '100' };

/**
 * Shows a node as JSON text, with its priorities.
 * @param {import('../app.js').App} app
 * @param {import('./write.js').Writer} writer
 * @param {string[]} path
 */
async function showJSON(app, writer, path) {
  try {
    const { text } = await writer.read(path, maxOpened);
    if (text === null) return complain('This is larger than 1 MiB. Export it instead.');
    const shown = (await import('../lib/json.js')).pretty(text);
    const box = h('pre', { class: 'code json-text', tabIndex: 0, 'aria-label': 'JSON' });
    mark(box, shown);
    if ((await ask({ label: `JSON of ${join(path)}`, buttons: ['Close', 'Copy'], wide: true, body: [box] })) === 'Copy') await app.copy(shown);
  } catch (error) {
    complain(error instanceof Error ? error.message : String(error));
  }
}

/**
 * @param {string} name
 * @param {{screen: string, database?: string, path?: string[], params?: Record<string, string>}} to
 */
function link(name, to) {
  return h('a', { to: address(to) }, name);
}

/** Type, children, size and priority. The elements stay, so that a click meets its button while rows change. */
class Facts {
  /** @param {import('./screen.js').DataScreen} screen */
  constructor(screen) {
    this.screen = screen;
    this.element = h('dl', { class: 'facts' });
    /** @type {Map<string, {name: HTMLElement, text: HTMLElement}>} */
    this.lines = new Map();
    for (const name of ['Type', 'Children', 'Size', 'Priority']) {
      const line = { name: h('dt', null, name), text: h('span') };
      this.lines.set(name, line);
      this.element.append(line.name, h('dd', null, line.text, name === 'Priority' ? this.button() : null));
    }
  }

  button() {
    const { app, view, desk, drawn } = this.screen;
    return h('button', {
      type: 'button', class: 'quiet small', 'aria-label': 'Set priority', on: { click: () => ((this.screen.sheet.value = false), this.screen.edit((edit, item) => edit.editPriority(desk, item))) },
      disabled: () => (drawn.value, view.cursor.value, !app.editing.value || (view.current?.row.type ?? 'none') === 'none'),
    }, 'Set');
  }

  /** @param {RowItem} item */
  show(item) {
    const { row } = item;
    const size = row.bytes ?? (row.value !== undefined && !row.cut ? new TextEncoder().encode(row.value).length : undefined);
    this.set('Type', row.type === 'none' ? 'no data' : row.type);
    this.set('Children', row.type === 'object' ? this.screen.children(item) : '');
    this.set('Size', size === undefined ? '' : bytes(size));
    this.set('Priority', row.priority ?? 'none');
  }

  /**
   * @param {string} name
   * @param {string} text nothing hides the line
   */
  set(name, text) {
    const line = this.lines.get(name);
    if (!line) return;
    line.name.hidden = text === '';
    if (line.text.parentElement) line.text.parentElement.hidden = text === '';
    mark(line.text, text);
  }
}

const recentMillis = 1500;
const maxRecent = 20;
const lookBack = 5000; // commits

/**
 * Lists the newest changes at and below a path, as far as the log reaches.
 * @param {import('../app.js').App} app
 * @param {string} database
 * @param {string[]} path
 * @param {string} at the newest position that is known
 * @param {HTMLElement} box
 */
async function recent(app, database, path, at, box) {
  /** @type {{time: string | number, path: string, value: string}[]} */
  const found = [];
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), recentMillis);
  fill(box, h('p', { class: 'hint' }, 'Reading the log…'));
  try {
    const url = `/v1/databases/${encodeKey(database)}/changes?${new URLSearchParams({ under: join(path), since: earlier(at, lookBack) })}`;
    await app.api.events(url, { signal: stop.signal }, (event) => {
      if (event.type !== 'change') return;
      const change = JSON.parse(event.data);
      for (const one of change.set ?? []) found.push({ time: change.time, path: one.path, value: one.value ?? '' });
      if (found.length > 500) found.splice(0, 400);
    });
  } catch {
    // The time is over, or there is no log: show what came.
  }
  clearTimeout(timer);
  const rows = found.slice(-maxRecent).reverse().map((one) => h('li', null, h('time', null, clock(one.time)), ' ', marked(one.path, 'code'), ' ', marked(cut(one.value, 60), 'code muted')));
  fill(box, rows.length > 0 ? h('ol', { class: 'recent' }, ...rows) : h('p', { class: 'hint' }, 'The log has no changes here.'));
}

/**
 * The id of a position some commits earlier.
 * @param {string} at
 * @param {number} commits
 */
function earlier(at, commits) {
  const cutAt = at.lastIndexOf('-');
  const position = BigInt('0' + at.slice(cutAt + 1)) - BigInt(commits);
  return `${at.slice(0, cutAt)}-${position > 0n ? position : 0n}`;
}
