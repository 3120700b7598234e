/**
 * Rules as text: finds places in a document with comments, and adds an index without
 * touching anything else.
 */

/** @typedef {{key: string, start: number, value: Piece}} Member */
/** @typedef {{start: number, end: number, members: Member[] | null}} Piece */

/**
 * Reads where the pieces of a document are. Texts and lists have no members.
 * @param {string} text
 * @returns {Piece}
 */
export function locate(text) {
  const scanner = new Scanner(text);
  return scanner.value(0);
}

class Scanner {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  skip() {
    const blank = /(?:[\s]+|\/\/[^\n]*|\/\*[^]*?\*\/)*/y;
    blank.lastIndex = this.at;
    blank.exec(this.text);
    this.at = blank.lastIndex;
  }

  /** @returns {string} */
  string() {
    const quoted = /"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'/y;
    quoted.lastIndex = this.at;
    const found = quoted.exec(this.text);
    if (!found) throw new Error('The rules cannot be read.');
    this.at = quoted.lastIndex;
    return found[0];
  }

  /** @param {number} depth @returns {Piece} */
  value(depth) {
    this.skip();
    const start = this.at;
    const first = this.text[this.at];
    if (depth > 100) throw new Error('The rules are nested too deeply.');
    if (first === '{') return { start, members: this.members(depth), end: this.at };
    if (first === '"' || first === "'") this.string();
    else if (first === '[') this.list();
    else this.word();
    return { start, end: this.at, members: null };
  }

  word() {
    const word = /[^\s,}\]/]+/y;
    word.lastIndex = this.at;
    if (!word.exec(this.text)) throw new Error('The rules cannot be read.');
    this.at = word.lastIndex;
  }

  list() {
    for (this.at++; this.at < this.text.length;) {
      this.skip();
      const c = this.text[this.at];
      if (c === ']') return void this.at++;
      if (c === ',') this.at++;
      else if (c === '"' || c === "'") this.string();
      else this.word();
    }
    throw new Error('The rules cannot be read.');
  }

  /** @param {number} depth @returns {Member[]} */
  members(depth) {
    /** @type {Member[]} */
    const found = [];
    for (this.at++; this.at < this.text.length;) {
      this.skip();
      const c = this.text[this.at];
      if (c === '}') {
        this.at++;
        return found;
      }
      if (c === ',') {
        this.at++;
        continue;
      }
      const start = this.at;
      const key = this.string();
      this.skip();
      if (this.text[this.at] !== ':') throw new Error('The rules cannot be read.');
      this.at++;
      found.push({ key: unquote(key), start, value: this.value(depth + 1) });
    }
    throw new Error('The rules cannot be read.');
  }
}

/** @param {string} text */
function unquote(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text.slice(1, -1);
  }
}

/**
 * The document with one more index at a path.
 * @param {string} text
 * @param {string[]} path
 * @param {string} index
 * @returns {string}
 */
export function addIndex(text, path, index) {
  const rules = locate(text).members?.find((member) => member.key === 'rules')?.value;
  if (!rules?.members) throw new Error('The document has no "rules".');
  let piece = rules;
  let left = [...path];
  while (left.length > 0) {
    /** @type {Member | undefined} */
    const next = piece.members?.find((member) => member.key === left[0]) ?? piece.members?.find((member) => member.key.startsWith('$'));
    if (!next?.value.members) break;
    piece = next.value;
    left.shift();
  }
  const old = left.length === 0 ? piece.members?.find((member) => member.key === '.indexOn') : undefined;
  if (old) return text.slice(0, old.value.start) + joined(text.slice(old.value.start, old.value.end), index) + text.slice(old.value.end);
  const margin = indent(text, piece);
  return text.slice(0, piece.start + 1) + '\n' + insertion(left, index, margin) + ((piece.members?.length ?? 0) > 0 ? ',' : '') + rest(text, piece, margin);
}

/**
 * What follows the new member: the old ones, which begin on a line of their own.
 * @param {string} text
 * @param {Piece} piece
 * @param {string} margin
 */
function rest(text, piece, margin) {
  const after = text.slice(piece.start + 1);
  const breaks = /^[ \t]*(?:\/\/[^\n]*)?\r?\n/.test(after);
  if (breaks) return after;
  return '\n' + ((piece.members?.length ?? 0) > 0 ? margin : margin.slice(2)) + after.replace(/^[ \t]+/, '');
}

/**
 * @param {string[]} path
 * @param {string} index
 * @param {string} margin
 * @returns {string}
 */
function insertion(path, index, margin) {
  const [key, ...deeper] = path;
  if (key === undefined) return `${margin}".indexOn": ${JSON.stringify(index)}`;
  return `${margin}${JSON.stringify(key)}: {\n${insertion(deeper, index, margin + '  ')}\n${margin}}`;
}

/**
 * @param {string} value a text or a list of texts
 * @param {string} index
 */
function joined(value, index) {
  const name = JSON.stringify(index);
  if (!value.startsWith('[')) return `[${value}, ${name}]`;
  const inner = value.slice(1, -1).replace(/,?\s*$/, '');
  return inner.trim() === '' ? `[${name}]` : `[${inner}, ${name}]`;
}

/**
 * The margin of the members of an object.
 * @param {string} text
 * @param {Piece} piece
 */
function indent(text, piece) {
  const first = piece.members?.[0];
  const at = first ? first.start : piece.start;
  const line = text.slice(text.lastIndexOf('\n', at - 1) + 1, at);
  const margin = /^[ \t]*/.exec(line)?.[0] ?? '';
  return first && margin === line ? margin : (/^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', piece.start - 1) + 1))?.[0] ?? '') + '  ';
}
