/**
 * Brings a part back as it was: shows first what would be written, asks, and writes it. Small
 * parts can be taken back again.
 */

import { ask, complain, say } from '../core/dialog.js';
import { h, fill } from '../core/dom.js';
import { marked } from '../core/marks.js';
import { count, moment, several } from '../lib/format.js';
import { dataRoute, encodeKey, join } from '../lib/route.js';
import { writerOf } from '../tree/write.js';
import { revert, since } from './difference.js';
import { write } from './moment.js';

/** @typedef {import('./difference.js').Result} Result */

const manyPlaces = 1000; // more than these want the key typed

/**
 * Asks, and brings a part back. Returns whether anything was written.
 * @param {import('../app.js').App} app
 * @param {string} database
 * @param {string[]} path
 * @param {number} at
 */
export async function bringBack(app, database, path, at) {
  const asked = { path: join(path), at: write(at) };
  try {
    const overwrite = await question(path, at, (all) => revert(app.api, database, { ...asked, overwrite: all, preview: true }));
    if (overwrite === null) return false;
    const before = await state(app.api, database, path);
    const result = await revert(app.api, database, { ...asked, overwrite, preview: false });
    if (!result.position) {
      say('Nothing was written: it is as it was already.');
      return false;
    }
    const kept = before !== null && (await remember(app.api, database, path, at, before));
    say(`${counted(result)}.${kept ? '' : ' This cannot be undone by a button; choose the commit before it in the history instead.'}`);
    return true;
  } catch (error) {
    complain(error instanceof Error ? error.message : String(error));
    return false;
  }
}

/**
 * @param {Result} result
 * @param {string[]} [words]
 */
function counted(result, words = ['brought back', 'replaced', 'deleted']) {
  /** @type {[number, string | undefined][]} */
  const parts = [[result.back, words[0]], [result.replaced, words[1]], [result.deleted, words[2]], [result.left, 'left as they are']];
  const said = parts.filter(([number]) => number > 0).map(([number, word]) => `${count(number)} ${word}`);
  return said.length > 0 ? said.join(', ') : 'Nothing to write';
}

/**
 * Shows what would be written and asks. Returns whether what was written since is to be
 * overwritten, or null if nothing is to be done.
 * @param {string[]} path
 * @param {number} at
 * @param {(overwrite: boolean) => Promise<Result>} preview
 * @returns {Promise<boolean | null>}
 */
async function question(path, at, preview) {
  /** @type {Result | null} */
  let result = null;
  const body = h('div', { class: 'past-preview', 'aria-live': 'polite' });
  const all = h('input', { type: 'checkbox' });
  const word = path.at(-1) ?? '/';
  const typed = h('input', { class: 'code', 'aria-label': `Type ${word} to confirm`, autocomplete: 'off' });
  const confirm = h('label', { class: 'confirm' }, 'Type ', marked(word, 'code'), ' to confirm ', typed);
  const written = () => (result ? result.back + result.replaced + result.deleted : 0);
  const large = () => path.length === 0 || written() > manyPlaces;
  let asked = 0;
  const look = async (/** @type {() => void} */ check) => {
    const turn = ++asked;
    result = null;
    check();
    fill(body, h('p', { class: 'hint' }, 'Looking at what would change…'));
    try {
      const found = await preview(all.checked);
      if (turn !== asked) return;
      result = found;
      fill(body, h('p', { class: 'past-counts' }, counted(found, ['to bring back', 'to replace', 'to delete'])), places(found));
    } catch (error) {
      if (turn === asked) fill(body, h('p', { class: 'warning', role: 'alert' }, error instanceof Error ? error.message : String(error)));
    }
    confirm.hidden = !large() || written() === 0;
    check();
  };
  confirm.hidden = true;
  const answer = await ask({
    label: 'Bring this back', role: 'alertdialog', danger: true, buttons: ['Cancel', 'Bring back'], wide: true,
    body: [h('p', null, marked(join(path), 'code'), ` as it was ${moment(at)} (`, h('span', { class: 'code' }, write(at)), ')'), body,
      h('label', { class: 'past-all' }, all, ' Also replace what was changed since, and delete what was added since'), confirm],
    ready: () => written() > 0 && (!large() || typed.value === word),
    opened: (_, check) => {
      all.addEventListener('change', () => look(check));
      look(check);
    },
  });
  return answer === 'Bring back' ? all.checked : null;
}

/** @param {Result} result */
function places(result) {
  const total = result.back + result.replaced + result.deleted + result.left;
  const done = /** @type {Record<string, string>} */ ({ back: 'comes back', replaced: 'is replaced', deleted: 'is deleted', left: 'is left as it is' });
  return [h('ul', { class: 'past-places' }, ...result.places.map((place) => h('li', { data: { path: place.path, done: place.done } }, h('span', { class: 'past-was' }, done[place.done] ?? place.done),
    marked(place.path, 'code'), place.done === 'left' ? h('span', { class: 'muted' }, `${since[place.was] ?? place.was} since`) : null))),
  total > result.places.length ? h('p', { class: 'hint' }, `These are the first ${count(result.places.length)} of ${several(total, 'place')}.`) : null];
}

/**
 * The node before it is written, and the position from which others would be seen; null if it
 * is too large to be kept.
 * @param {import('../lib/api.js').Api} api
 * @param {string} database
 * @param {string[]} path
 */
async function state(api, database, path) {
  const { at } = await api.json(`${dataRoute(database, path)}?list=true&limitToFirst=1`);
  const { text } = await writerOf(api, database).read(path);
  return text === null ? null : { at, text };
}

/**
 * Notes what was there, so that it can be put back, unless somebody else has written there at
 * the same time. Returns whether it was noted.
 * @param {import('../lib/api.js').Api} api
 * @param {string} database
 * @param {string[]} path
 * @param {number} at
 * @param {{at: string, text: string}} before
 */
async function remember(api, database, path, at, before) {
  const writer = writerOf(api, database);
  const etag = await writer.etag(path);
  const params = new URLSearchParams({ path: join(path), behind: before.at, limit: '2' });
  const { entries } = await api.json(`/v1/databases/${encodeKey(database)}/history?${params}`);
  if (entries.length !== 1) return false;
  writer.remember(`bringing ${join(path)} back as of ${moment(at)}`, [{ path, text: before.text, etag }]);
  return true;
}
