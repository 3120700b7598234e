/**
 * Elements without markup.
 *
 * h makes an element; what it is given reaches the page as text nodes and
 * attributes only, so no text can become markup. A property or child that is a
 * function is an effect: it is set again when a signal that it reads changes.
 * Addresses of links are checked: they stay within this origin.
 */

import { effect } from './signal.js';

/** @typedef {string | number | boolean | null | undefined} Plain */
/** @typedef {Node | Plain | Child[] | (() => Node | Plain)} Child */
/** @typedef {Record<string, any>} Props */

/**
 * Makes an element. Properties: `on` is a map of listeners, `class` a text,
 * `to` the address of a link inside the page, `data` a map of data attributes;
 * `value`, `checked`, `disabled`, `selected`, `hidden`, `readOnly` and `tabIndex`
 * are set as properties, and everything else is an attribute.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name === 'on') listen(element, value);
    else if (name === 'data') for (const [key, text] of Object.entries(value)) bind(element, 'data-' + key, text);
    else bind(element, name, value);
  }
  append(element, children);
  return element;
}

/**
 * @param {Element} element
 * @param {Record<string, (event: any) => void>} listeners
 */
function listen(element, listeners) {
  for (const [type, listener] of Object.entries(listeners)) element.addEventListener(type, listener);
}

/**
 * @param {Element} element
 * @param {string} name
 * @param {any} value
 */
function bind(element, name, value) {
  if (typeof value === 'function') effect(() => set(element, name, value()));
  else set(element, name, value);
}

const properties = new Set(['value', 'checked', 'disabled', 'selected', 'hidden', 'readOnly', 'tabIndex']);

/**
 * Sets one attribute or property; null, undefined and false take an attribute away.
 * @param {any} element
 * @param {string} name
 * @param {any} value
 */
export function set(element, name, value) {
  if (name === 'to') return address(element, value);
  if (/^(on|href$|src$|style$|srcdoc$|action$|formaction$)/i.test(name)) throw new Error('not by attribute: ' + name);
  if (properties.has(name)) {
    if (element[name] !== value) element[name] = value;
  } else if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value === true ? '' : String(value));
}

/**
 * Gives a link an address, which has to be one of this origin.
 * @param {Element} element
 * @param {string | null} to
 */
function address(element, to) {
  if (to === null) return element.removeAttribute('href');
  if (!/^\/(?![/\\])/.test(to)) throw new Error('not an address of this page');
  element.setAttribute('href', to); // lint: checked above
}

/**
 * Adds children. A function is redrawn in its place.
 * @param {Element | DocumentFragment} parent
 * @param {Child[]} children
 */
export function append(parent, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(parent, child);
    else if (typeof child === 'function') parent.append(...follow(child));
    else if (child !== null && child !== undefined && child !== false && child !== true) parent.append(node(child));
  }
}

/**
 * @param {() => Node | Plain} child
 * @returns {Node[]}
 */
function follow(child) {
  const end = document.createComment('');
  /** @type {ChildNode} */
  let shown = document.createTextNode('');
  effect(() => {
    const value = child();
    if (!(value instanceof Node) && shown instanceof Text) {
      const text = plain(value);
      if (shown.data !== text) shown.data = text;
      return;
    }
    const next = /** @type {ChildNode} */ (node(value));
    shown.replaceWith(next);
    shown = next;
  });
  return [shown, end];
}

/** @param {any} value @returns {Node} */
function node(value) {
  return value instanceof Node ? value : document.createTextNode(plain(value));
}

/** @param {any} value @returns {string} */
function plain(value) {
  return value === null || value === undefined || value === false || value === true ? '' : String(value);
}

/**
 * Replaces all that is in an element.
 * @param {Element} parent
 * @param {...Child} children
 */
export function fill(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
}

const svg = 'http://www.w3.org/2000/svg';

/**
 * Makes a drawing of 16 by 16 out of the path data of strokes.
 * @param {string} strokes
 * @returns {SVGSVGElement}
 */
export function icon(strokes) {
  const image = document.createElementNS(svg, 'svg');
  for (const [name, value] of Object.entries({ viewBox: '0 0 16 16', width: '16', height: '16', 'aria-hidden': 'true', class: 'icon' })) {
    image.setAttribute(name, value);
  }
  const path = document.createElementNS(svg, 'path');
  path.setAttribute('d', strokes);
  image.append(path);
  return image;
}
