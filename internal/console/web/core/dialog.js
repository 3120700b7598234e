/**
 * Dialogs, messages and menus.
 *
 * ask opens a dialog and promises what was chosen: the name of a button, or null when
 * it was dismissed. say shows a message for some seconds, complain an error until it
 * is closed. Both are read out by screen readers.
 */

import { h, fill } from './dom.js';

/**
 * Opens a dialog with buttons. The first button is the one that does nothing.
 * @param {{label: string, role?: string, body: import('./dom.js').Child[], buttons: string[], danger?: boolean, wide?: boolean,
 *   ready?: () => boolean, opened?: (dialog: HTMLDialogElement, check: () => void) => void}} options
 * @returns {Promise<string | null>}
 */
export function ask(options) {
  const back = document.activeElement;
  const title = h('h2', null, options.label);
  /** @type {(answer: string | null) => void} */
  let answer = () => {};
  /** @type {Promise<string | null>} */
  const answered = new Promise((resolve) => (answer = resolve));
  const buttons = options.buttons.map((name, index) =>
    h('button', { type: 'button', class: index === 0 ? '' : options.danger ? 'danger' : 'primary', on: { click: () => close(name) } }, name));
  const dialog = h('dialog', { 'aria-label': options.label, role: options.role ?? 'dialog', class: options.wide ? 'wide' : '' },
    title, h('div', { class: 'dialog-body' }, ...options.body), h('div', { class: 'buttons' }, ...buttons));
  /** @param {string | null} name */
  const close = (name) => {
    dialog.remove();
    if (back instanceof HTMLElement && back.isConnected) back.focus();
    answer(name);
  };
  const check = () => {
    const ready = options.ready?.() ?? true;
    buttons.forEach((button, index) => (button.disabled = index > 0 && !ready));
  };
  dialog.addEventListener('cancel', (event) => {
    event.preventDefault();
    close(null);
  });
  dialog.addEventListener('input', check);
  document.body.append(dialog);
  dialog.showModal();
  check();
  options.opened?.(dialog, check);
  return answered;
}

/** The place for messages, which the page puts into its body once. */
export const messages = h('div', { class: 'messages' });
const status = h('div', { role: 'status', class: 'message-list' });
const alerts = h('div', { class: 'message-list' });
messages.append(status, alerts);

/**
 * Shows a message for some seconds.
 * @param {string} text
 */
export function say(text) {
  const line = h('div', { class: 'message' }, text);
  while (status.childElementCount > 2) status.firstElementChild?.remove();
  status.append(line);
  setTimeout(() => line.remove(), 6000);
}

/**
 * Shows an error until it is closed.
 * @param {string} text
 */
export function complain(text) {
  for (const old of alerts.children) if (old.firstChild?.textContent === text) old.remove();
  const line = h('div', { class: 'message error', role: 'alert' }, h('span', null, text),
    h('button', { type: 'button', class: 'quiet', 'aria-label': 'Dismiss', on: { click: () => line.remove() } }, '×'));
  while (alerts.childElementCount > 2) alerts.firstElementChild?.remove();
  alerts.append(line);
}

/** Takes all errors away. */
export function forgive() {
  alerts.replaceChildren();
}

/**
 * Makes a button that opens a menu of actions.
 * @param {string} name
 * @param {() => [string, () => void][]} actions
 * @returns {HTMLElement}
 */
export function menu(name, actions) {
  const list = h('div', { class: 'menu', popover: 'auto', role: 'menu', 'aria-label': name });
  const button = h('button', { type: 'button', 'aria-haspopup': 'menu' }, name, ' ▾');
  button.popoverTargetElement = list;
  list.addEventListener('beforetoggle', (event) => {
    if (/** @type {ToggleEvent} */ (event).newState !== 'open') return;
    fill(list, ...actions().map(([label, act]) =>
      h('button', { type: 'button', role: 'menuitem', on: { click: () => (list.hidePopover(), act()) } }, label)));
    const box = button.getBoundingClientRect();
    list.style.left = Math.max(8, Math.min(box.left, innerWidth - 200)) + 'px';
    list.style.bottom = innerHeight - box.top + 4 + 'px';
  });
  list.addEventListener('keydown', (event) => {
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
    event.preventDefault();
    const items = /** @type {HTMLElement[]} */ ([...list.children]);
    const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    items[(at + (event.key === 'ArrowDown' ? 1 : items.length - 1)) % items.length]?.focus();
  });
  return h('span', { class: 'menu-holder' }, button, list);
}
