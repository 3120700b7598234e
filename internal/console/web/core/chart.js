/**
 * Charts of lines over time, on a canvas, with the same numbers as a table behind a
 * button. Colours come from the style sheet: those of the legend's entries. A value that
 * is null is a hole in its line.
 */

import { h, fill } from './dom.js';
import { onEnd } from './signal.js';

/** @typedef {{name: string, values: (number | null)[]}} Series */
/** @typedef {{from: number, step: number, series: Series[]}} Data from and step in milliseconds */

const height = 130;
const left = 58;
const bottom = 18;
const tableRows = 60;

export class Chart {
  /**
   * @param {string} label
   * @param {(value: number) => string} format
   * @param {number} [least] the top of the scale when all values are smaller
   */
  constructor(label, format, least = 0) {
    this.format = format;
    this.least = least;
    /** @type {Data} */
    this.data = { from: 0, step: 1, series: [] };
    this.latest = h('span', { class: 'chart-latest' });
    this.legend = h('div', { class: 'legend' });
    this.canvas = h('canvas', { class: 'chart-canvas', 'aria-hidden': 'true' });
    this.tip = h('div', { class: 'chart-tip', hidden: true });
    this.table = h('div', { class: 'chart-table table-scroll', hidden: true, tabIndex: 0, role: 'group', 'aria-label': `${label} as numbers` });
    const toggle = h('button', { type: 'button', class: 'quiet', 'aria-expanded': 'false', 'aria-label': `${label} as a table`, on: { click: () => {
      this.table.hidden = !this.table.hidden;
      toggle.setAttribute('aria-expanded', String(!this.table.hidden));
      this.numbers();
    } } }, 'Table');
    this.element = h('figure', { 'aria-label': label, class: 'card chart', data: { latest: '0' } },
      h('figcaption', null, h('span', { class: 'chart-title' }, label), this.latest, toggle), h('div', { class: 'chart-box' }, this.canvas, this.tip), this.legend, this.table);
    this.canvas.addEventListener('pointermove', (event) => this.hover(event.offsetX));
    this.canvas.addEventListener('pointerleave', () => (this.tip.hidden = true));
    const resize = new ResizeObserver(() => this.draw());
    resize.observe(this.canvas);
    const theme = new MutationObserver(() => this.draw());
    theme.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    onEnd(() => {
      resize.disconnect();
      theme.disconnect();
    });
  }

  /**
   * @param {Data} data
   * @param {number} latest
   */
  show(data, latest) {
    this.data = data;
    this.element.dataset.latest = String(latest);
    fill(this.latest, this.format(latest));
    if (this.legend.childElementCount !== data.series.length) fill(this.legend, ...data.series.map((one, i) => h('span', { class: `series-${i}` }, h('span', { class: 'swatch', 'aria-hidden': 'true' }), one.name)));
    this.draw();
    this.numbers();
  }

  get count() {
    return Math.max(0, ...this.data.series.map((one) => one.values.length));
  }

  /** The x of a value. @param {number} index */
  x(index) {
    return left + (index / Math.max(1, this.count - 1)) * (this.canvas.clientWidth - left - 8);
  }

  draw() {
    const width = this.canvas.clientWidth;
    const context = this.canvas.getContext('2d');
    if (!context || width === 0) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    context.scale(ratio, ratio);
    const top = scale(Math.max(this.least, ...this.data.series.flatMap((one) => one.values.map((value) => value ?? 0))));
    const y = (/** @type {number} */ value) => 8 + (1 - value / top) * (height - bottom - 8);
    const style = getComputedStyle(this.element);
    context.font = `11px ${style.fontFamily}`;
    context.fillStyle = getComputedStyle(this.legend).color;
    context.strokeStyle = style.borderTopColor;
    context.lineWidth = 1;
    const parts = [0, 0.5, 1];
    const figures = labels(parts.map((part) => this.format(top * part)));
    for (const [i, part] of parts.entries()) {
      const at = Math.round(y(top * part)) + 0.5;
      context.beginPath();
      context.moveTo(left, at);
      context.lineTo(width - 8, at);
      context.stroke();
      context.textAlign = 'right';
      context.fillText(figures[i] ?? '', left - 6, at + 4);
    }
    const times = labels(parts.map((part) => this.time((this.count - 1) * part)));
    for (const [i, part] of parts.entries()) {
      context.textAlign = part === 0 ? 'left' : part === 1 ? 'right' : 'center';
      context.fillText(times[i] ?? '', this.x((this.count - 1) * part), height - 3);
    }
    for (const [i, one] of this.data.series.entries()) this.line(context, one.values, y, getComputedStyle(this.legend.children[i] ?? this.element).color);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {(number | null)[]} values
   * @param {(value: number) => number} y
   * @param {string} color
   */
  line(context, values, y, color) {
    context.strokeStyle = color;
    context.lineWidth = 1.5;
    context.lineJoin = context.lineCap = 'round';
    context.beginPath();
    let down = false;
    for (const [i, value] of values.entries()) {
      if (value === null || value === undefined) down = false;
      else if (down) context.lineTo(this.x(i), y(value));
      else {
        context.moveTo(this.x(i), y(value));
        context.lineTo(this.x(i), y(value)); // a value between holes is a dot
        down = true;
      }
    }
    context.stroke();
  }

  /** @param {number} index */
  time(index) {
    const date = new Date(this.data.from + Math.round(index) * this.data.step);
    const span = this.data.step * this.count;
    return span > 2 * 86_400_000 ? date.toLocaleDateString('en-CA') : date.toLocaleTimeString('en-GB').slice(0, span < 600_000 ? 8 : 5);
  }

  /** @param {number} x */
  hover(x) {
    const index = Math.round(((x - left) / Math.max(1, this.canvas.clientWidth - left - 8)) * (this.count - 1));
    if (index < 0 || index >= this.count) return;
    const date = new Date(this.data.from + index * this.data.step);
    fill(this.tip, h('div', { class: 'muted' }, date.toLocaleString('en-GB')), ...this.data.series.map((one) => h('div', null, `${one.name} ${this.format(one.values[index] ?? 0)}`)));
    this.tip.hidden = false;
    this.tip.style.left = Math.min(this.x(index), this.canvas.clientWidth - 150) + 'px';
  }

  /** Fills the table, newest first, if it is shown. */
  numbers() {
    if (this.table.hidden) return;
    const last = this.count - 1;
    const rows = Array.from({ length: Math.min(tableRows, this.count) }, (_, i) => last - i);
    fill(this.table, h('table', { class: 'table' }, h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'Time'), ...this.data.series.map((one) => h('th', { scope: 'col', class: 'number' }, one.name)))),
      h('tbody', null, ...rows.map((i) => h('tr', null, h('th', { scope: 'row' }, new Date(this.data.from + i * this.data.step).toLocaleString('en-GB')), ...this.data.series.map((one) => h('td', { class: 'number' }, one.values[i] == null ? '' : this.format(one.values[i] ?? 0))))))));
  }
}

/**
 * The top of the scale: a round number that is not less than the greatest value, and
 * whose half is round, too.
 * @param {number} most
 */
export function scale(most) {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 4, 6, 8, 10].find((part) => part * power >= most) ?? 10) * power;
}

/**
 * The labels at the beginning, the middle and the end of an axis, without those that would say
 * the same twice.
 * @param {string[]} texts three
 */
export function labels([low = '', middle = '', high = '']) {
  return [low, middle === low || middle === high ? '' : middle, high === low ? '' : high];
}
