/**
 * The screen Health: charts of the last hour, day or fortnight, the checks, and what the
 * server is busy with. Each line of a table leads to the place that helps.
 */

import { Chart } from '../core/chart.js';
import { fill, h } from '../core/dom.js';
import { marked } from '../core/marks.js';
import { onEnd, signal } from '../core/signal.js';
import { bytes, clock, count, millis } from '../lib/format.js';
import { address, split } from '../lib/route.js';

/** @typedef {import('../app.js').App} App */

const refreshMillis = 10_000;
const recordSeconds = 5;
const spans = ['1h', '24h', '14d'];

/**
 * How a chart finds its series, what its newest number is, and the least top of its scale: half of it
 * still has a label of its own.
 * @type {{label: string, match: RegExp, format: (value: number) => string, latest: 'sum' | 'first', least: number}[]}
 */
const charts = [
  { label: 'Requests', match: /^requests/, format: (value) => `${rounded(value)}/s`, latest: 'sum', least: 0.1 },
  { label: 'Latency', match: /^latency/, format: millis, latest: 'first', least: 0.1 },
  { label: 'Streams', match: /^(streams|clients)/, format: (value) => count(value), latest: 'sum', least: 2 },
  { label: 'Traffic', match: /^(bytes|traffic)/, format: (value) => `${bytes(value)}/s`, latest: 'sum', least: 10 },
  { label: 'Disk', match: /^(disk|store|wal)/, format: bytes, latest: 'first', least: 10 },
  { label: 'Memory', match: /^(memory|rss|heap)/, format: bytes, latest: 'first', least: 10 },
  { label: 'Commits', match: /^commits/, format: (value) => `${rounded(value)}/s`, latest: 'sum', least: 0.1 },
  { label: 'Sync time', match: /^sync/, format: millis, latest: 'first', least: 0.1 },
];

/** @param {number} value */
function rounded(value) {
  return value < 10 ? String(Number(value.toPrecision(2))) : count(value);
}

/**
 * @param {App} app
 * @param {HTMLElement} main
 */
export async function show(app, main) {
  const screen = new Health(app);
  main.append(screen.element);
  await screen.refresh();
  screen.record();
}

class Health {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.span = signal('1h');
    this.stop = new AbortController();
    this.charts = charts.map((one) => ({ ...one, chart: new Chart(one.label, one.format, one.least) }));
    this.checks = h('ul', { class: 'checks', 'aria-label': 'Checks' });
    this.tables = h('div', { class: 'columns' });
    this.note = h('p', { class: 'hint', role: 'status' });
    this.element = h('div', { class: 'screen' }, h('header', null, h('h1', null, 'Health'), this.checks, h('div', { class: 'end segments', role: 'group', 'aria-label': 'Span' },
      ...spans.map((span) => h('button', { type: 'button', 'aria-pressed': () => String(this.span.value === span), on: { click: () => ((this.span.value = span), this.refresh()) } }, span)))),
    this.note, h('div', { class: 'charts' }, ...this.charts.map((one) => one.chart.element)), this.tables);
    const timer = setInterval(() => document.hidden || this.refresh(), refreshMillis);
    onEnd(() => {
      clearInterval(timer);
      this.stop.abort();
    });
    this.report({ busiest: [], slowest: [], unindexed: [], denied: [] }, true);
  }

  async refresh() {
    try {
      const [history, status] = await Promise.all([this.app.api.json(`/v1/history?span=${this.span.peek()}`, { signal: this.stop.signal }), this.app.api.json('/v1/status', { signal: this.stop.signal })]);
      fill(this.note);
      this.draw(history);
      fill(this.checks, ...(status.checks ?? []).map((/** @type {any} */ check) => h('li', { data: { result: check.result }, title: `${check.name}: ${check.state}` }, `${check.name} ${check.state}`)));
    } catch (error) {
      if (!this.stop.signal.aborted) fill(this.note, `The figures could not be read: ${error instanceof Error ? error.message : error}`);
    }
  }

  /** @param {{from: string | number, step: number, series: Record<string, (number | null)[]>}} history */
  draw(history) {
    const from = typeof history.from === 'number' ? history.from * (history.from < 1e11 ? 1000 : 1) : Date.parse(history.from);
    for (const { chart, match, latest } of this.charts) {
      const series = Object.entries(history.series).filter(([name]) => match.test(name)).map(([name, values]) => ({ name: name.replace(match, '').replace(/^_|_(ms|bytes|seconds)$/g, '').replaceAll('_', ' ') || name.replaceAll('_', ' '), values }));
      const last = series.map((one) => one.values.findLast((value) => value !== null) ?? 0);
      chart.element.hidden = series.length === 0 && !['Requests', 'Latency', 'Streams', 'Traffic', 'Disk', 'Memory'].includes(chart.element.ariaLabel ?? '');
      chart.show({ from, step: history.step * 1000, series }, latest === 'sum' ? last.reduce((a, b) => a + b, 0) : (last[0] ?? 0));
    }
  }

  /** Records what is busy, again and again while the screen is in sight. */
  async record() {
    while (!this.stop.signal.aborted) {
      try {
        if (!document.hidden) this.report(await this.app.api.json(`/v1/operations?for=${recordSeconds}s&lines=10`, { signal: this.stop.signal }), false);
        else await rest(recordSeconds * 1000);
      } catch {
        await rest(recordSeconds * 1000);
      }
    }
  }

  /**
   * @param {any} found
   * @param {boolean} waiting
   */
  report(found, waiting) {
    const empty = waiting ? `Recording for ${recordSeconds} s…` : `Nothing in the last ${recordSeconds} s.`;
    const place = (/** @type {any} */ one) => marked(`${one.database}${one.path}`, 'code');
    const link = (/** @type {any} */ one, /** @type {{screen: string, params?: Record<string, string>}} */ to) => h('a', { to: address({ database: one.database, path: split(one.path), ...to }) }, place(one));
    fill(this.tables,
      table('Busiest paths', ['Path', 'Verb', 'Count', 'Average'], found.busiest, empty, (one) => [link(one, { screen: 'data' }), one.verb, count(one.count), millis(one.ms_average)]),
      table('Slowest requests', ['Path', 'Verb', 'At', 'Time'], found.slowest, empty, (one) => [link(one, { screen: 'data' }), one.verb, clock(one.at), millis(one.ms)]),
      table('Without an index', ['Path', 'Index', 'Count', 'Average'], found.unindexed, empty, (one) => [link(one, { screen: 'query', params: { orderBy: JSON.stringify(one.index ?? '$value'), limitToFirst: '20' } }), one.index ?? '', count(one.count), millis(one.ms_average)]),
      table('Denied', ['Path', 'Verb', 'Count', ''], found.denied, empty, (one) => [h('a', { to: address({ screen: 'rules', database: one.database }) }, place(one)), one.verb, count(one.count), '']));
  }
}

/** @param {number} time */
function rest(time) {
  return new Promise((resolve) => setTimeout(resolve, time));
}

/**
 * @param {string} label
 * @param {string[]} head
 * @param {any[]} rows
 * @param {string} empty
 * @param {(row: any) => import('../core/dom.js').Child[]} cells
 */
function table(label, head, rows, empty, cells) {
  return h('section', { class: 'card' }, h('h2', null, label), h('table', { 'aria-label': label, class: 'table' },
    h('thead', null, h('tr', null, ...head.map((name, i) => h('th', { scope: 'col', class: i > 1 ? 'number' : '' }, name)))),
    h('tbody', null, ...(rows ?? []).map((row) => h('tr', null, ...cells(row).map((cell, i) => h('td', { class: i > 1 ? 'number' : '' }, cell)))))),
  (rows ?? []).length === 0 ? h('p', { class: 'hint empty' }, empty) : null);
}
