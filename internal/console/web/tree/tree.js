/**
 * The tree on the screen as one list of rows: the node of the address is the first,
 * and below each open node are its children. It takes pages and events of the server,
 * marks what they changed for a moment, and drops rows that are far from the window.
 */

import { comparePositions, prefixRanges } from '../lib/keys.js';
import { Place, isRun } from './model.js';
import { join } from '../lib/route.js';

/** @typedef {import('./model.js').Row} Row */
/** @typedef {import('./model.js').RowItem} RowItem */
/** @typedef {import('./model.js').GapItem} GapItem */

const flashMillis = 1500;
const manyRemoved = 20; // rows that go together at once are not struck through first
const keep = 5000; // rows that are kept above and below the window
export const maxOpen = 200; // open nodes: the server watches no more

export class Tree {
  /**
   * @param {string[]} path
   * @param {() => number} now milliseconds
   */
  constructor(path, now) {
    this.now = now;
    this.path = path;
    this.id = join(path);
    this.root = new Place(path, null, 1);
    /** @type {Row} */
    this.row = { key: path.at(-1) ?? '/', type: 'none' };
    this.rootOpen = true;
    this.known = false; // whether the server has said what the root is
    /** @type {Map<string, number>} */
    this.own = new Map(); // what was written here and comes back as an event
    /** @type {{time: number, count: number}[]} */
    this.recent = [];
    /** @type {{place: Place, key: string}[]} */
    this.flashing = [];
  }

  get count() {
    this.root.arrange();
    return 1 + (this.rootOpen && this.row.type === 'object' ? this.root.height : 0);
  }

  /** @param {number} index @returns {RowItem | GapItem | null} */
  item(index) {
    if (index > 0) return this.root.item(index - 1);
    const open = this.rootOpen && this.row.type === 'object' ? this.root : undefined;
    return { kind: 'row', place: this.root, row: this.row, id: this.id, level: 1, open };
  }

  /**
   * The open place with an id, if there is one.
   * @param {string} id
   * @returns {Place | undefined}
   */
  place(id) {
    if (id === this.id) return this.root;
    /** @type {Place | undefined} */
    let place = this.root;
    for (const key of this.below(id) ?? []) place = place?.open.get(key);
    return place === this.root ? undefined : place;
  }

  /**
   * The keys that lead from the root of the view to an id, or null if it is not below.
   * @param {string} id
   * @returns {string[] | null}
   */
  below(id) {
    const base = this.id === '/' ? '/' : this.id + '/';
    return id.startsWith(base) && id.length > base.length ? id.slice(base.length).split('/') : null;
  }

  /** @param {string} id @returns {number} the index of a row, or -1 */
  find(id) {
    if (id === this.id) return 0;
    let index = 0;
    let place = this.root;
    const keys = this.below(id);
    if (!keys || !this.rootOpen) return -1;
    for (const [i, key] of keys.entries()) {
      const at = place.indexOf(key);
      if (at < 0) return -1;
      index += at + 1;
      if (i === keys.length - 1) return index;
      const next = place.open.get(key);
      if (!next) return -1;
      place = next;
    }
    return -1;
  }

  /** @returns {Place[]} every open place whose row is there, the root first */
  places() {
    /** @type {Place[]} */
    const found = [];
    const visit = (/** @type {Place} */ place) => {
      found.push(place);
      for (const { opens } of place.arrange()) for (const open of opens) visit(open.place);
    };
    visit(this.root);
    return found;
  }

  /**
   * Opens a node. Returns its place, or null if it is not an object or too many are open.
   * @param {string} id
   */
  expand(id) {
    if (id === this.id) {
      this.rootOpen = true;
      this.root.touch();
      return this.root;
    }
    const item = this.item(this.find(id));
    if (item?.kind !== 'row' || item.row.type !== 'object') return null;
    if (item.open) return item.open;
    if (this.places().length >= maxOpen) return null;
    const place = new Place([...item.place.path, item.row.key], item.place, item.level);
    place.segments = [{ size: Math.max(1, item.row.children ?? 1) }];
    item.place.open.set(item.row.key, place);
    item.place.touch();
    return place;
  }

  /** @param {string} id */
  collapse(id) {
    if (id === this.id) {
      this.rootOpen = false;
      return;
    }
    const item = this.item(this.find(id));
    if (item?.kind === 'row') item.place.close(item.row.key);
  }

  /**
   * Limits the children of a place to those with a prefix.
   * @param {Place} place
   * @param {string} prefix
   */
  filter(place, prefix) {
    place.prefix = prefix;
    place.outline = null;
    place.outlined = false; // so that all children are counted again once the prefix is gone
    place.segments = prefixRanges(prefix).map((range) => ({ ...range, size: 1 }));
    place.touch();
  }

  /**
   * Takes what a page says of the node itself.
   * @param {Place} place
   * @param {{at: string, type: Row['type'], value?: string, cut?: boolean, bytes?: number, priority?: string}} page
   */
  describe(place, page) {
    if (!place.at || comparePositions(place.at, page.at) < 0) place.at = page.at;
    if (place !== this.root) {
      if (page.type !== 'object') place.parent?.close(place.path.at(-1) ?? '');
      return;
    }
    const { type, value, cut, bytes, priority } = page;
    const changed = this.known && this.row.type !== 'none' && type !== 'object' && (this.row.value !== value || this.row.type !== type);
    this.row = { key: this.row.key, type, value: type === 'object' ? undefined : value, cut, bytes, priority };
    if (changed) this.flash(this.root, this.row, 'changed', this.id);
    this.known = true;
  }

  /**
   * Takes changed rows. Returns how many there were.
   * @param {string} id
   * @param {Row[]} rows
   * @param {string} at
   */
  take(id, rows, at) {
    const place = this.place(id);
    if (!place) return 0;
    const gone = rows.filter((row) => row.type === 'none').length;
    this.note(rows.length);
    let moved = false; // whether rows came or went
    for (const row of rows) {
      const rowId = place.idOf(row.key);
      const old = place.row(row.key);
      if (row.type === 'none' && old && gone <= manyRemoved && !this.own.has(rowId) && comparePositions(old.at, at) <= 0) {
        old.at = at;
        place.close(row.key);
        this.flash(place, old, 'removed', rowId);
        continue;
      }
      const what = place.put({ ...row, at });
      if (what === 'added' || what === 'removed') moved = true;
      if (what === 'added' || what === 'changed') this.flash(place, place.row(row.key) ?? row, what, rowId);
    }
    if (moved) place.tidy();
    if (place === this.root) this.rootFromRows();
    return rows.length;
  }

  /** A root without children is no data; with one it is an object. */
  rootFromRows() {
    if (this.root.prefix) return;
    if (this.root.segments.length > 0) this.row = { ...this.row, type: 'object', value: undefined };
    else if (this.row.type === 'object') this.row = { ...this.row, type: 'none' };
  }

  /**
   * Children outside the watched span came or went.
   * @param {string} id
   * @param {number} added
   * @param {number} removed
   */
  recount(id, added, removed) {
    const place = this.place(id);
    if (!place) return;
    this.note(added + removed);
    if (place.outline) place.outline = { ...place.outline, count: Math.max(0, place.outline.count + added - removed) };
    const gap = place.segments.findLast((segment) => !isRun(segment));
    if (gap && !isRun(gap)) gap.size = Math.max(1, gap.size + added - removed);
    else if (added > 0 && place.loaded) place.segments.push({ after: lastKey(place), size: added });
    place.touch();
  }

  /**
   * Marks a row for a moment, unless it was written here or too much changes.
   * @param {Place} place
   * @param {Row} row
   * @param {'added' | 'changed' | 'removed'} what
   * @param {string} id
   */
  flash(place, row, what, id) {
    if (this.own.delete(id) && what !== 'removed') return;
    if (what !== 'removed' && this.rate > 20) return;
    row.flash = what;
    row.until = this.now() + flashMillis;
    this.flashing.push({ place, key: row.key });
  }

  /** Ends flashes whose time is over; returns when the next one ends, or 0. */
  settle() {
    let next = 0;
    this.flashing = this.flashing.filter(({ place, key }) => {
      const row = place === this.root && key === this.row.key && this.row.flash ? this.row : place.row(key);
      if (!row?.flash) return false;
      if ((row.until ?? 0) > this.now()) {
        next = next ? Math.min(next, row.until ?? 0) : (row.until ?? 0);
        return true;
      }
      if (row.flash === 'removed') {
        place.remove(key);
        place.tidy();
      }
      delete row.flash;
      return false;
    });
    this.rootFromRemoved();
    for (const [id, until] of this.own) if (until < this.now()) this.own.delete(id);
    return next;
  }

  rootFromRemoved() {
    if (this.known && this.row.type === 'object' && this.root.segments.length === 0 && !this.root.prefix) this.rootFromRows();
  }

  /** @param {number} count */
  note(count) {
    this.recent.push({ time: this.now(), count });
    if (this.recent.length > 200) this.recent.splice(0, 100);
  }

  /** Changes a second, over the last two seconds. */
  get rate() {
    const since = this.now() - 2000;
    let sum = 0;
    for (const { time, count } of this.recent) if (time >= since) sum += count;
    return sum / 2;
  }

  /**
   * Drops rows that are far from the window.
   * @param {number} first
   * @param {number} last
   */
  prune(first, last) {
    const visit = (/** @type {Place} */ place, /** @type {number} */ offset) => {
      let dropped = false;
      for (const { segment, start, opens } of [...place.arrange()]) {
        if (!isRun(segment)) continue;
        for (const [i, open] of opens.entries()) {
          visit(open.place, offset + start + open.index + 1 + opens.slice(0, i).reduce((sum, o) => sum + o.place.height, 0));
        }
        const low = offset + start;
        if (low > last + keep || low + segment.rows.length < first - keep) dropped = forget(place, segment) || dropped;
      }
      if (dropped) place.tidy();
    };
    if (this.count > 2 * keep) visit(this.root, 1);
  }
}

/** @param {Place} place */
function lastKey(place) {
  const run = place.segments.findLast(isRun);
  return run && isRun(run) ? run.rows.at(-1)?.key : undefined;
}

/**
 * Turns a run into a gap, joined with the gap before it if both are small.
 * @param {Place} place
 * @param {import('./model.js').Run} run
 */
function forget(place, run) {
  const at = place.segments.indexOf(run);
  const [first, last] = [run.rows[0], run.rows.at(-1)];
  if (at < 0 || !first || !last || run.rows.some((row) => row.pending)) return false;
  const before = place.segments[at - 1];
  if (before && !isRun(before) && !before.busy && before.size + run.rows.length <= 1000) {
    place.segments.splice(at - 1, 2, { ...before, before: undefined, to: last.key, size: before.size + run.rows.length });
  } else place.segments.splice(at, 1, { from: first.key, to: last.key, size: run.rows.length });
  return true;
}
