/**
 * The form for one value, wherever that is shown: in a row of the tree, or in a cell of
 * a table. It keeps its text until the write is through, says inside what went wrong, and
 * overwrites nobody unasked. What was typed outlives a reload and the end of a session.
 */

import { ask, complain, say } from '../core/dialog.js';
import { h } from '../core/dom.js';
import { form } from '../core/form.js';
import { marked } from '../core/marks.js';
import { ApiError } from '../lib/api.js';
import { cut } from '../lib/format.js';
import { field, parse, pretty, typed } from '../lib/json.js';
import { join } from '../lib/route.js';
import { maxOpened } from './write.js';

/** @typedef {import('./write.js').State} State */
/** @typedef {import('./write.js').Writer} Writer */

/**
 * What the form has to know of the value, and of the place where it is shown.
 * @typedef {object} Spot
 * @property {string[]} path
 * @property {string | null} text the JSON text, null if not all of it is at hand
 * @property {boolean} object
 * @property {string | undefined} priority JSON text; the value keeps it
 * @property {(element: HTMLFormElement) => () => void} cover shows a small form in its place, and returns what takes it away
 * @property {() => void} focus gives the focus back
 * @property {(note: HTMLElement, start: string) => () => void} follow says in the note when the stored value changes, until it is ended
 * @property {(json: string) => () => void} ahead shows the value as written before the server has said so, and returns what takes that back
 * @property {() => void} written is called after the write
 */

export const types = ['string', 'number', 'boolean', 'json'];
const longText = 200; // a longer text is edited in a panel
const draftName = 'livetree.draft.value';
const maxDraft = 200_000;

/**
 * Shows a form in a dialog; returns what closes it.
 * @param {HTMLFormElement} element
 * @param {() => void} focus
 */
export function panel(element, focus) {
  const name = element.getAttribute('aria-label');
  const dialog = h('dialog', { class: 'wide panel', 'aria-label': name }, h('h2', null, name), element);
  const close = () => {
    dialog.remove();
    focus();
  };
  dialog.addEventListener('cancel', (event) => {
    event.preventDefault();
    close();
  });
  document.body.append(dialog);
  dialog.showModal();
  focusFirst(element);
  return close;
}

/** @param {HTMLElement} element */
export function focusFirst(element) {
  const first = element.querySelector('textarea, input');
  if (first instanceof HTMLTextAreaElement || first instanceof HTMLInputElement) {
    first.focus();
    if (first.type !== 'file' && first.type !== 'radio') first.select();
  }
}

/**
 * @param {Writer} writer
 * @param {Spot} spot
 */
export async function editValue(writer, spot) {
  const reading = writer.read(spot.path);
  reading.catch(() => {});
  let start = spot.text;
  if (start === null) {
    const state = await reading;
    if (state.text === null || state.text.length > maxOpened) return complain(`${join(spot.path)} is larger than 1 MiB. Export it, change the file, and import it.`);
    start = spot.object ? state.text : await writer.api.text(writer.url(spot.path));
  }
  const kept = new Draft(writer.database, spot.path);
  const first = kept.typed ?? (start === 'null' ? { type: 'json', text: 'null' } : start === '' ? { type: 'string', text: '' } : field(start));
  const large = first.type === 'json' || first.text.length > longText || first.text.includes('\n');
  const made = form({
    label: 'Edit value', submit: 'Save', class: large ? 'edit-large' : 'edit-small', cancel: () => close(),
    before: [large ? marked(join(spot.path), 'form-path') : null, kept.typed ? h('p', { class: 'hint draft-note' }, 'This is what you had typed before.') : null],
    fields: [{ label: 'Type', kind: 'select', options: types, value: first.type }, { label: 'Value', kind: 'area', value: first.text, code: true }],
    done: async (texts) => {
      const json = withPriority(typed(/** @type {any} */ (texts.Type), texts.Value ?? ''), spot.priority);
      await save(writer, spot, json, await reading, () => close());
    },
  });
  made.element.addEventListener('input', () => kept.keep(made.texts()));
  /** @type {HTMLTextAreaElement} */ (made.controls.Value).rows = large ? 16 : 1;
  const stop = spot.follow(made.note, start);
  const shut = large ? panel(made.element, () => (kept.drop(), stop(), spot.focus())) : spot.cover(made.element);
  if (!large) focusFirst(made.element);
  function close() {
    kept.drop();
    stop();
    shut();
    spot.focus();
  }
}

/** What was typed into the form and not saved yet: one text for each tab. */
class Draft {
  /**
   * @param {string} database
   * @param {string[]} path
   */
  constructor(database, path) {
    this.of = `${database} ${join(path)}`;
    /** @type {{type: string, text: string} | null} */
    this.typed = null;
    try {
      const found = JSON.parse(sessionStorage.getItem(draftName) ?? 'null');
      if (found?.of === this.of && types.includes(found.type) && typeof found.text === 'string') this.typed = { type: found.type, text: found.text };
    } catch {
      this.drop();
    }
  }

  /** @param {Record<string, string>} texts */
  keep(texts) {
    const text = texts.Value ?? '';
    if (text.length <= maxDraft) sessionStorage.setItem(draftName, JSON.stringify({ of: this.of, type: texts.Type, text }));
  }

  drop() {
    sessionStorage.removeItem(draftName);
  }
}

/**
 * The JSON to write for a leaf that keeps its priority.
 * @param {string} json
 * @param {string | undefined} priority
 */
export function withPriority(json, priority) {
  if (priority === undefined || json === 'null' || json.startsWith('{') || json.startsWith('[')) return json;
  return `{".value":${json},".priority":${priority}}`;
}

/**
 * @param {Writer} writer
 * @param {Spot} spot
 * @param {string} json
 * @param {State} before
 * @param {() => void} close
 */
async function save(writer, spot, json, before, close) {
  const revert = spot.ahead(json);
  try {
    await writer.put(`the edit of ${join(spot.path)}`, spot.path, json, before);
    close();
    say(`${join(spot.path)} was saved.`);
    spot.written();
  } catch (error) {
    revert();
    if (!(error instanceof ApiError) || error.status !== 412) throw error;
    await conflict(writer, spot, json, close);
  }
}

/**
 * Somebody wrote since the form was opened: shows both and asks.
 * @param {Writer} writer
 * @param {Spot} spot
 * @param {string} json
 * @param {() => void} close
 */
async function conflict(writer, spot, json, close) {
  const theirs = await writer.read(spot.path);
  const answer = await ask({
    label: 'Changed meanwhile', role: 'alertdialog', buttons: ['Take theirs', 'Keep mine'], wide: true,
    body: [h('p', null, marked(join(spot.path), 'code'), ' was written by somebody else since you opened it.'),
      h('div', { class: 'both' }, half('Theirs, stored now', theirs.text), half('Mine, not saved', json))],
  });
  if (answer === 'Keep mine') await save(writer, spot, json, theirs, close);
  else if (answer === 'Take theirs') {
    close();
    spot.written();
  }
}

/**
 * @param {string} title
 * @param {string | null} text
 */
function half(title, text) {
  const box = h('pre', { class: 'code', tabIndex: 0, 'aria-label': title });
  box.append(marked(text === null ? '(larger than 5 MB)' : cut(pretty(text), 20_000)));
  return h('div', null, h('h3', null, title), box);
}

/**
 * The JSON text of a priority as it was typed: a number or a text, or nothing.
 * @param {string} text
 */
export function priorityOf(text) {
  const trimmed = text.trim();
  if (trimmed === '') return 'null';
  const wrong = new Error('A priority is a number, or a text in double quotes, as in "high". Leave it empty for none.');
  let value;
  try {
    value = parse(trimmed);
  } catch {
    throw wrong;
  }
  if (value.type !== 'number' && value.type !== 'string' && value.type !== 'null') throw wrong;
  return value.text;
}
