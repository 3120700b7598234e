/**
 * Forms: labelled fields, one submit, errors inside, text that is kept.
 *
 * A form is told what to do with its fields' texts. While that runs its button
 * is disabled; when it fails the error is shown inside the form and the texts stay.
 */

import { h, fill } from './dom.js';

/**
 * @typedef {object} Field
 * @property {string} label the accessible name
 * @property {string} [name] how it is called in the texts; the label if absent
 * @property {'text' | 'area' | 'select' | 'password' | 'file' | 'radio' | 'search' | 'number' | 'checkbox'} [kind]
 * @property {string} [value]
 * @property {string[]} [options] of a select or of radios
 * @property {string} [hint]
 * @property {boolean} [code] shown in the font of code
 * @property {string} [autocomplete]
 * @property {string[]} [suggestions]
 */

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Control */

/**
 * @typedef {object} FormOptions
 * @property {string} label
 * @property {Field[]} fields
 * @property {string} submit the name of the button
 * @property {(texts: Record<string, string>, form: Form) => unknown} done
 * @property {() => void} [cancel] called for Escape and for the button Cancel, which is there if this is
 * @property {string} [class]
 * @property {import('./dom.js').Child[]} [before]
 */

/** @typedef {{element: HTMLFormElement, controls: Record<string, Control>, fail(text: string): void, texts(): Record<string, string>, note: HTMLElement, button: HTMLButtonElement}} Form */

let made = 0;

/**
 * @param {FormOptions} options
 * @returns {Form}
 */
export function form(options) {
  /** @type {Record<string, Control>} */
  const controls = {};
  const alert = h('div', { role: 'alert', class: 'form-error' });
  const note = h('div', { class: 'form-note' });
  const button = h('button', { type: 'submit', class: 'primary' }, options.submit);
  const cancel = options.cancel && h('button', { type: 'button', on: { click: options.cancel } }, 'Cancel');
  const element = h('form', { 'aria-label': options.label, class: 'form ' + (options.class ?? ''), novalidate: true, autocomplete: 'off' },
    ...(options.before ?? []), ...options.fields.map((field) => row(field, controls)), note, alert,
    h('div', { class: 'buttons' }, cancel, button));
  /** @type {Form} */
  const self = {
    element, controls, note, button,
    fail: (text) => fill(alert, text),
    texts: () => texts(element, options.fields, controls),
  };
  const run = async () => {
    if (button.disabled) return;
    fill(alert);
    button.disabled = true;
    try {
      await options.done(self.texts(), self);
    } catch (error) {
      self.fail(error instanceof Error ? error.message : String(error));
    } finally {
      button.disabled = false;
    }
  };
  element.addEventListener('submit', (event) => {
    event.preventDefault();
    run();
  });
  element.addEventListener('keydown', (event) => keys(event, run, options.cancel));
  return self;
}

/**
 * Enter in a one-line field submits by itself; in an area it does so unless Shift is
 * held or the text has several lines, and Ctrl+Enter always does.
 * @param {KeyboardEvent} event
 * @param {() => void} run
 * @param {(() => void) | undefined} cancel
 */
function keys(event, run, cancel) {
  if (event.isComposing) return;
  if (event.key === 'Escape' && cancel) {
    event.preventDefault();
    event.stopPropagation();
    cancel();
  } else if (event.key === 'Enter' && event.target instanceof HTMLTextAreaElement) {
    const several = event.target.value.includes('\n');
    if (event.shiftKey || (several && !event.ctrlKey && !event.metaKey)) return;
    event.preventDefault();
    run();
  }
}

/**
 * @param {Field} field
 * @param {Record<string, Control>} controls
 * @returns {HTMLElement}
 */
function row(field, controls) {
  if (field.kind === 'radio') return radios(field);
  const id = `field-${++made}`;
  const control = make(field, id);
  controls[field.name ?? field.label] = control;
  const hint = field.hint ? h('span', { class: 'hint', id: id + '-hint' }, field.hint) : null;
  if (hint) control.setAttribute('aria-describedby', hint.id);
  const list = field.suggestions && h('datalist', { id: id + '-list' }, ...field.suggestions.map((text) => h('option', { value: text })));
  if (list) control.setAttribute('list', list.id);
  return h('div', { class: 'field field-' + (field.kind ?? 'text') }, h('label', { for: id }, field.label), control, list, hint);
}

/**
 * @param {Field} field
 * @param {string} id
 * @returns {Control}
 */
function make(field, id) {
  const props = { id, name: field.name ?? field.label, class: field.code ? 'code' : '', spellcheck: 'false', autocapitalize: 'off', autocomplete: field.autocomplete ?? 'off' };
  switch (field.kind) {
    case 'select': {
      const select = h('select', props, ...(field.options ?? []).map((option) => h('option', { value: option }, option)));
      if (field.value !== undefined) select.value = field.value;
      return select;
    }
    case 'area': return h('textarea', { ...props, rows: '3', value: field.value ?? '' });
    case 'checkbox': return h('input', { ...props, type: 'checkbox', checked: field.value === 'true' });
    case 'file': return h('input', { ...props, type: 'file' });
    case 'number': return h('input', { ...props, type: 'text', inputmode: 'numeric', value: field.value ?? '' });
    default: return h('input', { ...props, type: field.kind ?? 'text', value: field.value ?? '' });
  }
}

/** @param {Field} field @returns {HTMLElement} */
function radios(field) {
  const name = field.name ?? field.label;
  return h('fieldset', { class: 'field field-radio' }, h('legend', null, field.label),
    ...(field.options ?? []).map((option) =>
      h('label', null, h('input', { type: 'radio', name, value: option, checked: option === field.value }), ' ', option)));
}

/**
 * @param {HTMLFormElement} element
 * @param {Field[]} fields
 * @param {Record<string, Control>} controls
 */
function texts(element, fields, controls) {
  /** @type {Record<string, string>} */
  const found = {};
  for (const field of fields) {
    const name = field.name ?? field.label;
    if (field.kind === 'radio') {
      const chosen = element.querySelector(`input[name="${CSS.escape(name)}"]:checked`);
      found[name] = chosen instanceof HTMLInputElement ? chosen.value : '';
    } else if (field.kind === 'checkbox') found[name] = String(/** @type {HTMLInputElement} */ (controls[name]).checked);
    else found[name] = controls[name]?.value ?? '';
  }
  return found;
}
