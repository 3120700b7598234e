/**
 * The forms that change the tree. Each keeps its text until the write is through,
 * says inside what went wrong, and gives the focus back to the row.
 */

import { ask, complain, say } from '../core/dialog.js';
import { h, fill } from '../core/dom.js';
import { form } from '../core/form.js';
import { marked } from '../core/marks.js';
import { effect } from '../core/signal.js';
import { ApiError } from '../lib/api.js';
import { cut, several } from '../lib/format.js';
import { field, parse, typed } from '../lib/json.js';
import { wrong } from '../lib/keys.js';
import { join } from '../lib/route.js';
import * as value from './value.js';
import { maxSelected } from './view.js';

/** @typedef {import('./model.js').RowItem} RowItem */
/** @typedef {import('./model.js').Row} Row */

/**
 * What the forms need of the screen.
 * @typedef {object} Desk
 * @property {import('./write.js').Writer} writer
 * @property {import('./view.js').TreeView} view
 * @property {import('../core/signal.js').Signal<number>} drawn counts how often rows have changed
 */

/** @param {RowItem} item */
export function pathOf(item) {
  return item.level === 1 ? item.place.path : [...item.place.path, item.row.key];
}

/**
 * Shows a form over a row; returns what takes it away.
 * @param {Desk} desk
 * @param {string} id
 * @param {HTMLFormElement} element
 */
function cover(desk, id, element) {
  element.classList.add('in-row');
  desk.view.cover(id, element);
  value.focusFirst(element);
  return () => {
    desk.view.cover(id, null);
    desk.view.focus();
  };
}

/**
 * Puts keys that were pressed before a form was there into the field that has the focus.
 * @param {string[]} keys
 */
export function type(keys) {
  const field = document.activeElement;
  if (!(field instanceof HTMLTextAreaElement || field instanceof HTMLInputElement) || !field.form) return;
  const end = keys.indexOf('Enter');
  field.setRangeText(keys.slice(0, end < 0 ? undefined : end).join(''), field.selectionStart ?? 0, field.selectionEnd ?? 0, 'end');
  field.dispatchEvent(new Event('input', { bubbles: true }));
  if (end >= 0) field.form.requestSubmit();
}

/**
 * Shows the row as written before the server has said so.
 * @param {Desk} desk
 * @param {RowItem} item
 * @param {string} json
 */
function ahead(desk, item, json) {
  const { tree } = desk.view;
  tree.own.set(item.id, tree.now() + 3000);
  const { type } = field(json);
  if (type === 'json' || item.level === 1) return () => {};
  const row = item.place.row(item.row.key);
  if (!row) return () => {};
  const old = { ...row };
  Object.assign(row, { type, value: cut(json, 160), cut: json.length > 160, pending: true });
  desk.view.refresh();
  return () => {
    tree.own.delete(item.id);
    Object.assign(row, old);
    if (!old.pending) delete row.pending;
    desk.view.refresh();
  };
}

/**
 * @param {Desk} desk
 * @param {RowItem} item
 */
export async function editValue(desk, item) {
  const object = item.row.type === 'object';
  await value.editValue(desk.writer, {
    path: pathOf(item), text: item.row.cut || object ? null : (item.row.value ?? 'null'), object, priority: item.row.priority,
    cover: (element) => cover(desk, item.id, element), focus: () => desk.view.focus(),
    follow: (note, start) => follow(desk, item, note, start), ahead: (json) => ahead(desk, item, json), written: () => (settled(item), desk.view.refresh()),
  });
}

/**
 * The form for the priority, which is written by itself.
 * @param {Desk} desk
 * @param {RowItem} item
 */
export function editPriority(desk, item) {
  const path = pathOf(item);
  const at = [...path, '.priority'];
  const shown = item.row.priority ?? 'null';
  const reading = desk.writer.read(at);
  reading.catch(() => {});
  const made = form({
    label: 'Set priority', submit: 'Save', cancel: () => close(), class: 'edit-small',
    fields: [{ label: 'Priority', code: true, value: item.row.priority ?? '', hint: 'A number, or a text in double quotes. Empty for none.' }],
    done: async (texts) => {
      const json = value.priorityOf(texts.Priority ?? '');
      const before = await reading;
      const late = new Error('The priority was written by somebody else since you opened this. Close the form and look at it first.');
      if (JSON.parse(before.text ?? '') !== JSON.parse(shown)) throw late; // the row had yet to show it
      try {
        await desk.writer.put(`the priority of ${join(path)}`, at, json, before);
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 412) throw error;
        throw late;
      }
      close();
      say(`The priority of ${join(path)} was saved.`);
    },
  });
  const close = cover(desk, item.id, made.element);
}

/**
 * Says in an open form when the stored value changes.
 * @param {Desk} desk
 * @param {RowItem} item
 * @param {HTMLElement} note
 * @param {string} start
 */
function follow(desk, item, note, start) {
  const base = item.row.value;
  return effect(() => {
    desk.drawn.value;
    const now = desk.view.tree.item(desk.view.tree.find(item.id));
    const row = now?.kind === 'row' ? now.row : null;
    if (row?.pending || (row && row.value === base && row.type === item.row.type) || (row && row.value === start)) return fill(note);
    fill(note, row && row.type !== 'none' ? ['The stored value has changed meanwhile: ', marked(cut(row.value ?? '{…}', 60), 'code')] : 'The stored value was deleted meanwhile.');
  });
}

/** @param {RowItem} item */
function settled(item) {
  const row = item.place.row(item.row.key);
  if (row) delete row.pending;
}

/** @param {string} key */
function checkKey(key) {
  const problem = wrong(key);
  if (problem) throw new Error(problem);
}

/**
 * @param {Desk} desk
 * @param {RowItem} item
 */
export function addChild(desk, item) {
  const made = form({
    label: 'Add child', submit: 'Add', cancel: () => close(), class: 'edit-small',
    fields: [{ label: 'Key', code: true }, { label: 'Type', kind: 'select', options: value.types, value: 'string' }, { label: 'Value', kind: 'area', code: true }],
    done: async (texts) => {
      const key = texts.Key ?? '';
      checkKey(key);
      const json = typed(/** @type {any} */ (texts.Type), texts.Value ?? '');
      if (json === 'null' || json === '{}' || json === '[]') throw new Error('This is no data, so nothing would be stored.');
      const path = [...pathOf(item), key];
      try {
        await desk.writer.put(`the new ${join(path)}`, path, json, { text: 'null', etag: 'null_etag' });
      } catch (error) {
        if (error instanceof ApiError && error.status === 412) throw new Error(`The key ${key} already exists.`);
        throw error;
      }
      close();
      say(`${join(path)} was added.`);
    },
  });
  /** @type {HTMLTextAreaElement} */ (made.controls.Value).rows = 1;
  const close = cover(desk, item.id, made.element);
}

/**
 * Rename and Duplicate: both copy on the server.
 * @param {Desk} desk
 * @param {RowItem} item
 * @param {'Rename' | 'Duplicate'} name
 */
export function copyTo(desk, item, name) {
  const move = name === 'Rename';
  const from = pathOf(item);
  const made = form({
    label: name, submit: name, cancel: () => close(), class: 'edit-small',
    fields: [{ label: 'Key', code: true, value: move ? item.row.key : item.row.key + '-copy' }],
    done: async (texts) => {
      const key = texts.Key ?? '';
      checkKey(key);
      if (key === item.row.key) throw new Error('This is the key it has.');
      const to = [...from.slice(0, -1), key];
      try {
        await desk.writer.copy(`${move ? 'the renaming' : 'the copy'} of ${join(from)}`, from, to, move);
      } catch (error) {
        if (error instanceof ApiError && error.status === 409) throw new Error(`The key ${key} already exists.`);
        throw error;
      }
      close();
      say(move ? `${join(from)} is now ${join(to)}.` : `${join(from)} was copied to ${join(to)}.`);
    },
  });
  const close = cover(desk, item.id, made.element);
}

/**
 * Deletes the selected rows. A leaf needs no question, an object does, and one that is
 * large wants its key typed.
 * @param {Desk} desk
 */
export async function remove(desk) {
  const items = desk.view.selection();
  if (!items) return complain(`At most ${several(maxSelected, 'row')} can be deleted at a time, and all of them have to be loaded. Select fewer, or delete the node that they are in.`);
  const [first] = items;
  if (!first) return;
  const states = await desk.writer.readAll(items.map(pathOf));
  const kept = states.every(({ before }) => before.text !== null);
  if ((items.length > 1 || first.row.type === 'object' || !kept) && !(await sure(items, kept))) return;
  const name = items.length > 1 ? several(items.length, 'node') : join(pathOf(first));
  for (const item of items) desk.view.tree.own.set(item.id, desk.view.tree.now() + 3000);
  const index = desk.view.tree.find(first.id);
  try {
    await desk.writer.remove(`the deletion of ${name}`, states);
    say(kept ? `${name} was deleted.` : `${name} was deleted. It was too large to keep for an undo.`);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 412) throw error;
    await ask({ label: 'Changed meanwhile', role: 'alertdialog', buttons: ['Close'], body: [h('p', null, `${name} was written by somebody else just now. Look at it, and delete it again if you still want to.`)] });
  }
  const near = desk.view.tree.item(Math.max(0, index - 1));
  if (near?.kind === 'row') desk.view.select(near.id);
  desk.view.focus();
}

/**
 * @param {RowItem[]} items
 * @param {boolean} kept
 */
async function sure(items, kept) {
  const [first] = items;
  if (!first) return false;
  const path = join(pathOf(first));
  const children = first.level === 1 ? first.place.count.count : (first.row.children ?? 0);
  const large = path === '/' || children > 1000 || Boolean(first.row.more);
  const word = path === '/' ? '/' : first.row.key;
  const input = h('input', { class: 'code', 'aria-label': `Type ${word} to confirm`, autocomplete: 'off' });
  const answer = await ask({
    label: 'Delete', role: 'alertdialog', buttons: ['Cancel', 'Delete'], danger: true,
    body: [
      items.length > 1 ? h('p', null, `Delete ${several(items.length, 'node')}, from `, marked(path, 'code'), ' on?')
        : h('p', null, 'Delete ', marked(path, 'code'), first.row.type === 'object' ? ` with ${first.row.more ? 'over ' : ''}${several(children, 'child', 'children')}?` : '?'),
      kept ? null : h('p', { class: 'warning' }, 'It is larger than 5 MB: there is no undo. Export it first.'),
      large ? h('label', { class: 'confirm' }, 'Type ', marked(word, 'code'), ' to confirm ', input) : null,
    ],
    ready: () => !large || input.value === word,
  });
  return answer === 'Delete';
}

/**
 * @param {Desk} desk
 * @param {RowItem} item
 */
export function importFile(desk, item) {
  const path = pathOf(item);
  const made = form({
    label: 'Import', submit: 'Import', cancel: () => close(), before: [h('p', null, 'JSON into ', marked(join(path), 'code'))],
    fields: [{ label: 'File', kind: 'file' }, { label: 'What is there', name: 'how', kind: 'radio', options: ['Merge', 'Replace'], value: 'Merge',
      hint: 'Merge keeps the keys that are not in the file.' }],
    done: async (texts, self) => {
      const file = /** @type {HTMLInputElement} */ (self.controls.File).files?.[0];
      if (!file) throw new Error('Choose a file.');
      if (file.size < 2_000_000) parse(await file.text());
      const before = await desk.writer.read(path);
      if (texts.how === 'Merge') await desk.writer.merge(`the import into ${join(path)}`, path, file, before);
      else await desk.writer.put(`the import into ${join(path)}`, path, file, before);
      close();
      say(`${file.name} was imported into ${join(path)}.`);
    },
  });
  const close = value.panel(made.element, () => desk.view.focus());
}
