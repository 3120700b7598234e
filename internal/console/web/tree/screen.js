/**
 * The screen Data: path box, tree, toolbar, details.
 */

import { complain, menu, say } from '../core/dialog.js';
import { h } from '../core/dom.js';
import { effect, onEnd, signal } from '../core/signal.js';
import { count, several } from '../lib/format.js';
import { address, encodeKey, join, pasted } from '../lib/route.js';
import { details } from './details.js';
import { Feed } from './feed.js';
import { Tree, maxOpen } from './tree.js';
import { undo, undoButton } from './undo.js';
import { TreeView } from './view.js';
import { writerOf } from './write.js';

/** @typedef {import('../app.js').App} App */
/** @typedef {import('../lib/route.js').Route} Route */
/** @typedef {import('./model.js').RowItem} RowItem */

/**
 * @param {App} app
 * @param {HTMLElement} main
 * @param {Route} route
 */
export async function show(app, main, route) {
  const tree = new Tree(route.path, () => Date.now());
  const drawn = signal(0);
  const writer = writerOf(app.api, route.database);
  const feed = new Feed(app.api, route.database, tree, () => redraw());
  const started = feed.start(); // the screen is made while the server answers
  started.catch(() => {});
  const view = new TreeView(tree, {
    toggle: (id, open) => toggle(id, open),
    key: (name, event) => screen.key(name, event),
    shown: (first, last) => feed.shown(first, last),
  });
  let frame = 0;
  const redraw = () => {
    if (!frame) frame = requestAnimationFrame(() => {
      frame = 0;
      view.refresh();
      view.arrived();
      drawn.value++;
    });
  };
  onEnd(() => cancelAnimationFrame(frame));
  /** @param {string} id @param {boolean} open */
  const toggle = (id, open) => {
    if (!open) tree.collapse(id);
    else if (!tree.expand(id)) say(`At most ${maxOpen} nodes can be open. Close some first.`);
    redraw();
    feed.shown(feed.window.first, feed.window.last);
  };
  const screen = new Screen(app, route, tree, feed, view, writer, drawn, toggle);
  main.append(screen.element);
  await started;
  view.refresh();
  drawn.value++;
  if (app.focusTree) view.focus();
  app.focusTree = false;
}

class Screen {
  /**
   * @param {App} app
   * @param {Route} route
   * @param {Tree} tree
   * @param {Feed} feed
   * @param {TreeView} view
   * @param {import('./write.js').Writer} writer
   * @param {import('../core/signal.js').Signal<number>} drawn
   * @param {(id: string, open: boolean) => void} toggle
   */
  constructor(app, route, tree, feed, view, writer, drawn, toggle) {
    this.app = app;
    this.route = route;
    this.tree = tree;
    this.feed = feed;
    this.view = view;
    this.writer = writer;
    this.drawn = drawn;
    this.toggle = toggle;
    /** @type {import('./edit.js').Desk} */
    this.desk = { writer, view, drawn };
    for (const sign of ['pointerenter', 'focusin']) view.element.addEventListener(sign, () => app.editing.peek() && import('./edit.js').catch(() => {}), { once: true });
    this.sheet = signal(false); // whether the details are open, on a phone
    this.path = h('input', { 'aria-label': 'Path', class: 'code path-box', spellcheck: 'false', autocomplete: 'off', value: join(route.path) });
    this.find = h('input', { type: 'search', 'aria-label': 'Find key', placeholder: 'Find key', class: 'find-box', autocomplete: 'off', spellcheck: 'false' });
    this.element = h('div', { class: 'data-screen' }, this.bar(), this.banner(),
      h('div', { class: 'data-body' },
        h('div', { class: 'data-tree' }, this.view.element, this.nothing(), this.toolbar()),
        details(this)));
  }

  bar() {
    const form = h('form', { class: 'path-form', 'aria-label': 'Go to path', on: { submit: (/** @type {Event} */ event) => (event.preventDefault(), this.go()) } },
      this.crumbs(), this.path);
    this.find.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.findKey(event.shiftKey);
      else if (event.key === 'Escape') this.view.focus();
    });
    this.path.addEventListener('keydown', (event) => event.key === 'Escape' && this.view.focus());
    return h('div', { class: 'bar' }, form, this.find, h('button', { type: 'button', class: 'quiet', on: { click: () => this.search() } }, 'Search below'), this.live(), undoButton(this.app, this.writer));
  }

  crumbs() {
    const { database, path } = this.route;
    const link = (/** @type {number} */ depth) => h('a', { to: address({ screen: 'data', database, path: path.slice(0, depth) }), class: 'crumb' }, depth === 0 ? '/' : path[depth - 1]);
    return h('nav', { 'aria-label': 'Parents', class: 'crumbs' }, ...path.slice(-3).map((_, i) => link(Math.max(0, path.length - 3) + i)));
  }

  live() {
    const text = () => {
      this.drawn.value;
      if (this.feed.waiting.value > 0) return `paused, ${count(this.feed.waiting.value)} waiting`;
      if (this.paused.value) return 'paused';
      const rate = Math.round(this.tree.rate);
      return { live: rate > 0 ? `live ${count(rate)}/s` : 'live', connecting: 'connecting', lost: 'not connected', paused: 'asleep' }[this.feed.state.value];
    };
    return h('button', { type: 'button', class: 'quiet live', title: 'Pause or go on (.)', 'aria-pressed': () => String(this.paused.value), data: { state: () => (this.paused.value ? 'paused' : this.feed.state.value) }, on: { click: () => this.pause() } },
      h('span', { class: 'dot', 'aria-hidden': 'true' }), text);
  }

  paused = signal(false);

  pause() {
    this.feed.pause();
    this.paused.value = this.feed.paused;
  }

  banner() {
    return h('div', { class: 'banner', role: 'status', hidden: () => this.feed.state.value !== 'lost' }, () => (this.feed.state.value === 'lost' ? 'The server does not answer. What you see may be old; this page tries again by itself.' : ''));
  }

  nothing() {
    return h('div', { class: 'nothing', hidden: () => (this.drawn.value, !this.tree.known || this.tree.row.type !== 'none') },
      h('p', { class: 'nothing-title' }, 'No data'), h('p', null, 'Nothing is stored at ', h('span', { class: 'code' }, join(this.route.path)), '. It shows here as soon as something is written.'));
  }

  toolbar() {
    /** @type {[string, string, (edit: typeof import('./edit.js'), item: RowItem) => unknown, (item: RowItem) => boolean][]} */
    const actions = [
      ['Edit', 'Enter', (edit, item) => edit.editValue(this.desk, item), () => true],
      ['Add child', 'Insert', (edit, item) => edit.addChild(this.desk, item), () => true],
      ['Rename', 'F2', (edit, item) => edit.copyTo(this.desk, item, 'Rename'), (item) => item.id !== '/'],
      ['Duplicate', '', (edit, item) => edit.copyTo(this.desk, item, 'Duplicate'), (item) => item.id !== '/'],
      ['Delete', 'Delete', (edit) => edit.remove(this.desk), (item) => item.row.type !== 'none'],
      ['Import', '', (edit, item) => edit.importFile(this.desk, item), () => true],
    ];
    const buttons = actions.map(([name, key, act, fits]) => h('button', {
      type: 'button', class: 'quiet', title: key ? `${name} (${key})` : name,
      disabled: () => {
        this.drawn.value;
        this.view.cursor.value;
        const item = this.view.current;
        return !this.app.editing.value || !item || !fits(item);
      },
      on: { click: () => this.edit((edit, item) => act(edit, item)) },
    }, name));
    return h('div', { role: 'toolbar', 'aria-label': 'Node', class: 'toolbar' }, ...buttons,
      h('button', { type: 'button', class: 'quiet', on: { click: () => this.export() } }, 'Export'),
      menu('Copy', () => this.copies()),
      h('button', { type: 'button', class: 'quiet phone-only', 'aria-expanded': () => String(this.sheet.value), on: { click: () => (this.sheet.value = !this.sheet.value) } }, 'Details'));
  }

  /**
   * Runs an action of the editor on the row under the cursor.
   * @param {(edit: typeof import('./edit.js'), item: RowItem) => unknown} act
   */
  async edit(act) {
    const item = this.view.current;
    if (!this.app.editing.peek() || !item || this.typed) return;
    const typed = (this.typed = /** @type {string[]} */ ([]));
    try {
      const edit = await import('./edit.js').finally(() => (this.typed = null));
      const done = act(edit, item);
      if (typed.length > 0) edit.type(typed);
      await done;
    } catch (error) {
      complain(error instanceof Error ? error.message : String(error));
    }
  }

  /** What is typed while the forms are loaded: it belongs in the form that opens then. @type {string[] | null} */
  typed = null;

  go() {
    const to = pasted(this.path.value, this.route);
    this.app.focusTree = true;
    this.app.go(address(to));
  }

  /** The open place that finding works on: the selected node, or the one it is in. */
  target() {
    const item = this.view.current;
    if (!item) return this.tree.root;
    if (item.row.type !== 'object') return item.place;
    return item.level === 1 ? this.tree.root : (item.open ?? this.tree.expand(item.id) ?? item.place);
  }

  /** @param {boolean} below */
  findKey(below) {
    if (below) return this.search();
    const place = this.filtered && this.find.value === '' ? this.filtered : this.target();
    this.filtered = this.find.value === '' ? null : place;
    this.tree.filter(place, this.find.value);
    this.view.refresh();
    this.feed.near();
    this.drawn.value++;
    if (this.find.value !== '') this.view.select(place.id);
  }

  /** @type {import('./model.js').Place | null} */
  filtered = null;

  async search() {
    const { search } = await import('./search.js');
    search(this.app, this.route.database, this.target().path, this.find.value);
  }

  async export() {
    const item = this.view.current;
    const path = item && item.level > 1 ? item.id : this.tree.id;
    try {
      const { url } = await this.app.api.json(`/v1/databases/${encodeKey(this.route.database)}/exports`, { body: { path, gzip: false } });
      const link = h('a', { to: new URL(url, location.origin).pathname + new URL(url, location.origin).search, download: '' });
      link.click();
      say(`The export of ${path} begins.`);
    } catch (error) {
      complain(error instanceof Error ? error.message : String(error));
    }
  }

  /** @returns {[string, () => void][]} */
  copies() {
    const item = this.view.current;
    const path = item && item.level > 1 ? [...item.place.path, item.row.key] : this.tree.path;
    const target = this.app.target(this.route.database, path);
    const snippet = () => import('../lib/snippet.js');
    return [
      ['Path', () => this.app.copy(join(path))],
      ['URL', async () => this.app.copy((await snippet()).restURL(target))],
      ['JSON', () => this.copyJSON(path)],
      ['curl', async () => this.app.copy((await snippet()).curl(target))],
      ['Link to this row', () => this.app.copy(location.origin + address({ screen: 'data', database: this.route.database, path }))],
    ];
  }

  /** @param {string[]} path */
  async copyJSON(path) {
    try {
      const { text } = await this.writer.read(path);
      if (text === null) return complain('This is larger than 5 MB. Export it instead.');
      await this.app.copy((await import('../lib/json.js')).pretty(text));
    } catch (error) {
      complain(error instanceof Error ? error.message : String(error));
    }
  }

  /**
   * @param {string} name
   * @param {KeyboardEvent} event
   * @returns {boolean}
   */
  key(name, event) {
    const command = event.ctrlKey || event.metaKey;
    const item = this.view.current;
    if (this.typed) {
      if (!command && !event.repeat && (name.length === 1 || name === 'Enter')) this.typed.push(name);
    } else if (command && name === 'z') this.edit(() => undo(this.writer));
    else if (command && name === 'c' && !getSelection()?.toString() && item) this.copyJSON(item.level > 1 ? [...item.place.path, item.row.key] : this.tree.path);
    else if (command) return false;
    else if (name === 'Enter' && item?.row.type === 'object') this.toggle(item.id, !item.open);
    else if (name === 'Enter') this.edit((edit, row) => edit.editValue(this.desk, row));
    else if (name === 'F2') this.edit((edit, row) => row.id !== '/' && edit.copyTo(this.desk, row, 'Rename'));
    else if (name === 'Delete') this.edit((edit) => edit.remove(this.desk));
    else if (name === 'Insert') this.edit((edit, row) => edit.addChild(this.desk, row));
    else if (name === '/') this.find.focus();
    else if (name === 'g') this.path.select();
    else if (name === '.') this.pause();
    else return false;
    return true;
  }

  /** What the details say of the children of a row. @param {RowItem} item */
  children(item) {
    const { count: total, exact } = (item.level === 1 ? item.place : item.open)?.count ?? { count: item.row.children ?? 0, exact: !item.row.more };
    return exact ? several(total, 'child', 'children') : `over ${count(total)} children`;
  }

  /** Runs a function whenever the row under the cursor may have changed. @param {(item: RowItem | null) => void} act */
  follow(act) {
    effect(() => {
      this.drawn.value;
      this.view.cursor.value;
      act(this.view.current);
    });
  }
}

/** @typedef {Screen} DataScreen */
