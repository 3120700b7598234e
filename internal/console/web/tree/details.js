/** The details of the row under the cursor, beside the tree. */

import { h, fill } from '../core/dom.js';
import { mark, marked } from '../core/marks.js';
import { bytes, clock, cut } from '../lib/format.js';
import { address, encodeKey, join } from '../lib/route.js';

/** @typedef {import('./model.js').RowItem} RowItem */

/**
 * @param {import('./screen.js').DataScreen} screen
 * @returns {HTMLElement}
 */
export function details(screen) {
  const { app, route } = screen;
  const path = h('h2', { class: 'code details-path' });
  const facts = h('dl', { class: 'facts' });
  const value = h('pre', { class: 'code details-value', tabIndex: 0, 'aria-label': 'Value' });
  const links = h('div', { class: 'details-links' });
  const changes = h('div', { class: 'details-changes' });
  let shown = '';
  screen.follow((item) => {
    if (!item) return;
    const keys = item.level === 1 ? screen.tree.path : [...item.place.path, item.row.key];
    mark(path, join(keys));
    fill(facts, ...factsOf(screen, item));
    value.hidden = item.row.type === 'object' || item.row.type === 'none';
    value.dataset.type = item.row.type;
    value.toggleAttribute('data-cut', Boolean(item.row.cut));
    mark(value, item.row.value ?? '');
    if (item.id === shown) return;
    shown = item.id;
    const at = { database: route.database, path: keys };
    fill(links, link('Open', { screen: 'data', ...at }), link('Query here', { screen: 'query', ...at }), link('Live here', { screen: 'live', ...at }), link('Rules', { screen: 'rules', database: route.database }));
    fill(changes, h('button', { type: 'button', class: 'quiet', on: { click: () => recent(app, route.database, keys, screen.tree.root.at, changes) } }, 'Recent changes'));
  });
  return h('aside', { class: 'details', 'aria-label': 'Details', data: { open: () => String(screen.sheet.value) } }, path, facts, value, links, changes);
}

/**
 * @param {string} name
 * @param {{screen: string, database?: string, path?: string[]}} to
 */
function link(name, to) {
  return h('a', { to: address(to) }, name);
}

/**
 * @param {import('./screen.js').DataScreen} screen
 * @param {RowItem} item
 */
function factsOf(screen, item) {
  const { row } = item;
  /** @type {[string, string][]} */
  const facts = [['Type', row.type === 'none' ? 'no data' : row.type]];
  if (row.type === 'object') facts.push(['Children', screen.children(item)]);
  const size = row.bytes ?? (row.value !== undefined && !row.cut ? new TextEncoder().encode(row.value).length : undefined);
  if (size !== undefined) facts.push(['Size', bytes(size)]);
  facts.push(['Priority', row.priority ?? 'none']);
  return facts.flatMap(([name, text]) => [h('dt', null, name), h('dd', null, marked(text))]);
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
