/**
 * A list of any length that keeps few elements in the page.
 *
 * Rows have one height. Only those in sight, and some around them, are in the page;
 * their elements are keyed and reused, so a row that stays in sight keeps its
 * element, its focus and a click that is under way. A browser cannot scroll over
 * more than some tens of millions of pixels, so above maxPixels the place of the
 * scroll bar is scaled, while small steps still move by what was asked for.
 *
 * refresh draws again after rows have changed. It keeps the first row in sight where it
 * is, by its key, so rows that come or go above it move nothing that is shown.
 */

import { onEnd } from './signal.js';

const maxPixels = 8_000_000;
const around = 12; // rows that are kept above and below those in sight

/**
 * @typedef {object} Source
 * @property {() => number} count how many rows there are
 * @property {(index: number) => string} key what tells a row from the others
 * @property {(key: string) => number} find where a row is now, or -1
 * @property {() => HTMLElement} make makes an empty row
 * @property {(element: HTMLElement, index: number) => void} draw fills a row
 * @property {(first: number, last: number) => void} [shown] told which rows are in sight
 */

export class VirtualList {
  /**
   * @param {HTMLElement} scroller the element that scrolls
   * @param {HTMLElement} space the element inside of it that holds the rows
   * @param {Source} source
   * @param {() => number} rowPixels
   */
  constructor(scroller, space, source, rowPixels) {
    this.scroller = scroller;
    this.space = space;
    this.source = source;
    this.rowPixels = rowPixels;
    /** @type {Map<string, HTMLElement>} */
    this.rows = new Map();
    /** @type {HTMLElement[]} */
    this.spare = [];
    this.top = 0; // pixels above the first in sight, if nothing were scaled
    this.bar = 0; // where the scroll bar was last seen or put
    this.view = scroller.clientHeight || 400; // read when the size changes only: reading it makes the browser lay out
    this.anchor = '';
    this.frame = 0;
    const onScroll = () => this.scrolled();
    scroller.addEventListener('scroll', onScroll, { passive: true });
    const resize = new ResizeObserver(() => {
      this.view = scroller.clientHeight;
      this.refresh();
    });
    resize.observe(scroller);
    onEnd(() => {
      resize.disconnect();
      scroller.removeEventListener('scroll', onScroll);
      cancelAnimationFrame(this.frame);
      clearTimeout(this.settle);
    });
  }

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  settle;

  get height() {
    return this.source.count() * this.rowPixels();
  }

  /** How many pixels cannot be seen, as they are and as the scroll bar has them. */
  get hidden() {
    return { real: Math.max(0, this.height - this.view), bar: Math.max(0, Math.min(this.height, maxPixels) - this.view) };
  }

  scrolled() {
    const at = this.scroller.scrollTop;
    const step = at - this.bar;
    if (step === 0) return;
    const { real, bar } = this.hidden;
    this.bar = at;
    if (real === bar || at <= 0) this.top = at;
    else if (at >= bar - 1) this.top = real;
    else if (Math.abs(step) < 3 * this.view) this.top = Math.max(0, Math.min(real, this.top + step));
    else this.top = (at / bar) * real;
    this.anchor = '';
    this.plan();
    if (real === bar) return;
    clearTimeout(this.settle); // put the bar where it belongs once the hand is off it
    this.settle = setTimeout(() => this.place(), 200);
  }

  /** Draws in the next frame, once. */
  plan() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  /** Draws again after rows have changed; the first row in sight stays where it is. */
  refresh() {
    if (this.anchor) {
      const index = this.source.find(this.anchor);
      if (index >= 0) this.top = index * this.rowPixels() + this.inset;
    }
    this.place();
    this.draw();
  }

  inset = 0; // how many pixels of the first row are above the edge

  /** Puts the scroll bar where top says. */
  place() {
    const { real, bar } = this.hidden;
    this.top = Math.max(0, Math.min(this.top, real));
    const height = Math.min(this.height, maxPixels) + 'px';
    if (this.space.style.height !== height) this.space.style.height = height;
    const wanted = real === bar ? this.top : real === 0 ? 0 : (this.top / real) * bar;
    if (Math.abs(wanted - this.bar) < 0.5) return;
    this.scroller.scrollTop = wanted;
    this.bar = this.scroller.scrollTop;
    if (real === bar) this.top = this.bar;
  }

  draw() {
    const pixels = this.rowPixels();
    const count = this.source.count();
    const first = Math.min(Math.floor(this.top / pixels), Math.max(0, count - 1));
    const last = Math.min(count - 1, Math.ceil((this.top + this.view) / pixels));
    this.source.shown?.(first, last);
    const from = Math.max(0, first - around);
    const to = Math.min(this.source.count() - 1, last + around);
    const stale = this.stale(from, to);
    // The page has the rows in their order. Those that stay are in it already, so only new
    // ones are put in, and none is moved while it is being clicked.
    let next = this.space.firstElementChild;
    for (let index = from; index <= to; index++) {
      const key = this.source.key(index);
      let element = this.rows.get(key);
      if (element) while (next && stale.has(next)) next = next.nextElementSibling;
      else {
        // One that is in the way is taken where it is: to draw it costs less than to move it.
        element = next && stale.get(next) ? stale.get(next) : (stale.values().next().value ?? this.spare.pop());
        this.rows.set(key, (element ??= this.source.make()));
        stale.delete(element);
      }
      this.source.draw(element, index);
      const where = `translateY(${index * pixels - (this.top - this.bar)}px)`;
      if (element.style.transform !== where) element.style.transform = where;
      if (element === next) next = element.nextElementSibling;
      else this.space.insertBefore(element, next);
    }
    for (const element of stale.values()) {
      if (this.spare.length < 60) this.spare.push(element);
      element.remove();
    }
    this.anchor = count > 0 ? this.source.key(first) : '';
    this.inset = this.top - first * pixels;
  }

  /**
   * Forgets the rows that are no longer near, and returns their elements.
   * @param {number} from
   * @param {number} to
   */
  stale(from, to) {
    const near = new Set();
    for (let index = from; index <= to; index++) near.add(this.source.key(index));
    /** @type {Map<Element, HTMLElement>} */
    const found = new Map();
    for (const [key, element] of this.rows) {
      if (near.has(key)) continue;
      this.rows.delete(key);
      found.set(element, element);
    }
    return found;
  }

  /**
   * Scrolls as little as needed for a row to be in sight.
   * @param {number} index
   */
  reveal(index) {
    const pixels = this.rowPixels();
    const y = index * pixels;
    if (y < this.top) this.top = y;
    else if (y + pixels > this.top + this.view) this.top = y + pixels - this.view;
    else return;
    this.anchor = '';
    this.place();
    this.draw();
  }
}
