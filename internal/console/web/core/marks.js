/**
 * Text of others, made visible.
 *
 * Control, bidi and zero-width characters are wrapped in elements of class odd, which
 * the style sheet draws as ⟨U+202E⟩; the text itself stays as it is.
 */

const odd = /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffc]|\u{e0001}|[\u{e0020}-\u{e007f}]/u;
const split = new RegExp(`(${odd.source})`, 'u');

/**
 * Puts a text into an element, with marks for what cannot be seen.
 * @param {Element} element
 * @param {string} text
 */
export function mark(element, text) {
  const only = element.firstChild;
  if (!odd.test(text)) {
    if (element.childNodes.length === 1 && only instanceof Text) {
      if (only.data !== text) only.data = text;
    } else element.replaceChildren(text);
    return;
  }
  if (element.textContent === text && element.querySelector('.odd')) return;
  element.replaceChildren(...text.split(split).filter((part) => part !== '').map((part) => {
    if (!odd.test(part)) return part;
    const span = document.createElement('span');
    span.className = 'odd';
    span.dataset.code = 'U+' + (part.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    span.textContent = part;
    return span;
  }));
}

/**
 * Makes an element with such a text.
 * @param {string} text
 * @param {string} [className]
 */
export function marked(text, className = '') {
  const span = document.createElement('span');
  if (className) span.className = className;
  mark(span, text);
  return span;
}
