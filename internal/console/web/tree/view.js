/**
 * The tree as people see it: rows, the cursor, the keys.
 *
 * The focus stays on the tree; the row under the cursor is named by
 * aria-activedescendant, so it can leave the page and come back. What a key or a
 * button means is decided by the screen, in actions.
 */

import { h, set } from '../core/dom.js';
import { mark } from '../core/marks.js';
import { VirtualList } from '../core/list.js';
import { signal } from '../core/signal.js';
import { bytes, count, several } from '../lib/format.js';

/** @typedef {import('./tree.js').Tree} Tree */
/** @typedef {import('./model.js').RowItem} RowItem */

/**
 * @typedef {object} Actions
 * @property {(id: string, open: boolean) => void} toggle
 * @property {(name: string, event: KeyboardEvent) => boolean} key does what a key means, if it means something
 * @property {(first: number, last: number) => void} shown
 */

const touch = matchMedia('(pointer: coarse)');
let made = 0;
export const maxSelected = 1000; // rows that are changed together

/** @param {Tree} tree @param {string} id */
function itemAt(tree, id) {
  const item = tree.item(tree.find(id));
  return item?.kind === 'row' ? item : null;
}

export class TreeView {
  /**
   * @param {Tree} tree
   * @param {Actions} actions
   */
  constructor(tree, actions) {
    this.tree = tree;
    this.actions = actions;
    this.cursor = signal(tree.id);
    this.anchor = tree.id; // the other end of the selected range
    this.space = h('div', { role: 'tree', 'aria-label': 'Data', 'aria-multiselectable': 'true', class: 'tree', tabIndex: 0 });
    this.element = h('div', { class: 'tree-scroll', data: { testid: 'tree-scroll' }, tabIndex: -1 }, this.space);
    this.list = new VirtualList(this.element, this.space, {
      count: () => tree.count,
      key: (index) => this.item(index)?.id ?? '',
      find: (id) => tree.find(id),
      make: () => this.make(),
      draw: (element, index) => this.draw(element, index),
      shown: (first, last) => {
        this.drawing = { items: new Map(), range: this.range() };
        actions.shown(first, last);
      },
    }, () => (touch.matches ? 36 : 24));
    this.space.addEventListener('click', (event) => this.click(event));
    this.space.addEventListener('dblclick', (event) => this.doubleClick(event));
    this.space.addEventListener('keydown', (event) => this.key(event));
    this.space.addEventListener('focus', () => this.space.classList.toggle('keys', this.space.matches(':focus-visible')));
  }

  /** @type {{id: string, element: HTMLElement} | null} */
  overlay = null;

  /** What is looked up while rows are drawn: with a million children, finding takes longer than drawing. */
  drawing = { items: /** @type {Map<number, import('./model.js').RowItem | import('./model.js').GapItem | null>} */ (new Map()), range: { low: 0, high: 0 } };

  /** The row or gap at an index, looked up once for each drawing. @param {number} index */
  item(index) {
    const known = this.drawing.items.get(index);
    if (known !== undefined) return known;
    const item = this.tree.item(index);
    this.drawing.items.set(index, item);
    return item;
  }

  refresh() {
    this.list.refresh();
    this.point();
    this.placeOverlay();
  }

  /** Names the row under the cursor to screen readers. */
  point() {
    set(this.space, 'aria-activedescendant', this.list.rows.get(this.cursor.peek())?.id ?? null);
  }

  make() {
    return h('div', { role: 'treeitem', class: 'row', id: `row-${++made}` },
      h('span', { class: 'twist', 'aria-hidden': 'true' }), h('span', { data: { part: 'key' } }), h('span', { class: 'colon', 'aria-hidden': 'true' }),
      h('span', { class: 'value' }), h('span', { class: 'meta' }));
  }

  /**
   * @param {HTMLElement} element
   * @param {number} index
   */
  draw(element, index) {
    const item = this.item(index);
    const [twist, key, , value, meta] = /** @type {HTMLElement[]} */ ([...element.children]);
    if (!item || !twist || !key || !value || !meta) return;
    if (item.id === this.cursor.peek()) set(this.space, 'aria-activedescendant', element.id);
    else if (this.space.getAttribute('aria-activedescendant') === element.id) set(this.space, 'aria-activedescendant', null);
    element.style.paddingLeft = 8 + (item.level - 1) * 18 + 'px';
    set(element, 'aria-level', item.level);
    if (item.kind === 'gap') {
      for (const name of ['data-path', 'data-type', 'aria-expanded', 'data-flash', 'data-pending', 'data-gone', 'data-cursor', 'aria-selected']) set(element, name, null);
      set(element, 'role', 'presentation');
      set(element, 'data-gap', true);
      for (const part of [key, value, meta]) mark(part, '');
      set(value, 'data-part', null);
      return;
    }
    const { row } = item;
    const { low, high } = this.drawing.range;
    set(element, 'role', 'treeitem');
    set(element, 'data-gap', null);
    set(element, 'data-path', item.id);
    set(element, 'data-type', row.type === 'none' ? null : row.type);
    set(element, 'aria-expanded', row.type === 'object' ? String(Boolean(item.open)) : null);
    set(element, 'aria-selected', String(index >= low && index <= high));
    set(element, 'data-cursor', item.id === this.cursor.peek());
    set(element, 'data-flash', row.flash && row.flash !== 'removed' && !(item.open && row.flash === 'changed') ? row.flash : null);
    set(element, 'data-gone', row.flash === 'removed');
    set(element, 'data-pending', Boolean(row.pending));
    mark(key, row.key);
    const leaf = row.type !== 'object' && row.type !== 'none';
    set(value, 'data-part', leaf ? 'value' : null);
    set(value, 'data-cut', Boolean(row.cut));
    mark(value, leaf ? (row.value ?? '').slice(0, 1000) : this.preview(item));
    mark(meta, this.meta(item));
  }

  /** @param {RowItem} item */
  preview(item) {
    if (item.row.type === 'none') return this.tree.known ? 'null' : '';
    return item.open ? '' : (item.row.value ?? '{…}');
  }

  /** @param {RowItem} item */
  meta({ row, place, level, open }) {
    const priority = row.priority === undefined ? '' : `priority ${row.priority} `;
    if (row.type !== 'object') return priority + (row.cut && row.bytes ? bytes(row.bytes) : '');
    if (level === 1 || (open && row.more)) {
      const { count: total, exact } = (level === 1 ? place : open)?.count ?? { count: 0, exact: false };
      if (level === 1 && place.prefix) return `${priority}keys that begin with ${place.prefix}`;
      return priority + (exact ? several(total, 'child', 'children') : `over ${count(total)} children`);
    }
    return priority + (row.more ? `over ${count(row.children ?? 0)}` : count(row.children ?? 0));
  }

  /** The indexes between which rows are selected. */
  range() {
    const [a, b] = [this.tree.find(this.cursor.peek()), this.tree.find(this.anchor)];
    return a < 0 || b < 0 ? { low: a, high: a } : { low: Math.min(a, b), high: Math.max(a, b) };
  }

  /**
   * The selected rows; those below another selected row are part of it. Returns null if there
   * are too many, or if some are not loaded.
   */
  selection() {
    const { low, high } = this.range();
    /** @type {RowItem[]} */
    const found = [];
    for (let index = Math.max(0, low); index <= high; index++) {
      const item = this.tree.item(index);
      if (item?.kind !== 'row' || found.length === maxSelected) return null;
      found.push(item);
      if (item.open) index += item.level === 1 ? this.tree.count : item.open.height;
    }
    return found;
  }

  /** How many rows are selected. */
  get selected() {
    const { low, high } = this.range();
    return low < 0 ? 0 : high - low + 1;
  }

  get current() {
    return itemAt(this.tree, this.cursor.peek());
  }

  /**
   * Moves the cursor.
   * @param {string} id
   * @param {boolean} [extend] keep the other end of the range
   */
  select(id, extend = false) {
    this.cursor.value = id;
    if (!extend) this.anchor = id;
    const index = this.tree.find(id);
    if (index >= 0) this.list.reveal(index);
    this.list.draw();
    this.point();
  }

  focus() {
    this.space.focus({ preventScroll: true });
  }

  /** @param {MouseEvent} event */
  rowOf(event) {
    const row = event.target instanceof Element ? event.target.closest('.row') : null;
    return row instanceof HTMLElement ? (row.dataset.path ?? null) : null;
  }

  /** @param {MouseEvent} event */
  click(event) {
    const id = this.rowOf(event);
    if (id === null) return;
    const item = itemAt(this.tree, id);
    if (event.target instanceof Element && event.target.closest('.twist') && item?.row.type === 'object') this.actions.toggle(id, !item.open);
    this.select(id, event.shiftKey);
  }

  /** @param {MouseEvent} event */
  doubleClick(event) {
    const id = this.rowOf(event);
    const item = id === null ? null : itemAt(this.tree, id);
    if (!item || (event.target instanceof Element && event.target.closest('.twist'))) return;
    if (item.row.type === 'object') this.actions.toggle(item.id, !item.open);
    else this.actions.key('Enter', new KeyboardEvent('keydown', { key: 'Enter' }));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.target !== this.space || event.altKey) return;
    const move = this.moves(event.key);
    if (move !== null && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      if (move >= 0) this.selectIndex(move, event.shiftKey);
      return;
    }
    if (this.actions.key(event.key, event)) event.preventDefault();
  }

  /**
   * @param {number} index
   * @param {boolean} extend
   */
  selectIndex(index, extend) {
    const count = this.tree.count;
    const wanted = Math.max(0, Math.min(count - 1, index));
    this.list.reveal(wanted);
    const item = this.tree.item(wanted);
    if (item?.kind === 'row') this.select(item.id, extend);
    else this.wanted = { index: wanted, count, extend };
  }

  /** @type {{index: number, count: number, extend: boolean} | null} the cursor goes here once the row is loaded */
  wanted = null;

  /** Called after rows came: a cursor that waited for its row goes there. */
  arrived() {
    if (!this.wanted) return;
    const last = this.wanted.index === this.wanted.count - 1;
    const item = this.tree.item(last ? this.tree.count - 1 : this.wanted.index);
    if (item?.kind !== 'row') return;
    const { extend } = this.wanted;
    this.wanted = null;
    this.select(item.id, extend);
  }

  /**
   * Where a key moves the cursor to: an index, -1 if it did something else, null if
   * it is none of these keys.
   * @param {string} key
   * @returns {number | null}
   */
  moves(key) {
    const index = Math.max(0, this.tree.find(this.cursor.peek()));
    const item = this.current;
    const page = Math.max(1, Math.floor(this.list.view / this.list.rowPixels()) - 1);
    switch (key) {
      case 'ArrowDown': return index + 1;
      case 'ArrowUp': return index - 1;
      case 'PageDown': return index + page;
      case 'PageUp': return index - page;
      case 'Home': return 0;
      case 'End': return this.tree.count - 1;
      case 'ArrowRight':
        if (item?.row.type !== 'object') return -1;
        if (item.open) return index + 1;
        this.actions.toggle(item.id, true);
        return -1;
      case 'ArrowLeft':
        if (item?.open) this.actions.toggle(item.id, false);
        else if (item && item.level > 1) return this.tree.find(item.place.id);
        return -1;
      default: return null;
    }
  }

  /**
   * Shows an element over a row, which moves with it.
   * @param {string} id
   * @param {HTMLElement | null} element
   */
  cover(id, element) {
    this.overlay?.element.remove();
    this.overlay = element ? { id, element } : null;
    if (!element) return;
    this.element.append(element);
    this.placeOverlay();
  }

  placeOverlay() {
    if (!this.overlay) return;
    const index = this.tree.find(this.overlay.id);
    if (index < 0) return;
    this.overlay.element.style.top = index * this.list.rowPixels() - (this.list.top - this.list.bar) + 'px';
  }
}
