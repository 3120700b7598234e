/** A slider over time, with a field for the exact one, and marks where commits are. */

import { h } from '../core/dom.js';
import { ago, moment } from '../lib/format.js';
import { local, spanOf, spans, stepOf, steps, timeOf } from './moment.js';

const maxMarks = 300;

export class Slider {
  /** @param {(time: number) => void} choose called with the moment that was chosen, 0 for now */
  constructor(choose) {
    this.choose = choose;
    this.skew = 0; // how far the server's clock is ahead of this one
    this.now = Date.now();
    this.length = spans[1]?.[1] ?? 0;
    this.time = 0;
    this.chosen = false; // whether somebody has chosen the span
    /** @type {number[]} */
    this.commits = [];
    this.range = h('input', { type: 'range', 'aria-label': 'Moment', min: '0', max: String(steps), value: String(steps), class: 'past-range',
      on: { input: () => this.words(), change: () => this.moved() } });
    this.marks = h('div', { class: 'past-marks', 'aria-hidden': 'true' });
    this.span = h('select', { 'aria-label': 'Span', on: { change: () => ((this.chosen = true), this.reach(Number(this.span.value))) } }, ...spans.map(([name, length]) => h('option', { value: String(length) }, name)));
    this.field = h('input', { type: 'datetime-local', step: '0.001', 'aria-label': 'Time', class: 'past-time', on: { change: () => this.typed() } });
    this.element = h('div', { class: 'past-slider', role: 'group', 'aria-label': 'Time' }, this.span, h('div', { class: 'past-track' }, this.marks, this.range), h('button', { type: 'button', on: { click: () => this.pick(0) } }, 'Now'), this.field);
    this.draw();
  }

  /** Notes the server's clock. @param {number} time */
  clock(time) {
    this.skew = Math.abs(time - Date.now()) > 2000 ? time - Date.now() : 0;
  }

  /** Shows a moment. @param {number} time */
  set(time) {
    this.time = time;
    this.now = Date.now() + this.skew;
    if (time !== 0 && time < this.now - this.length) this.length = spanOf(time, this.now);
    this.draw();
  }

  /** Reaches back to a moment, unless a span was chosen. @param {number | undefined} time */
  suggest(time) {
    if (time !== undefined && !this.chosen) this.reach(spanOf(Math.min(time, this.time || time), Date.now() + this.skew));
  }

  /** @param {number} length */
  reach(length) {
    this.length = length;
    this.now = Date.now() + this.skew;
    this.draw();
  }

  draw() {
    this.span.value = String(spans.find(([, length]) => length >= this.length)?.[1] ?? spans.at(-1)?.[1]);
    this.range.value = String(stepOf(this.time, this.now, this.length));
    this.words();
    this.mark();
  }

  /** What the slider says to screen readers, and the field while it is moved. */
  words() {
    const time = timeOf(Number(this.range.value), this.now, this.length);
    const exact = this.time !== 0 && stepOf(this.time, this.now, this.length) === Number(this.range.value) ? this.time : time;
    this.range.setAttribute('aria-valuetext', exact === 0 ? 'now' : `${moment(exact)}, ${ago((this.now - exact) / 1000)}`);
    this.field.value = exact === 0 ? '' : local(exact);
  }

  moved() {
    this.pick(timeOf(Number(this.range.value), this.now, this.length));
  }

  typed() {
    const time = this.field.value === '' ? 0 : new Date(this.field.value).getTime();
    if (!Number.isNaN(time)) this.pick(time);
  }

  /** @param {number} time */
  pick(time) {
    this.set(time);
    this.choose(time);
  }

  /** Marks where commits are. @param {number[]} times */
  show(times) {
    this.commits = times;
    this.mark();
  }

  mark() {
    const found = new Set(this.commits.filter((time) => time >= this.now - this.length && time <= this.now).map((time) => stepOf(time, this.now, this.length)));
    this.marks.replaceChildren(...[...found].slice(-maxMarks).map((step) => {
      const mark = h('span');
      mark.style.left = (100 * step) / steps + '%';
      return mark;
    }));
  }
}
