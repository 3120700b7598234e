/**
 * The screen Data at a moment: a slider over time, the node as it was, what is different by
 * now, who has changed it, and a button that brings it back.
 *
 * The moment is in the address as at, as in REST; an empty one is now. A moment may have to
 * be restored by the server first, so the slider is followed only when it is let go.
 */

import { h, fill } from '../core/dom.js';
import { onEnd, scope, signal } from '../core/signal.js';
import { ApiError } from '../lib/api.js';
import { ago, moment } from '../lib/format.js';
import { address, join, pasted } from '../lib/route.js';
import { Feed } from '../tree/feed.js';
import { Tree } from '../tree/tree.js';
import { undoButton } from '../tree/undo.js';
import { TreeView } from '../tree/view.js';
import { writerOf } from '../tree/write.js';
import { Difference } from './difference.js';
import { History } from './history.js';
import { Slider } from './slider.js';
import { read, write } from './moment.js';

/** @typedef {import('../app.js').App} App */
/** @typedef {import('../lib/route.js').Route} Route */

const againMillis = 1500;
const maxTries = 400; // ten minutes

/**
 * @param {App} app
 * @param {HTMLElement} main
 * @param {Route} route
 */
export async function show(app, main, route) {
  const screen = new Past(app, route);
  main.append(screen.element);
  screen.history.start();
  await screen.turn(read(route.params.get('at') ?? ''));
}

class Past {
  /**
   * @param {App} app
   * @param {Route} route
   */
  constructor(app, route) {
    this.app = app;
    this.route = route;
    this.writer = writerOf(app.api, route.database);
    /** The moment that is shown, 0 for now. */
    this.at = signal(0);
    /** Whether the tree shows it. */
    this.there = signal(false);
    this.turns = 0;
    this.end = () => {};
    onEnd(() => (this.turns++, this.end()));
    this.slider = new Slider((time) => this.choose(time));
    this.difference = new Difference(this);
    this.history = new History(this);
    this.problem = h('div', { class: 'past-problem', role: 'alert' });
    this.wait = h('p', { class: 'past-wait', role: 'status' });
    this.tree = h('div', { class: 'data-tree' });
    this.element = h('div', { class: 'past-screen' }, this.bar(), this.slider.element, this.line(),
      h('div', { class: 'past-body' }, this.tree, h('aside', { class: 'past-side', 'aria-label': 'Past' }, this.difference.element, this.history.element)));
  }

  bar() {
    const path = h('input', { 'aria-label': 'Path', class: 'code path-box', spellcheck: 'false', autocomplete: 'off', value: join(this.route.path) });
    const go = (/** @type {Event} */ event) => {
      event.preventDefault();
      const to = pasted(path.value, this.route);
      if (to.screen === 'data' && !to.params.has('at')) to.params.set('at', write(this.at.peek()));
      this.app.go(address(to));
    };
    return h('div', { class: 'bar' }, h('h1', { class: 'sr-only' }, 'Past'), h('form', { class: 'path-form', 'aria-label': 'Go to path', on: { submit: go } }, path),
      undoButton(this.app, this.writer, () => this.difference.compare()),
      h('a', { to: address({ screen: 'data', database: this.route.database, path: this.route.path }) }, 'Back to Data'));
  }

  /** What is shown, in words, and the button that brings it back. */
  line() {
    const words = () => (this.at.value === 0 ? 'Now. Move the slider, or choose a commit, to see what was here.' : `As it was ${moment(this.at.value)}, ${ago(Math.max(0, (this.slider.now - this.at.value) / 1000))}`);
    const utc = () => (this.at.value === 0 ? '' : write(this.at.value));
    return h('div', { class: 'past-line' }, h('span', { class: 'past-words' }, words), h('span', { class: 'muted code' }, utc), this.wait,
      h('button', { type: 'button', class: 'primary', disabled: () => !this.app.editing.value || !this.there.value || this.at.value === 0,
        title: () => (this.app.editing.value ? 'Write it back as it was' : 'Turn Editing on first'), on: { click: () => this.bringBack() } }, 'Bring this back'),
      this.problem);
  }

  /**
   * Goes to a moment, 0 for now.
   * @param {number} time
   */
  choose(time) {
    this.app.go(address({ screen: 'data', database: this.route.database, path: this.route.path, params: { at: write(time) } }), { quiet: true });
    return this.turn(time);
  }

  /**
   * Shows a moment. While the server makes it, or another one, it is asked for again.
   * @param {number} time
   */
  async turn(time) {
    const turn = ++this.turns;
    this.end();
    fill(this.problem);
    fill(this.wait);
    fill(this.tree);
    this.there.value = false;
    this.difference.clear();
    if (Number.isNaN(time)) return this.fail(new ApiError(400, 'The address has no time that can be read. Choose one above.'));
    this.at.value = time;
    this.slider.set(time);
    for (let tries = 0; turn === this.turns && tries < maxTries; tries++) {
      if (time !== 0) fill(this.wait, tries === 0 ? 'The server goes back to this moment…' : 'The server is busy with another moment. It is asked again…');
      const [started, end] = scope(() => this.open(write(time)));
      this.end = end;
      try {
        await started;
        if (turn === this.turns) this.shown();
        return;
      } catch (error) {
        end();
        if (turn !== this.turns) return;
        if (!(error instanceof ApiError) || error.status !== 503) return this.fail(error);
      }
      await new Promise((resolve) => setTimeout(resolve, againMillis));
    }
  }

  shown() {
    fill(this.wait);
    this.there.value = true;
    if (this.at.peek() !== 0) this.difference.compare();
  }

  /** @param {unknown} error */
  fail(error) {
    fill(this.wait);
    const text = error instanceof Error ? error.message : String(error);
    const status = error instanceof ApiError ? error.status : 0;
    fill(this.problem, h('p', null, text), this.app.status.peek().archive || !/archive/.test(text) ? null : h('p', null, 'To see the past from now on, start the server with ', h('code', null, 'livetree serve --archive file:///mnt/other/livetree'), '. ',
      h('a', { to: '/console/docs/archive' }, 'More about the archive')),
    status === 400 || status === 403 ? null : h('button', { type: 'button', on: { click: () => this.turn(this.at.peek()) } }, 'Try again'));
  }

  /**
   * Puts the tree of a moment into the page.
   * @param {string} at
   */
  async open(at) {
    const { app, route } = this;
    const tree = new Tree(route.path, () => Date.now());
    const drawn = signal(0);
    let frame = 0;
    const redraw = () => {
      if (!frame) frame = requestAnimationFrame(() => {
        frame = 0;
        view.refresh();
        drawn.value++;
      });
    };
    onEnd(() => cancelAnimationFrame(frame));
    const feed = new Feed(app.api, route.database, tree, redraw, at);
    const toggle = (/** @type {string} */ id, /** @type {boolean} */ open) => {
      if (open) tree.expand(id);
      else tree.collapse(id);
      redraw();
      feed.shown(feed.window.first, feed.window.last);
    };
    const view = new TreeView(tree, {
      toggle, shown: (first, last) => feed.shown(first, last),
      key: (name) => {
        const item = view.current;
        if (name !== 'Enter' || item?.row.type !== 'object') return false;
        toggle(item.id, !item.open);
        return true;
      },
    });
    const nothing = h('div', { class: 'nothing', hidden: () => (drawn.value, !tree.known || tree.row.type !== 'none') },
      h('p', { class: 'nothing-title' }, 'No data'), h('p', null, at ? 'Nothing was stored here then.' : 'Nothing is stored here now.'));
    fill(this.tree, view.element, nothing);
    await feed.start();
    view.refresh();
    drawn.value++;
  }

  async bringBack() {
    const { bringBack } = await import('./revert.js');
    if (await bringBack(this.app, this.route.database, this.route.path, this.at.peek())) {
      await this.difference.compare();
    }
  }
}

/** @typedef {Past} PastScreen */
