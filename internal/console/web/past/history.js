/**
 * Who has changed a node, and to what: the newest commits first, as far as the server can
 * tell, followed as they happen. Before and After go to the moment before and after a commit.
 */

import { h, fill } from '../core/dom.js';
import { Follower } from '../core/follow.js';
import { marked } from '../core/marks.js';
import { onEnd, scope, signal } from '../core/signal.js';
import { count, cut, moment, several } from '../lib/format.js';
import { encodeKey, join, split } from '../lib/route.js';
import { author, below, spans } from './moment.js';

/** @typedef {import('./moment.js').Seen} Seen */
/** @typedef {{at: string, time: number, who?: {by: string, uid?: string}, path: string, before?: Seen, after?: Seen}} Entry */

const perPage = 50;
const shownAtFirst = 20; // commits that the slider reaches back to at first
const maxEntries = 5000; // that are kept
const maxPages = 20; // of the server, for one span
const restMillis = 1000; // between two looks while it is followed

export class History {
  /** @param {import('./screen.js').PastScreen} screen */
  constructor(screen) {
    this.screen = screen;
    /** Oldest first. @type {Entry[]} */
    this.entries = [];
    this.to = '';
    this.dropped = false; // whether older ones were left out
    this.reaches = 0;
    this.first = signal(0); // of the page that is shown, counted from the newest
    this.state = signal('reading');
    this.ended = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    onEnd(() => ((this.ended = true), this.endRows(), clearTimeout(this.timer)));
    this.stream = new Follower((since, signal, take, opened) => {
      const params = new URLSearchParams({ under: join(screen.route.path), since: since || this.to });
      return screen.app.api.events(`/v1/databases/${encodeKey(screen.route.database)}/changes?${params}`, { signal }, take, opened);
    }, (event) => event.type !== 'keep-alive' && this.soon());
    this.list = h('ol', { 'aria-label': 'History', class: 'past-history' });
    this.note = h('p', { class: 'hint' });
    this.follow = h('button', { type: 'button', class: 'quiet live', 'aria-pressed': () => String(this.following.value), data: { state: () => (this.following.value ? this.stream.state.value : 'paused') }, on: { click: () => this.toggle() } },
      h('span', { class: 'dot', 'aria-hidden': 'true' }), () => (this.following.value ? 'Following' : 'Follow'));
    this.element = h('section', { 'aria-label': 'History of this path', class: 'past-part past-history-part' }, h('div', { class: 'past-head' }, h('h2', null, 'History'), this.follow), this.list, this.note, this.pager());
  }

  following = signal(true);
  endRows = () => {};

  pager() {
    const drawn = () => (this.state.value, this.first.value);
    return h('div', { class: 'past-pager', hidden: () => (drawn(), this.entries.length <= perPage) },
      h('button', { type: 'button', class: 'quiet', disabled: () => drawn() === 0, on: { click: () => this.page(-perPage) } }, 'Newer'),
      h('span', { class: 'muted' }, () => `${count(drawn() + 1)}–${count(Math.min(this.entries.length, this.first.value + perPage))} of ${this.dropped ? 'over ' : ''}${count(this.entries.length)}`),
      h('button', { type: 'button', class: 'quiet', disabled: () => drawn() + perPage >= this.entries.length, on: { click: () => this.page(perPage) } }, 'Older'));
  }

  /** @param {number} by */
  page(by) {
    this.first.value = Math.max(0, Math.min(this.entries.length - 1, this.first.peek() + by));
    this.draw();
    this.list.scrollTop = 0;
  }

  toggle() {
    this.following.value = !this.following.peek();
    if (!this.following.peek()) return this.stream.stop();
    this.stream.start();
    this.soon();
  }

  /** Reads all that is known of the longest span, then follows. */
  async start() {
    fill(this.note, 'Reading…');
    await this.read(Date.now() - (spans.at(-1)?.[1] ?? 0));
    this.screen.slider.suggest(this.entries.at(-shownAtFirst)?.time ?? this.entries[0]?.time);
    if (!this.ended && this.following.peek()) this.stream.start();
  }

  soon() {
    if (this.ended || this.timer !== undefined || this.state.peek() === 'reading') return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.read(0);
    }, restMillis);
  }

  /**
   * Reads the commits behind the last one that is known.
   * @param {number} since milliseconds, for the first look
   */
  async read(since) {
    this.state.value = 'reading';
    const { app, route, slider } = this.screen;
    const shown = this.entries.length;
    try {
      for (let pages = 0, more = true; more && pages < maxPages && !this.ended; pages++) {
        const params = new URLSearchParams({ path: join(route.path), ...(this.to ? { behind: this.to } : {}), ...(since ? { since: String(since) } : {}) });
        const answer = await app.api.send(`/v1/databases/${encodeKey(route.database)}/history?${params}`);
        slider.clock(Date.parse(answer.headers.get('Date') ?? '') || Date.now());
        const list = await answer.json();
        if (pages === 0 && !this.to) this.reaches = list.reaches;
        this.take(list.entries);
        this.to = list.to;
        more = list.more;
      }
      this.state.value = 'read';
      if (this.first.peek() > 0) this.first.value += Math.max(0, this.entries.length - shown); // what is looked at stays
      this.draw();
    } catch (error) {
      this.state.value = 'failed';
      if (!this.ended) fill(this.note, error instanceof Error ? error.message : String(error), ' ', h('button', { type: 'button', class: 'quiet', on: { click: () => this.read(since) } }, 'Try again'));
    }
  }

  /** @param {Entry[]} entries */
  take(entries) {
    for (const entry of entries) {
      entry.before ??= this.entries.at(-1)?.after;
      this.entries.push(entry);
    }
    if (this.entries.length > maxEntries) {
      this.entries.splice(0, this.entries.length - maxEntries);
      this.dropped = true;
    }
  }

  draw() {
    const end = this.entries.length - this.first.peek();
    const page = this.entries.slice(Math.max(0, end - perPage), end).reverse();
    this.endRows();
    const [rows, endRows] = scope(() => page.map((entry) => this.row(entry)));
    this.endRows = endRows;
    fill(this.list, ...rows);
    const cutOff = this.reaches ? `What was before ${moment(this.reaches)} is no longer in the log.` : '';
    fill(this.note, this.entries.length === 0 ? `No commit has changed this. ${cutOff}` : this.first.peek() + perPage >= this.entries.length ? cutOff : '');
    this.screen.slider.show(this.entries.map(({ time }) => time));
  }

  /** @param {Entry} entry */
  row(entry) {
    const { screen } = this;
    const go = (/** @type {number} */ time, /** @type {string} */ name, /** @type {Seen | undefined} */ seen) => h('button', {
      type: 'button', class: 'quiet past-value', title: `See ${name.toLowerCase()} this commit`, on: { click: () => screen.choose(time) },
    }, h('span', { class: 'sr-only' }, name + ': '), seen ? marked(cut(seen.value + (seen.cut ? '…' : ''), 120), 'code') : h('span', { class: 'muted' }, 'not known'));
    const keys = split(entry.path).slice(screen.route.path.length); // none, if it was written above
    const where = entry.path === join(screen.route.path) ? null : marked(entry.path, 'code muted past-where');
    return h('li', { data: { at: entry.at, time: String(entry.time) }, 'aria-current': () => (screen.at.value === entry.time ? 'time' : null) },
      h('div', { class: 'past-entry' }, h('button', { type: 'button', class: 'quiet past-when', title: 'See it as it was then', on: { click: () => screen.choose(entry.time) } }, h('time', { datetime: new Date(entry.time).toISOString() }, moment(entry.time))),
        h('span', { class: 'past-who' }, marked(author(entry.who))), where),
      h('div', { class: 'past-change' }, go(entry.time - 1, 'Before', below(entry.before, keys)), h('span', { class: 'muted', 'aria-hidden': 'true' }, '→'), go(entry.time, 'After', below(entry.after, keys))));
  }
}
