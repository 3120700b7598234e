/**
 * Feeds a tree from the server: pages of rows where the window is, an outline of
 * large nodes, and one stream with the changes of all that is loaded.
 *
 * A page says at which position it was read, and the stream goes on from the oldest
 * of them, so no change falls between the two. The stream ends while the tab is
 * hidden and goes on where it was.
 */

import { onEnd, signal } from '../core/signal.js';
import { takeTurn } from '../core/turns.js';
import { comparePositions } from '../lib/keys.js';
import { dataRoute, encodeKey } from '../lib/route.js';
import { isRun } from './model.js';

/** @typedef {import('./model.js').Place} Place */
/** @typedef {import('./model.js').Gap} Gap */
/** @typedef {import('./model.js').Row} Row */
/** @typedef {{at: string, path: string, type: Row['type'], value?: string, cut?: boolean, bytes?: number, priority?: string, before: boolean, after: boolean, rows: Row[]}} Page */

const pageRows = 200;
const nearRows = 400; // gaps so near to the window are loaded
const hiddenMillis = 5000;
const maxLocations = 200;
const maxWaiting = 1000; // events that are kept while the view is paused

export class Feed {
  /**
   * @param {import('../lib/api.js').Api} api
   * @param {string} database
   * @param {import('./tree.js').Tree} tree
   * @param {() => void} changed called after rows have changed
   * @param {string} [at] the moment that is shown, instead of now: nothing changes then
   */
  constructor(api, database, tree, changed, at = '') {
    this.api = api;
    this.database = database;
    this.tree = tree;
    this.changed = changed;
    this.moment = /** @type {Record<string, string>} */ (at ? { at } : {});
    /** @type {import('../core/signal.js').Signal<'connecting' | 'live' | 'lost' | 'paused'>} */
    this.state = signal(/** @type {any} */ ('connecting'));
    this.waiting = signal(0);
    /** @type {(() => void)[]} */
    this.held = [];
    this.paused = false;
    this.since = '';
    this.floor = ''; // the oldest page since the stream was opened
    this.locations = '';
    this.retry = 0;
    this.loading = 0;
    this.window = { first: 0, last: 50 };
    this.stopped = false;
    /** @type {AbortController | null} */
    this.stream = null;
    /** @type {Map<string, number>} */
    this.timers = new Map();
    this.ended = new AbortController();
    const visible = () => this.visibility();
    document.addEventListener('visibilitychange', visible);
    onEnd(() => {
      this.stopped = true;
      document.removeEventListener('visibilitychange', visible);
      for (const timer of this.timers.values()) clearTimeout(timer);
      this.stream?.abort();
      this.ended.abort();
    });
  }

  /**
   * Calls a function later, once for each name.
   * @param {string} name
   * @param {number} millis
   * @param {() => void} act
   */
  later(name, millis, act) {
    if (this.stopped) return;
    clearTimeout(this.timers.get(name));
    this.timers.set(name, window.setTimeout(act, millis));
  }

  /** Loads the root. Throws if that cannot be done. */
  async start() {
    await this.reload(this.tree.root);
    this.watch();
  }

  /**
   * @param {Place} place
   * @param {Record<string, string>} params
   * @returns {Promise<Page>}
   */
  async page(place, params) {
    const search = new URLSearchParams({ list: 'true', ...this.moment, ...params });
    const text = await this.api.text(`${dataRoute(this.database, place.path)}?${search}`, { signal: this.ended.signal });
    return JSON.parse(text);
  }

  /**
   * Reads the children of a place again, from the first one near the window on.
   * @param {Place} place
   * @param {boolean} [afresh] from the beginning
   * @returns {Promise<void>}
   */
  async reload(place, afresh = false) {
    const old = new Map();
    for (const segment of place.segments) if (isRun(segment)) for (const row of segment.rows) old.set(row.key, row);
    const from = place.prefix || afresh ? undefined : place.spans[0]?.from;
    const page = await this.page(place, { limitToFirst: String(pageRows), ...(from === undefined ? {} : { startAt: JSON.stringify(from) }) });
    if (from !== undefined && page.rows.length === 0) return this.reload(place, true);
    this.tree.describe(place, page);
    this.from(page.at);
    if (place.prefix) {
      this.tree.filter(place, place.prefix);
      return this.near();
    }
    const first = page.rows[0]?.key;
    const last = page.rows.at(-1)?.key;
    place.segments = page.rows.length > 0 ? [{ rows: page.rows.map((row) => ({ ...row, at: page.at })) }] : [];
    if (page.after && last !== undefined) place.segments.push({ after: last, size: Math.max(1, this.guess(place) - page.rows.length) });
    if (from !== undefined && first !== undefined) place.segments.unshift({ before: first, size: pageRows });
    place.touch();
    if (old.size > 0) {
      this.compare(place, page, old);
      this.locations = ''; // what came while the page was read was put into rows that are gone
      this.watchSoon();
    }
    if (page.after) this.outline(place);
    this.changed();
  }

  /**
   * Marks what a page changed against what was shown.
   * @param {Place} place
   * @param {Page} page
   * @param {Map<string, Row>} old
   */
  compare(place, page, old) {
    for (const row of page.rows) {
      const before = old.get(row.key);
      const shown = place.row(row.key);
      if (!shown || (before && before.value === row.value && before.type === row.type && before.children === row.children)) continue;
      this.tree.flash(place, shown, before ? 'changed' : 'added', place.idOf(row.key));
    }
    this.flashes();
  }

  /** @param {Place} place */
  guess(place) {
    const key = place.path.at(-1);
    return place.outline?.count ?? (key !== undefined && place.parent ? (place.parent.row(key)?.children ?? 1000) : 1000);
  }

  /**
   * Asks for the outline of a large node, which cuts its gaps into equal parts.
   * @param {Place} place
   */
  async outline(place) {
    place.outlined = true;
    try {
      const text = await this.api.text(`${dataRoute(this.database, place.path)}?${new URLSearchParams({ outline: '2000', ...this.moment })}`, { signal: this.ended.signal });
      if (place.prefix) return;
      place.cut(JSON.parse(text));
      this.changed();
    } catch {
      if (!this.stopped) this.later('outline ' + place.id, 3000, () => this.outline(place)); // one at a time for each database
    }
  }

  /**
   * Told which rows are in sight: loads the gaps near them.
   * @param {number} first
   * @param {number} last
   */
  shown(first, last) {
    this.window = { first, last };
    this.later('near', 30, () => this.near());
  }

  near() {
    const { first, last } = this.window;
    this.tree.prune(first, last);
    const from = Math.max(1, first - nearRows);
    const to = Math.min(this.tree.count - 1, last + nearRows);
    // What is in sight goes first.
    for (const [low, high] of [[Math.max(1, first), Math.min(to, last)], [from, first], [last, to]]) {
      for (let index = Number(low); index <= Number(high) && this.loading < 3;) {
        const item = this.tree.item(index);
        if (item?.kind !== 'gap') {
          index++;
          continue;
        }
        const [begin, end] = [index - item.offset, index - item.offset + item.gap.size];
        const middle = (first + last) / 2; // the end that is nearer to it is loaded first
        if (!item.gap.busy) this.load(item.place, item.gap, Math.abs(end - middle) < Math.abs(begin - middle));
        index = end;
      }
    }
    this.watchSoon();
  }

  /**
   * Loads rows of a gap, from its beginning or its end.
   * @param {Place} place
   * @param {Gap} gap
   * @param {boolean} fromEnd
   */
  async load(place, gap, fromEnd) {
    gap.busy = true;
    this.loading++;
    /** @type {Record<string, string>} */
    const params = { [fromEnd ? 'limitToLast' : 'limitToFirst']: String(pageRows) };
    const bounds = gap.strict ? { startAt: gap.from, startAfter: gap.after, endAt: gap.to, endBefore: gap.before } : { startAt: gap.from ?? gap.after, endAt: gap.to ?? gap.before };
    for (const [name, key] of Object.entries(bounds)) if (key !== undefined) params[name] = JSON.stringify(key);
    try {
      const page = await this.page(place, params);
      this.from(page.at);
      place.fill(gap, page, fromEnd);
      this.tree.describe(place, page);
      if (!place.complete && !place.prefix && !place.outlined) this.outline(place);
    } catch {
      gap.busy = false;
      if (!this.stopped) this.later('near', 2000, () => this.near());
      this.loading--;
      return;
    }
    this.loading--;
    this.changed();
    this.later('near', 0, () => this.near());
  }

  /**
   * Notes a page. The stream that is opened next begins at the oldest one: events that
   * came meanwhile, of rows that were not watched yet, would be lost otherwise.
   * @param {string} at
   */
  from(at) {
    if (!this.floor || comparePositions(at, this.floor) < 0) this.floor = at;
  }

  watchSoon() {
    this.later('watch', 150, () => this.watch());
  }

  /** Opens the stream, again if what is loaded has changed. */
  async watch() {
    if (this.stopped || 'at' in this.moment || (document.hidden && this.stream === null && this.state.peek() === 'paused')) return;
    const locations = this.tree.places().flatMap((place) => place.spans.map((span) => ({ path: place.id, ...span }))).slice(0, maxLocations);
    const wanted = JSON.stringify(locations);
    const floor = this.floor;
    this.floor = '';
    if (wanted === this.locations && this.stream) return;
    this.locations = wanted;
    this.stream?.abort();
    if (floor && (!this.since || comparePositions(floor, this.since) < 0)) this.since = floor;
    const stream = new AbortController();
    this.stream = stream;
    let over = false;
    try {
      over = await takeTurn(stream.signal, (signal) => this.api.events(`/v1/databases/${encodeKey(this.database)}/watch`,
        { method: 'POST', body: JSON.stringify({ since: this.since || undefined, locations }), signal }, (event) => this.event(event), () => this.connected()));
    } catch (error) {
      if (stream.signal.aborted) return;
    }
    if (this.stream !== stream || stream.signal.aborted || this.stopped) return;
    this.stream = null;
    if (over) return this.later('watch', 0, () => this.watch());
    this.state.value = 'lost';
    this.retry = Math.min(10_000, this.retry ? this.retry * 2 : 500);
    this.later('watch', this.retry, () => this.watch());
  }

  connected() {
    this.retry = 0;
    this.state.value = 'live';
  }

  visibility() {
    if (!document.hidden) {
      clearTimeout(this.timers.get('hide'));
      this.state.value = this.stream ? 'live' : 'connecting';
      if (!this.stream) this.watch();
      return;
    }
    this.later('hide', hiddenMillis, () => {
      this.stream?.abort();
      this.stream = null;
      this.state.value = 'paused';
    });
  }

  /** @param {{type: string, data: string, id: string}} event */
  event(event) {
    if (event.type === 'keep-alive' || !event.data || event.data === 'null') return;
    const act = () => this.act(event.type, JSON.parse(event.data), event.id);
    if (!this.paused) return act();
    if (this.held.length < maxWaiting) this.held.push(act);
    else this.held[maxWaiting] = () => this.again();
    this.waiting.value++;
  }

  /** Freezes the view, or takes all that has waited. */
  pause() {
    this.paused = !this.paused;
    if (this.paused) return;
    for (const act of this.held.splice(0)) act();
    this.waiting.value = 0;
  }

  /**
   * @param {string} type
   * @param {any} data
   * @param {string} id
   */
  act(type, data, id) {
    if (type === 'rows') this.tree.take(data.path, data.rows, data.at ?? id);
    else if (type === 'count') this.tree.recount(data.path, data.added ?? 0, data.removed ?? 0);
    else if (type === 'reset') this.reset(data.path);
    // An event without an id of its own belongs to the same commits as the next one.
    if (id && comparePositions(this.since, id) < 0) this.since = id;
    this.flashes();
    this.changed();
  }

  /** Reads everything again. */
  again() {
    for (const place of this.tree.places()) this.reset(place.id);
  }

  /** @param {string} path */
  reset(path) {
    this.later('reset ' + path, 20, () => {
      const place = this.tree.place(path);
      if (place) this.reload(place).catch(() => this.later('reset ' + path, 2000, () => this.reset(path)));
    });
  }

  /** Draws again when flashes end. */
  flashes() {
    const next = this.tree.settle();
    if (!next) return;
    this.later('flash', Math.max(20, next - this.tree.now() + 5), () => {
      this.flashes();
      this.changed();
    });
  }
}
