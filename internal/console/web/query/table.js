/**
 * The result of a query as a table: children as rows, their keys as columns. The head of a
 * column sorts by it, a key leads to its node, and a cell is edited as a row of the tree
 * is. One cell is in the order of the Tab key; arrows lead to the others.
 */

import { complain } from '../core/dialog.js';
import { fill, h } from '../core/dom.js';
import { marked } from '../core/marks.js';
import { count, cut, several } from '../lib/format.js';
import { print } from '../lib/json.js';
import { columns, partOf } from '../lib/query.js';
import { address } from '../lib/route.js';
import { undo, undoButton } from '../tree/undo.js';
import { writerOf } from '../tree/write.js';

/** @typedef {import('../lib/query.js').Child} Child */
/** @typedef {{path: string[], rows: Child[], order: string, sort: (column: string) => string, more: (() => void) | null}} Result */
/** A cell: the row, and the key of the column, or null for the row's own value. @typedef {{row: Child, column: string | null, element: HTMLElement}} Cell */

const pageRows = 400;

export class ResultTable {
  /**
   * @param {import('../app.js').App} app
   * @param {string} database
   * @param {() => unknown} changed called after something was written
   */
  constructor(app, database, changed) {
    this.app = app;
    this.database = database;
    this.changed = changed;
    this.writer = writerOf(app.api, database);
    this.undo = undoButton(app, this.writer, changed);
    /** @type {Cell[][]} */
    this.cells = [];
    /** The cell that the focus comes back to. @type {{key: string, column: string | null} | null} */
    this.wanted = null;
    this.element = h('div', { class: 'table-scroll', tabIndex: 0, role: 'group', 'aria-label': 'Rows' });
    this.element.addEventListener('keydown', (event) => this.key(event));
    this.element.addEventListener('dblclick', (event) => this.edit(this.cellOf(event)));
  }

  /** Shows a text instead of rows. @param {string} text */
  say(text) {
    this.cells = [];
    fill(this.element, text === '' ? null : h('p', { class: 'hint empty' }, text));
  }

  /**
   * @param {Result} result
   * @param {number} [from] the first row that is shown
   */
  show(result, from = 0) {
    const { path, rows } = result;
    const shown = rows.slice(from, from + pageRows);
    const leaves = shown.some((row) => !('children' in row.value));
    const priorities = shown.some((row) => row.priority);
    const names = columns(shown);
    this.result = result;
    this.cells = shown.map((row) => [...(leaves ? [this.cell(row, null)] : []), ...names.map((name) => this.cell(row, name))]);
    const body = shown.map((row, i) => h('tr', { data: { key: row.key } },
      h('th', { scope: 'row' }, h('a', { to: address({ screen: 'data', database: this.database, path: [...path, row.key] }) }, marked(row.key, 'code'))),
      ...(this.cells[i] ?? []).map((cell) => cell.element), priorities ? text(row.priority ? print(row.priority) : '') : null));
    const head = [this.head('Key', '$key'), leaves ? this.head('Value', '$value') : null, ...names.map((name) => this.head(name, name)), priorities ? this.head('Priority', '$priority') : null];
    fill(this.element, shown.length === 0 ? h('p', { class: 'hint empty', role: 'status' }, 'No data: the query selects no children.') : null,
      h('table', { 'aria-label': 'Result', class: 'table' }, h('thead', null, h('tr', null, ...head)), h('tbody', null, ...body)), this.foot(result, from, shown.length));
    this.settle();
  }

  /**
   * @param {Result} result
   * @param {number} from
   * @param {number} shown
   */
  foot(result, from, shown) {
    const all = result.rows.length;
    const more = all > from + pageRows ? () => this.show(result, from + pageRows) : result.more;
    return h('div', { class: 'table-foot' }, h('span', { class: 'hint' }, all > pageRows ? `${count(from + 1)} to ${count(from + shown)} of ${several(all, 'row')}` : several(all, 'row')),
      from > 0 ? h('button', { type: 'button', on: { click: () => this.show(result, from - pageRows) } }, 'Previous') : null,
      more ? h('button', { type: 'button', on: { click: more } }, 'More') : null, this.undo);
  }

  /**
   * @param {string} name
   * @param {string} order
   */
  head(name, order) {
    const sorted = this.result?.order === order;
    return h('th', { scope: 'col', 'aria-sort': sorted ? 'ascending' : null }, h('a', { to: this.result?.sort(order) ?? null, title: `Order by ${order}` }, marked(name)));
  }

  /**
   * @param {Child} row
   * @param {string | null} column
   * @returns {Cell}
   */
  cell(row, column) {
    const found = this.part(row, column);
    const element = text(found ? print(found.value) : '');
    element.tabIndex = -1;
    if (column !== null) element.dataset.column = column;
    return { row, column, element };
  }

  /**
   * The value of a cell and its priority, if there is one.
   * @param {Child} row
   * @param {string | null} column
   */
  part(row, column) {
    if (column !== null) return partOf(row.value, column);
    return 'children' in row.value ? null : { value: row.value, priority: row.priority };
  }

  /** Gives the focus back to the cell that had it; else the first is the one for Tab. */
  settle() {
    const all = this.cells.flat();
    const back = this.wanted && all.find((cell) => cell.row.key === this.wanted?.key && cell.column === this.wanted.column);
    const first = back ?? all[0];
    if (first) first.element.tabIndex = 0;
    if (back) back.element.focus();
    this.wanted = null;
  }

  /** @param {Event} event @returns {Cell | null} */
  cellOf(event) {
    const element = event.target instanceof Element ? event.target.closest('td') : null;
    return (element && this.cells.flat().find((cell) => cell.element === element)) ?? null;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const cell = event.target instanceof HTMLTableCellElement ? this.cellOf(event) : null;
    if (!cell || event.altKey) return;
    if ((event.ctrlKey || event.metaKey) && event.key === 'z' && this.app.editing.peek()) undo(this.writer).then(this.changed);
    else if (event.key === 'Enter' || event.key === 'F2') this.edit(cell);
    else if (event.ctrlKey || event.metaKey || !this.move(cell, event.key)) return;
    event.preventDefault();
  }

  /**
   * Leads the focus from a cell to another; returns whether the key means that.
   * @param {Cell} cell
   * @param {string} key
   */
  move(cell, key) {
    const y = this.cells.findIndex((row) => row.includes(cell));
    const x = this.cells[y]?.indexOf(cell) ?? 0;
    const [dx, dy] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1], Home: [-x, 0], End: [(this.cells[y]?.length ?? 1) - 1 - x, 0] }[key] ?? [];
    if (dx === undefined || dy === undefined) return false;
    const next = this.cells[y + dy]?.[x + dx];
    if (!next) return true;
    cell.element.tabIndex = -1;
    next.element.tabIndex = 0;
    next.element.focus();
    return true;
  }

  /** @param {Cell | null} cell */
  async edit(cell) {
    const result = this.result;
    if (!cell || !result || !this.app.editing.peek()) return;
    const { row, column, element } = cell;
    const inObject = 'children' in row.value;
    if ((column === null) === inObject) return; // an object has no value of its own, a leaf no children
    const found = this.part(row, column);
    const object = Boolean(found && 'children' in found.value);
    const value = !found ? '' : 'children' in found.value ? null : found.value.text;
    try {
      const { editValue } = await import('../tree/value.js');
      await editValue(this.writer, {
        path: [...result.path, row.key, ...(column === null ? [] : [column])], text: value, object, priority: found?.priority ? print(found.priority) : undefined,
        cover: (form) => this.cover(element, form), focus: () => element.focus(),
        follow: () => () => {}, ahead: () => () => {},
        written: () => {
          this.wanted = { key: row.key, column };
          this.changed();
        },
      });
    } catch (error) {
      complain(error instanceof Error ? error.message : String(error));
    }
  }

  /**
   * Shows a form over a cell; returns what takes it away.
   * @param {HTMLElement} cell
   * @param {HTMLElement} form
   */
  cover(cell, form) {
    const host = this.element.parentElement ?? this.element;
    const [at, around] = [cell.getBoundingClientRect(), host.getBoundingClientRect()];
    form.classList.add('in-row');
    host.append(form);
    form.style.top = at.top - around.top + 'px';
    form.style.left = Math.max(8, Math.min(at.left - around.left, around.width - form.offsetWidth - 8)) + 'px';
    return () => form.remove();
  }
}

/** @param {string} json */
function text(json) {
  const type = json.startsWith('"') ? 'string' : /^[tf]/.test(json) ? 'boolean' : /^[-0-9]/.test(json) ? 'number' : 'object';
  return h('td', { data: { type }, class: 'code' }, marked(cut(json, 120)));
}
