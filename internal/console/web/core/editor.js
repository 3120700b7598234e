/**
 * An editor for small texts with coloured words and marked problems.
 *
 * What is typed into is a textarea, so undo, input methods and screen readers work as
 * everywhere. Its letters are transparent; below it lies the same text, one node for
 * each line, coloured by ranges of the CSS Custom Highlight API. No markup is ever made
 * from the text. Where the browser has no highlights, the text is plain.
 */

import { h, fill, set } from './dom.js';
import { onEnd } from './signal.js';

/** @typedef {{name: string, start: number, end: number}} Token a part of a line */
/** @typedef {{line: number, column: number, message: string}} Problem both from 1 */

const linePixels = 20;

export class Editor {
  /**
   * @param {{label: string, words: (line: string, inside: boolean) => {tokens: Token[], inside: boolean}, names: string[], changed: (text: string) => void}} options
   *   words colours a line; inside is whether it begins within something that spans lines
   */
  constructor(options) {
    this.options = options;
    this.lines = h('div', { class: 'editor-lines', 'aria-hidden': 'true' });
    this.gutter = h('div', { class: 'editor-gutter', 'aria-hidden': 'true' });
    this.input = h('textarea', { class: 'editor-input', 'aria-label': options.label, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', wrap: 'off' });
    this.element = h('div', { class: 'editor code' }, this.gutter, h('div', { class: 'editor-stack' }, this.lines, this.input));
    /** @type {Problem[]} */
    this.problems = [];
    this.input.addEventListener('input', () => {
      this.draw();
      options.changed(this.text);
    });
    this.input.addEventListener('keydown', (event) => this.key(event));
    this.element.addEventListener('scroll', () => this.plan(), { passive: true });
    const resize = new ResizeObserver(() => this.plan());
    resize.observe(this.element);
    onEnd(() => {
      resize.disconnect();
      cancelAnimationFrame(this.frame);
      for (const name of this.names) CSS.highlights?.delete(name);
    });
  }

  frame = 0;

  get names() {
    return [...this.options.names, 'editor-problem', 'editor-bracket'];
  }

  /** The text that was put in and how the textarea has it, which knows one kind of line end only. */
  given = { text: '', shown: '' };

  /** The text: as it was given, to the byte, until something is typed; then with the line ends that it had. */
  get text() {
    const { text, shown } = this.given;
    if (this.input.value === shown) return text;
    return /\r\n/.test(text) && !/(^|[^\r])\n/.test(text) ? this.input.value.replaceAll('\n', '\r\n') : this.input.value;
  }

  set text(text) {
    this.input.value = text;
    this.given = { text, shown: this.input.value };
    this.draw();
  }

  /** Draws the lines again, touching only those that differ. */
  draw() {
    const texts = this.input.value.split('\n');
    while (this.lines.childElementCount > texts.length) this.lines.lastElementChild?.remove();
    while (this.lines.childElementCount < texts.length) this.lines.append(h('div', null, ''));
    for (const [i, text] of texts.entries()) {
      const line = this.lines.children[i];
      if (line && line.textContent !== text) line.textContent = text;
      if (line?.hasAttribute('data-note')) this.note(new Map());
    }
    if (this.gutter.childElementCount !== texts.length) fill(this.gutter, ...texts.map((_, i) => h('div', null, String(i + 1))));
    this.plan();
  }

  plan() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.color();
    });
  }

  /** Colours the lines in sight. */
  color() {
    if (!CSS.highlights) return;
    const first = Math.max(0, Math.floor(this.element.scrollTop / linePixels) - 20);
    const last = Math.min(this.lines.childElementCount - 1, first + Math.ceil(this.element.clientHeight / linePixels) + 40);
    /** @type {Map<string, Highlight>} */
    const found = new Map(this.names.map((name) => [name, new Highlight()]));
    let inside = false;
    for (let i = 0; i <= last; i++) {
      const node = this.lines.children[i]?.firstChild;
      const line = node?.nodeValue ?? '';
      const words = this.options.words(line, inside);
      inside = words.inside;
      if (i < first || !node) continue;
      for (const token of words.tokens) found.get(token.name)?.add(range(node, token.start, token.end));
    }
    for (const problem of this.problems) {
      const node = this.lines.children[problem.line - 1]?.firstChild;
      const length = node?.nodeValue?.length ?? 0;
      if (node && length > 0) found.get('editor-problem')?.add(range(node, Math.min(problem.column - 1, length - 1), wordEnd(node.nodeValue ?? '', problem.column - 1)));
    }
    for (const [name, highlight] of found) CSS.highlights.set(name, highlight);
  }

  /**
   * Marks problems in the text and beside it.
   * @param {Problem[]} problems
   */
  mark(problems) {
    this.problems = problems;
    const bad = new Set(problems.map((problem) => problem.line));
    for (const [i, line] of [...this.gutter.children].entries()) line.toggleAttribute('data-problem', bad.has(i + 1));
    this.plan();
  }

  /**
   * Writes notes after lines, by their number from 1, until the text changes. They are drawn
   * by the style sheet: the text of a line stays its whole content.
   * @param {Map<number, {text: string, reach: string}>} notes
   */
  note(notes) {
    for (const [i, line] of [...this.lines.children].entries()) {
      set(line, 'data-note', notes.get(i + 1)?.text);
      set(line, 'data-reach', notes.get(i + 1)?.reach);
    }
  }

  /**
   * Puts the cursor at a line and column, both from 1.
   * @param {number} line
   * @param {number} column
   */
  go(line, column) {
    const texts = this.input.value.split('\n');
    const at = texts.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0) + Math.min(column - 1, texts[line - 1]?.length ?? 0);
    this.input.focus({ preventScroll: true });
    this.input.setSelectionRange(at, at);
    this.element.scrollTop = Math.max(0, (line - 1) * linePixels - this.element.clientHeight / 2);
  }

  /**
   * Enter keeps the margin of the line, one step deeper after a bracket.
   * @param {KeyboardEvent} event
   */
  key(event) {
    if (event.key !== 'Enter' || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const before = this.input.value.slice(0, this.input.selectionStart);
    const line = before.slice(before.lastIndexOf('\n') + 1);
    const margin = (/^[ \t]*/.exec(line)?.[0] ?? '') + (/[{[]\s*$/.test(line) ? '  ' : '');
    event.preventDefault();
    // The old command is the one way that the browser's undo knows of.
    if (!document.execCommand('insertText', false, '\n' + margin)) this.input.setRangeText('\n' + margin, this.input.selectionStart, this.input.selectionEnd, 'end');
  }
}

/**
 * @param {Node} node
 * @param {number} start
 * @param {number} end
 */
function range(node, start, end) {
  const length = node.nodeValue?.length ?? 0;
  const made = new Range();
  made.setStart(node, Math.max(0, Math.min(start, length)));
  made.setEnd(node, Math.min(end, length));
  return made;
}

/**
 * @param {string} line
 * @param {number} at
 */
function wordEnd(line, at) {
  const word = /[\w$.'"]*/y;
  word.lastIndex = Math.min(at, line.length);
  word.exec(line);
  return Math.max(at + 1, word.lastIndex);
}
