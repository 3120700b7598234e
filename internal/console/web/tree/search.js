/** Searching keys and values below a node, on the server. */

import { h, fill } from '../core/dom.js';
import { form } from '../core/form.js';
import { marked } from '../core/marks.js';
import { bytes, count, cut, several } from '../lib/format.js';
import { address, encodeKey, join, split } from '../lib/route.js';

const shownHits = 200;

/**
 * Opens the search.
 * @param {import('../app.js').App} app
 * @param {string} database
 * @param {string[]} path
 * @param {string} text
 */
export function search(app, database, path, text) {
  const back = document.activeElement;
  let stop = new AbortController();
  const hits = h('ol', { class: 'hits', 'aria-label': 'Hits' });
  const state = h('p', { class: 'hint', role: 'status' });
  const close = () => {
    stop.abort();
    dialog.remove();
    if (back instanceof HTMLElement) back.focus();
  };
  const made = form({
    label: 'Search below', submit: 'Search', cancel: close, before: [h('p', null, 'Keys and values below ', marked(join(path), 'code'))],
    fields: [{ label: 'Text', kind: 'search', value: text }, { label: 'In', name: 'in', kind: 'radio', options: ['Keys and values', 'Keys', 'Values'], value: 'Keys and values' }],
    done: async (texts) => {
      stop.abort();
      stop = new AbortController();
      fill(hits);
      await find(app, database, { under: join(path), text: texts.Text ?? '', in: texts.in === 'Keys' ? ['keys'] : texts.in === 'Values' ? ['values'] : ['keys', 'values'], limit: 1000 }, stop.signal, hits, state, close);
    },
  });
  const dialog = h('dialog', { class: 'wide panel', 'aria-label': 'Search below' }, h('h2', null, 'Search below'), made.element, state, hits);
  dialog.addEventListener('cancel', (event) => {
    event.preventDefault();
    close();
  });
  document.body.append(dialog);
  dialog.showModal();
  made.controls.Text?.focus();
}

/**
 * @param {import('../app.js').App} app
 * @param {string} database
 * @param {{under: string, text: string, in: string[], limit: number}} request
 * @param {AbortSignal} signal
 * @param {HTMLElement} hits
 * @param {HTMLElement} state
 * @param {() => void} close
 */
async function find(app, database, request, signal, hits, state, close) {
  if (request.text === '') throw new Error('Type what to search for.');
  let found = 0;
  fill(state, 'Searching…');
  await app.api.events(`/v1/databases/${encodeKey(database)}/find`, { method: 'POST', body: JSON.stringify(request), signal }, (event) => {
    const data = event.data && event.data !== 'null' ? JSON.parse(event.data) : {};
    if (event.type === 'hit') {
      found++;
      if (found <= shownHits) {
        const link = h('a', { to: address({ screen: 'data', database, path: split(data.path) }), on: { click: close } }, marked(data.path, 'code'));
        hits.append(h('li', null, link, data.value === undefined ? null : marked(' ' + cut(data.value, 120), 'code muted')));
      }
    } else if (event.type === 'progress') fill(state, `${several(found, 'hit')}, ${bytes(data.bytes ?? 0)} read, now at ${cut(data.path ?? '', 60)}`);
    else if (event.type === 'end') fill(state, ending(found, Boolean(data.complete)));
  });
}

/** @param {number} found @param {boolean} complete */
function ending(found, complete) {
  const shown = found > shownHits ? `, the first ${count(shownHits)} are shown` : '';
  return complete ? `${several(found, 'hit')}${shown}.` : `${several(found, 'hit')} so far${shown}. The search ended early: there may be more. Search at a deeper node.`;
}
