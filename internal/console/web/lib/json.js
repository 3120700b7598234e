/**
 * JSON as text.
 *
 * JSON.parse rounds large integers and sorts keys that look like numbers to the
 * front. Here the text of a number stays the text, and an object is a list of its
 * children in the order in which they were written.
 */

/**
 * A piece of JSON. A leaf has its text as it was written; an object its children by
 * key, an array those without.
 * @typedef {{type: 'string' | 'number' | 'boolean' | 'null', text: string} |
 *   {type: 'object', children: [string, Json][]} |
 *   {type: 'array', children: [string, Json][]}} Json
 */

const maxDepth = 200;
const numberText = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;
const stringText = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const space = /[ \t\n\r]*/y;

/** What is wrong with a text, and where. */
export class JsonError extends Error {
  /**
   * @param {string} message
   * @param {string} text
   * @param {number} at
   */
  constructor(message, text, at) {
    const before = text.slice(0, at).split('\n');
    super(`${message} (line ${before.length}, column ${(before.at(-1) ?? '').length + 1})`);
  }
}

/**
 * Reads one JSON text.
 * @param {string} text
 * @returns {Json}
 */
export function parse(text) {
  const reader = new Reader(text);
  const value = reader.value(0);
  reader.skip();
  if (reader.at < text.length) throw new JsonError('There is more after the end of the value', text, reader.at);
  return value;
}

class Reader {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  skip() {
    space.lastIndex = this.at;
    space.exec(this.text);
    this.at = space.lastIndex;
  }

  /** @param {string} message @returns {never} */
  fail(message) {
    throw new JsonError(message, this.text, this.at);
  }

  /** @param {RegExp} pattern @returns {string | null} */
  take(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (!found) return null;
    this.at = pattern.lastIndex;
    return found[0];
  }

  /** @param {number} depth @returns {Json} */
  value(depth) {
    if (depth > maxDepth) this.fail('This is nested too deeply');
    this.skip();
    const first = this.text[this.at];
    if (first === '{') return { type: 'object', children: this.children('}', depth) };
    if (first === '[') return { type: 'array', children: this.children(']', depth) };
    return this.leaf();
  }

  /** @returns {Json} */
  leaf() {
    for (const word of ['true', 'false', 'null']) {
      if (!this.text.startsWith(word, this.at)) continue;
      this.at += word.length;
      return { type: word === 'null' ? 'null' : 'boolean', text: word };
    }
    const string = this.take(stringText);
    if (string !== null) return { type: 'string', text: string };
    const number = this.take(numberText);
    if (number) return { type: 'number', text: number };
    return this.fail(this.at < this.text.length ? 'A JSON value must begin here: texts need double quotes' : 'The value is not complete');
  }

  /**
   * @param {'}' | ']'} end
   * @param {number} depth
   * @returns {[string, Json][]}
   */
  children(end, depth) {
    this.at++;
    this.skip();
    /** @type {[string, Json][]} */
    const found = [];
    if (this.text[this.at] === end) {
      this.at++;
      return found;
    }
    for (;;) {
      const key = end === '}' ? this.key() : String(found.length);
      found.push([key, this.value(depth + 1)]);
      this.skip();
      const next = this.text[this.at];
      if (next !== ',' && next !== end) this.fail(`Here must be a comma or ${end}`);
      this.at++;
      if (next === end) return found;
    }
  }

  /** @returns {string} */
  key() {
    this.skip();
    const text = this.take(stringText);
    if (text === null) return this.fail('Here must be a key in double quotes');
    this.skip();
    if (this.text[this.at] !== ':') this.fail('Here must be a colon');
    this.at++;
    return JSON.parse(text);
  }
}

/**
 * Prints JSON on one line, or indented.
 * @param {Json} value
 * @param {boolean} [indented]
 * @returns {string}
 */
export function print(value, indented = false, margin = '') {
  if (!('children' in value)) return value.text;
  const [open, close] = value.type === 'object' ? ['{', '}'] : ['[', ']'];
  if (value.children.length === 0) return open + close;
  const inner = margin + '  ';
  const parts = value.children.map(([key, child]) => {
    const name = value.type === 'object' ? JSON.stringify(key) + (indented ? ': ' : ':') : '';
    return (indented ? inner : '') + name + print(child, indented, inner);
  });
  return indented ? `${open}\n${parts.join(',\n')}\n${margin}${close}` : open + parts.join(',') + close;
}

/**
 * Indents JSON text; text that cannot be read is returned as it is.
 * @param {string} text
 */
export function pretty(text) {
  try {
    return print(parse(text), true);
  } catch {
    return text;
  }
}

/** @typedef {'string' | 'number' | 'boolean' | 'json'} FieldType */

/**
 * The JSON text for what was typed into a field of a chosen type.
 * @param {FieldType} type
 * @param {string} text
 * @returns {string}
 */
export function typed(type, text) {
  const trimmed = text.trim();
  switch (type) {
    case 'string': return JSON.stringify(text);
    case 'number': {
      numberText.lastIndex = 0;
      if (!numberText.test(trimmed) || numberText.lastIndex !== trimmed.length) throw new Error('This is not a number. Write it as 42, -1.5 or 1e9.');
      return trimmed;
    }
    case 'boolean':
      if (trimmed !== 'true' && trimmed !== 'false') throw new Error('A boolean is true or false.');
      return trimmed;
    default: return print(parse(text));
  }
}

/**
 * The type of a JSON text, and how a field shows it.
 * @param {string} text
 * @returns {{type: FieldType, text: string}}
 */
export function field(text) {
  if (text.startsWith('"')) return { type: 'string', text: JSON.parse(text) };
  if (text === 'true' || text === 'false') return { type: 'boolean', text };
  if (/^[-0-9]/.test(text)) return { type: 'number', text };
  return { type: 'json', text: pretty(text) };
}
