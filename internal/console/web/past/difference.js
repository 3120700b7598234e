/** What is different by now from what was: counted, and the first places with both values. */

import { h, fill } from '../core/dom.js';
import { marked } from '../core/marks.js';
import { ApiError } from '../lib/api.js';
import { count, cut, several } from '../lib/format.js';
import { address, dataRoute, encodeKey, split } from '../lib/route.js';
import { write } from './moment.js';

/** @typedef {{path: string, was: 'gone' | 'new' | 'changed' | 'priority', done: string}} Place */
/** @typedef {{back: number, replaced: number, deleted: number, left: number, places: Place[], position?: number}} Result */

/** What became of a place since, in the words of the page. */
export const since = { gone: 'removed', new: 'added', changed: 'changed', priority: 'priority changed' };

/**
 * Asks what taking a part back to a moment would write, or has it written.
 * @param {import('../lib/api.js').Api} api
 * @param {string} database
 * @param {{path: string, at: string, overwrite: boolean, preview: boolean}} body
 * @returns {Promise<Result>}
 */
export async function revert(api, database, body) {
  for (let tries = 0; ; tries++) {
    try {
      return await api.json(`/v1/databases/${encodeKey(database)}/revert`, { body });
    } catch (error) {
      if (!body.preview || tries === 5 || !(error instanceof ApiError) || error.status !== 503) throw error;
      await new Promise((resolve) => setTimeout(resolve, 300 * (tries + 1)));
    }
  }
}

export class Difference {
  /** @param {import('./screen.js').PastScreen} screen */
  constructor(screen) {
    this.screen = screen;
    this.turns = 0;
    this.body = h('div');
    this.element = h('section', { 'aria-label': 'Difference', class: 'past-part', hidden: () => screen.at.value === 0 }, h('h2', null, 'Difference to now'), this.body);
  }

  clear() {
    this.turns++;
    fill(this.body);
  }

  /** Compares the moment with now. */
  async compare() {
    const turn = ++this.turns;
    const { app, route, at } = this.screen;
    const time = write(at.peek());
    fill(this.body, h('p', { class: 'hint' }, 'Comparing…'));
    try {
      const result = await revert(app.api, route.database, { path: '/' + route.path.join('/'), at: time, overwrite: true, preview: true });
      if (turn !== this.turns) return;
      const total = result.back + result.replaced + result.deleted;
      this.element.dataset.places = String(total);
      if (total === 0) return fill(this.body, h('p', { class: 'hint' }, 'Nothing: it is now as it was then.'));
      const rows = result.places.map((place) => this.row(place));
      fill(this.body, h('p', { class: 'past-counts' }, ...this.counts(result)), h('ul', { class: 'past-places' }, ...rows.map(({ element }) => element)),
        total > rows.length ? h('p', { class: 'hint' }, `These are the first ${count(rows.length)} of ${several(total, 'place')}.`) : null);
      for (const { place, before, after } of rows) {
        if (turn !== this.turns) return;
        await Promise.all([place.was !== 'new' && this.value(place, before, time), place.was !== 'gone' && this.value(place, after, '')]);
      }
    } catch (error) {
      if (turn === this.turns) fill(this.body, h('p', { class: 'warning', role: 'alert' }, error instanceof Error ? error.message : String(error)));
    }
  }

  /** @param {Result} result */
  counts(result) {
    /** @type {[string, number, string][]} */
    const kinds = [['gone', result.back, 'removed since'], ['changed', result.replaced, 'changed since'], ['new', result.deleted, 'added since']];
    return kinds.filter(([, number]) => number > 0).map(([kind, number, words]) => h('span', { class: 'past-count', data: { was: kind } }, `${count(number)} ${words}`));
  }

  /** @param {Place} place */
  row(place) {
    const { route, at } = this.screen;
    const [before, after] = [h('span', { class: 'code past-before' }), h('span', { class: 'code past-after' })];
    const element = h('li', { data: { path: place.path, was: place.was } }, h('span', { class: 'past-was' }, since[place.was] ?? place.was),
      h('a', { to: address({ screen: 'data', database: route.database, path: split(place.path), params: { at: write(at.peek()) } }) }, marked(place.path, 'code')), before, after);
    return { place, element, before, after };
  }

  /**
   * Shows what a place holds at a moment.
   * @param {Place} place
   * @param {HTMLElement} box
   * @param {string} at
   */
  async value(place, box, at) {
    const keys = split(place.path);
    const key = keys.pop();
    const params = new URLSearchParams({ list: 'true', limitToFirst: '1', ...(at ? { at } : {}) });
    if (key !== undefined) for (const bound of ['startAt', 'endAt']) params.set(bound, JSON.stringify(key));
    const page = await this.screen.app.api.json(`${dataRoute(this.screen.route.database, keys)}?${params}`).catch(() => null);
    const row = key === undefined ? page : page?.rows?.[0];
    if (!row) return;
    const text = place.was === 'priority' ? `priority ${row.priority ?? 'none'}` : (row.value ?? (row.children ? `{…} ${row.more ? 'over ' : ''}${several(row.children, 'child', 'children')}` : '{…}'));
    fill(box, marked(cut(text, 120)));
  }
}
