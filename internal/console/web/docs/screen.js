/** The screen Docs: the manual that is in the binary, with search. */

import { fill, h } from '../core/dom.js';
import { address } from '../lib/route.js';
import { blocks, inline } from './markdown.js';

/** @typedef {{topic: string, title: string, text: string}} Page */

const maxHits = 100;

/** @type {Page[] | null} */
let manual = null;

/**
 * @param {import('../app.js').App} app
 * @param {HTMLElement} main
 * @param {import('../lib/route.js').Route} route
 */
export async function show(app, main, route) {
  const list = h('nav', { 'aria-label': 'Pages', class: 'docs-list' });
  const article = h('article', { class: 'docs-page' });
  const search = h('input', { type: 'search', 'aria-label': 'Search the manual', placeholder: 'Search the manual', autocomplete: 'off' });
  main.append(h('div', { class: 'docs-screen' }, h('div', { class: 'docs-side' }, search, list), article));
  /** @type {Page[]} */
  const pages = (manual ??= (await app.api.json('/console/manual.json')).pages);
  const topic = route.path[0] ?? 'console';
  fill(list, ...pages.map((page) => h('a', { to: address({ screen: 'docs', path: [page.topic] }), 'aria-current': page.topic === topic ? 'page' : null }, page.title)));
  const page = pages.find((one) => one.topic === topic) ?? pages[0];
  if (page) fill(article, ...draw(page.text));
  search.addEventListener('input', () => {
    if (search.value.length < 2) return page && fill(article, ...draw(page.text));
    fill(article, h('h1', null, 'Found'), ...find(pages, search.value));
  });
}

/**
 * @param {Page[]} pages
 * @param {string} word
 */
function find(pages, word) {
  const wanted = word.toLowerCase();
  const hits = pages.flatMap((page) => page.text.split('\n').filter((line) => line.toLowerCase().includes(wanted)).slice(0, 10).map((line) => ({ page, line })));
  if (hits.length === 0) return [h('p', null, 'Nothing was found.')];
  return hits.slice(0, maxHits).map(({ page, line }) => h('p', null, h('a', { to: address({ screen: 'docs', path: [page.topic] }) }, page.title), ': ', h('span', { class: 'muted' }, line.slice(0, 200))));
}

/** @param {string} text */
function draw(text) {
  return drawn(blocks(text));
}

/**
 * @param {import('./markdown.js').Block[]} all
 * @returns {HTMLElement[]}
 */
function drawn(all) {
  return all.map((block) => {
    switch (block.kind) {
      case 'heading': return h(/** @type {'h2'} */ (`h${Math.min(4, block.level)}`), null, ...words(block.text));
      case 'code': return h('pre', { class: 'code snippet', tabIndex: 0 }, block.text);
      case 'list': return h('ul', null, ...block.items.map((item) => h('li', null, ...(item.length === 1 && item[0]?.kind === 'text' ? words(item[0].text) : drawn(item)))));
      case 'table': return h('div', { class: 'table-scroll', tabIndex: 0 }, h('table', { class: 'table' }, h('thead', null, h('tr', null, ...(block.rows[0] ?? []).map((cell) => h('th', { scope: 'col' }, ...words(cell))))), h('tbody', null, ...block.rows.slice(1).map((row) => h('tr', null, ...row.map((cell) => h('td', null, ...words(cell))))))));
      default: return h('p', null, ...words(block.text));
    }
  });
}

/** @param {string} text @returns {(Node | string)[]} */
function words(text) {
  return inline(text).map((part) => {
    if (part.kind === 'code') return h('code', null, part.text);
    if (part.kind === 'strong') return h('strong', null, part.text);
    if (part.kind === 'link' && /^[\w-]+\.md(#.*)?$/.test(part.to)) return h('a', { to: address({ screen: 'docs', path: [part.to.replace(/\.md.*$/, '')] }) }, part.text);
    return part.text;
  });
}
