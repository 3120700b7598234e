/**
 * What the tree on the screen holds.
 *
 * A place is an open node. Its children are segments in key order: a run is rows that
 * are loaded, a gap a range of keys that is not, with a guess of how many there are. So
 * a node with a million children costs what is near the window, and the scroll bar
 * covers all of them. Rows are found by index or by id, the path with plain keys.
 *
 * A row is replaced only by one that is as new or newer. Nothing here touches the page
 * or the network.
 */

import { compare, comparePositions } from '../lib/keys.js';
import { join } from '../lib/route.js';

/**
 * @typedef {object} Row
 * @property {string} key
 * @property {'object' | 'string' | 'number' | 'boolean' | 'none'} type
 * @property {string} [value] JSON text, perhaps cut
 * @property {boolean} [cut]
 * @property {number} [bytes]
 * @property {string} [priority]
 * @property {number} [children]
 * @property {boolean} [more] there are more children than were counted
 * @property {string} [at]
 * @property {'added' | 'changed' | 'removed'} [flash]
 * @property {number} [until] when the flash ends
 * @property {boolean} [pending] written here and not acknowledged yet
 */

/** @typedef {{rows: Row[]}} Run */
/** A range of keys that is not loaded: from and to are part of it, after and before are not. A strict one is asked for without its neighbours. */
/** @typedef {{from?: string, after?: string, to?: string, before?: string, size: number, busy?: boolean, strict?: boolean}} Gap */
/** @typedef {Run | Gap} Segment */
/** @typedef {{kind: 'row', place: Place, row: Row, id: string, level: number, open: Place | undefined}} RowItem */
/** @typedef {{kind: 'gap', place: Place, gap: Gap, id: string, level: number, offset: number}} GapItem */

/** @type {{index: number, place: Place}[]} */
const none = []; // no open node in a segment, which is so for most
const maxRun = 1000; // rows in a run; a longer one is cut, so that far parts of it can be dropped

/** @param {Segment} segment @returns {segment is Run} */
export function isRun(segment) {
  return 'rows' in segment;
}

export class Place {
  /**
   * @param {string[]} path
   * @param {Place | null} parent
   * @param {number} level
   */
  constructor(path, parent, level) {
    this.path = path;
    this.id = join(path);
    this.parent = parent;
    this.level = level;
    /** @type {Segment[]} */
    this.segments = [{ size: 3 }];
    /** @type {Map<string, Place>} */
    this.open = new Map();
    this.prefix = '';
    this.at = '';
    /** @type {{count: number, exact: boolean} | null} */
    this.outline = null;
    this.outlined = false; // whether the outline was asked for
    /** @type {{segment: Segment, start: number, opens: {index: number, place: Place}[]}[] | null} */
    this.layout = null;
    this.height = 0;
  }

  get loaded() {
    return this.segments.some(isRun) || this.segments.length === 0;
  }

  get complete() {
    return this.segments.every(isRun);
  }

  /** How many children there are, as far as is known. */
  get count() {
    let sum = 0;
    for (const segment of this.segments) sum += isRun(segment) ? segment.rows.length : segment.size;
    if (this.complete) return { count: sum, exact: true };
    return this.outline ?? { count: sum, exact: false };
  }

  /** Forgets the layout here and above. */
  touch() {
    /** @type {Place | null} */
    let place = this;
    for (; place; place = place.parent) place.layout = null;
  }

  /** Works out where each segment begins. */
  arrange() {
    if (this.layout) return this.layout;
    let start = 0;
    const layout = [];
    const opened = [...this.open.keys()];
    for (const segment of this.segments) {
      let opens = none;
      let height = isRun(segment) ? segment.rows.length : segment.size;
      if (isRun(segment) && opened.length > 0) {
        opens = [];
        for (const key of opened) {
          const index = search(segment.rows, key);
          const place = this.open.get(key);
          if (index < 0 || !place) continue;
          opens.push({ index, place });
          place.arrange();
          height += place.height;
        }
        opens.sort((a, b) => a.index - b.index);
      }
      layout.push({ segment, start, opens });
      start += height;
    }
    this.height = start;
    return (this.layout = layout);
  }

  /**
   * The row or gap at an index below this place.
   * @param {number} index
   * @returns {RowItem | GapItem | null}
   */
  item(index) {
    const layout = this.arrange();
    let low = 0;
    for (let high = layout.length - 1; low < high;) {
      const middle = (low + high + 1) >> 1;
      if ((layout[middle]?.start ?? 0) <= index) low = middle;
      else high = middle - 1;
    }
    const part = layout[low];
    if (!part || index < 0 || index >= this.height) return null;
    let offset = index - part.start;
    if (!isRun(part.segment)) {
      const gap = part.segment;
      return { kind: 'gap', place: this, gap, id: `${this.id}//${gap.from ?? gap.after ?? ''}/${offset}`, level: this.level + 1, offset };
    }
    for (const { index: at, place } of part.opens) {
      if (offset <= at) break;
      if (offset <= at + place.height) return place.item(offset - at - 1);
      offset -= place.height;
    }
    const row = part.segment.rows[offset];
    return row ? { kind: 'row', place: this, row, id: this.idOf(row.key), level: this.level + 1, open: this.open.get(row.key) } : null;
  }

  /** @param {string} key */
  idOf(key) {
    return this.id === '/' ? '/' + key : this.id + '/' + key;
  }

  /**
   * The index of a child below this place, or -1.
   * @param {string} key
   */
  indexOf(key) {
    for (const { segment, start, opens } of this.arrange()) {
      if (!isRun(segment)) continue;
      const at = search(segment.rows, key);
      if (at < 0) continue;
      return start + at + opens.reduce((sum, open) => sum + (open.index < at ? open.place.height : 0), 0);
    }
    return -1;
  }

  /** @param {string} key @returns {Row | undefined} */
  row(key) {
    for (const segment of this.segments) {
      if (!isRun(segment)) continue;
      const at = search(segment.rows, key);
      if (at >= 0) return segment.rows[at];
    }
    return undefined;
  }

  /**
   * Puts a row that came from the server in its place, and says what that changed.
   * @param {Row} row
   * @returns {'added' | 'changed' | 'removed' | 'same' | 'outside'}
   */
  put(row) {
    const old = this.row(row.key);
    if (old && comparePositions(old.at, row.at) > 0) return 'same';
    if (row.type === 'none') return old ? this.remove(row.key) : 'same';
    if (old) {
      const same = sameRow(old, row) && old.flash !== 'removed';
      for (const name of /** @type {const} */ (['value', 'cut', 'bytes', 'priority', 'children', 'more', 'pending'])) delete old[name];
      if (old.flash === 'removed') delete old.flash;
      Object.assign(old, row);
      if (row.type !== 'object') this.close(row.key);
      return same ? 'same' : 'changed';
    }
    if (this.prefix && !row.key.startsWith(this.prefix)) return 'outside';
    return this.insert(row) ? 'added' : 'outside';
  }

  /**
   * Puts a new row in its place. One that belongs into a gap is not shown.
   * @param {Row} row
   */
  insert(row) {
    const found = this.segments.findIndex((segment) => startsAfter(segment, row.key));
    const at = found < 0 ? this.segments.length : found;
    const [before, after] = [this.segments[at - 1], this.segments[at]];
    if (before && !isRun(before) && inGap(before, row.key)) return false;
    if (before && isRun(before)) {
      let i = before.rows.length;
      while (i > 0 && compare(before.rows[i - 1]?.key ?? '', row.key) > 0) i--;
      before.rows.splice(i, 0, row);
      if (before.rows.length > maxRun) this.segments.splice(at, 0, { rows: before.rows.splice(maxRun / 2) });
    } else if (after && isRun(after)) after.rows.unshift(row);
    else this.segments.splice(at, 0, { rows: [row] });
    this.touch();
    return true;
  }

  /**
   * Makes gaps reach to their neighbours, so that every key is in a segment or between two
   * runs. What is between runs is watched; what is in a gap will be read.
   */
  tidy() {
    for (let i = 0; i < this.segments.length; i++) {
      const gap = this.segments[i];
      if (!gap || isRun(gap)) continue;
      const before = this.segments[i - 1];
      const after = this.segments[i + 1];
      if (before && isRun(before)) bound(gap, 'from', undefined, 'after', before.rows.at(-1)?.key);
      else if (before && !this.prefix) bound(gap, 'from', before.before, 'after', before.to);
      else if (!before && !this.prefix) bound(gap, 'from', undefined, 'after', undefined);
      if (after && isRun(after)) bound(gap, 'to', undefined, 'before', after.rows[0]?.key);
      else if (!after && !this.prefix) bound(gap, 'to', undefined, 'before', undefined);
      else if (after && gap.to === undefined && gap.before === undefined) {
        // A run between two gaps is gone: they are one.
        this.segments.splice(i, 2, { ...after, from: gap.from, after: gap.after, size: gap.size + (isRun(after) ? 0 : after.size), busy: false });
        i--;
      }
    }
    this.touch();
  }

  /**
   * @param {string} key
   * @returns {'removed' | 'same'}
   */
  remove(key) {
    this.close(key);
    for (const [i, segment] of this.segments.entries()) {
      if (!isRun(segment)) continue;
      const at = search(segment.rows, key);
      if (at < 0) continue;
      segment.rows.splice(at, 1);
      if (segment.rows.length === 0) this.segments.splice(i, 1);
      this.touch();
      return 'removed';
    }
    return 'same';
  }

  /** @param {string} key */
  close(key) {
    if (this.open.delete(key)) this.touch();
  }

  /**
   * Replaces a gap by the rows of a page, and by what is left of it. A page may begin and
   * end with the neighbours of the gap: so it says exactly whether more is left.
   * @param {Gap} gap
   * @param {{at: string, rows: Row[], before: boolean, after: boolean}} page
   * @param {boolean} fromEnd the page holds the last rows of the range, not the first
   */
  fill(gap, page, fromEnd) {
    const at = this.segments.indexOf(gap);
    if (at < 0) return;
    const inside = page.rows.filter((row) => inGap(gap, row.key));
    const rows = inside.filter((row) => row.key.startsWith(this.prefix)).map((row) => ({ ...row, at: page.at }));
    const [first, last] = [inside[0]?.key, inside.at(-1)?.key];
    const left = Math.max(1, gap.size - rows.length);
    /** @type {Segment[]} */
    const parts = rows.length > 0 ? [{ rows }] : [];
    if (inside.length === 0 && page.rows.length > 0 && (fromEnd ? page.before : page.after) && !gap.strict) parts.push({ ...gap, size: left, busy: false, strict: true });
    else if (fromEnd && page.before && first !== undefined) parts.unshift({ ...gap, to: undefined, before: first, size: left, busy: false });
    else if (!fromEnd && page.after && last !== undefined) parts.push({ ...gap, from: undefined, after: last, size: left, busy: false });
    this.segments.splice(at, 1, ...parts);
    this.tidy();
  }

  /**
   * Cuts gaps at the marks of an outline, into parts that are worth a page. Marks and segments
   * are in key order, so both are gone through once. A mark says how many rows are before it.
   * @param {{count: number, exact: boolean, every: number, marks: string[]}} outline
   * @param {number} [least] rows in a part: with its neighbours they are one page
   */
  cut({ count, exact, every, marks }, least = 198) {
    this.outline = { count, exact };
    const step = Math.max(1, Math.ceil(least / every));
    const last = this.segments.findLastIndex((segment) => !isRun(segment));
    const tail = this.segments.slice(last + 1).reduce((sum, run) => sum + (isRun(run) ? run.rows.length : 0), 0);
    let [at, next] = [0, 1]; // rows before here, and the next mark: nothing is before the first
    /** @type {Segment[]} */
    const parts = [];
    for (const [i, segment] of this.segments.entries()) {
      const begin = at;
      if (isRun(segment)) {
        at += segment.rows.length;
        parts.push(segment);
        continue;
      }
      let low = { ...segment, busy: false }; // the page that is on its way comes to nothing
      for (; next < marks.length && !afterGap(segment, marks[next] ?? ''); next++) {
        const mark = marks[next] ?? '';
        if (next % step !== 0 || next * every <= at || mark === segment.from || !inGap(segment, mark)) continue;
        parts.push({ ...low, to: undefined, before: mark, size: next * every - at });
        low = { ...segment, after: undefined, from: mark, busy: false };
        at = next * every;
      }
      const known = i === last ? count - tail : segment.before !== undefined && segment.before === marks[next] ? next * every : 0;
      const size = Math.max(1, known ? known - at : Math.min(segment.size - (at - begin), every * step));
      parts.push({ ...low, size });
      at += size;
    }
    this.segments = parts;
    this.tidy();
  }

  /** The ranges of keys in which rows are loaded, both ends included: what has to be watched. */
  get spans() {
    /** @type {{from?: string, to?: string}[]} */
    const found = [];
    for (let i = 0; i < this.segments.length; i++) {
      const first = this.segments[i];
      if (!first || !isRun(first)) continue;
      const from = i === 0 ? undefined : first.rows[0]?.key;
      let last = first;
      for (let next = this.segments[i + 1]; next && isRun(next); next = this.segments[i + 1]) {
        last = next;
        i++;
      }
      found.push({ from, to: i === this.segments.length - 1 ? undefined : last.rows.at(-1)?.key });
    }
    return this.segments.length === 0 ? [{}] : found;
  }
}

/**
 * @param {Row[]} rows
 * @param {string} key
 * @returns {number}
 */
export function search(rows, key) {
  let low = 0;
  for (let high = rows.length - 1; low <= high;) {
    const middle = (low + high) >> 1;
    const order = compare(rows[middle]?.key ?? '', key);
    if (order === 0) return middle;
    if (order < 0) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

/** Sets one end of a gap by both of its names. Most are as they were, and a million children have a thousand gaps: nothing is made or written in vain. @param {Gap} gap @param {'from' | 'to'} closed @param {string | undefined} key @param {'after' | 'before'} open @param {string | undefined} other */
function bound(gap, closed, key, open, other) {
  if (gap[closed] !== key) gap[closed] = key;
  if (gap[open] !== other) gap[open] = other;
}

/** @param {Gap} gap @param {string} key */
function inGap(gap, key) {
  if (gap.from !== undefined && compare(key, gap.from) < 0) return false;
  if (gap.after !== undefined && compare(key, gap.after) <= 0) return false;
  return !afterGap(gap, key);
}

/** @param {Gap} gap @param {string} key */
function afterGap(gap, key) {
  return (gap.to !== undefined && compare(key, gap.to) > 0) || (gap.before !== undefined && compare(key, gap.before) >= 0);
}

/** @param {Segment} segment @param {string} key */
function startsAfter(segment, key) {
  if (isRun(segment)) return compare(segment.rows[0]?.key ?? '', key) > 0;
  if (segment.after !== undefined) return compare(segment.after, key) >= 0;
  return segment.from !== undefined && compare(segment.from, key) > 0;
}

/**
 * @param {Row} a
 * @param {Row} b
 */
function sameRow(a, b) {
  return a.type === b.type && a.value === b.value && a.priority === b.priority && a.bytes === b.bytes && a.children === b.children && a.more === b.more;
}
