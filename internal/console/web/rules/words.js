/** The words of a rules document, for colouring. Pure: a line in, parts of it out. */

const words = /\/\/.*|\/\*.*?(?:\*\/|$)|"(?:[^"\\]|\\.)*"?|\b(?:true|false|null)\b|-?\b[0-9][0-9.eE+-]*\b/g;
const inner = /\b(?:auth|data|newData|root|now|query|true|false|null)\b|\$[A-Za-z_]\w*|'(?:[^'\\]|\\.)*'|\/(?:[^/\\]|\\.)+\/i?|\b[0-9]+\b/g;

export const names = ['rule-comment', 'rule-key', 'rule-name', 'rule-text', 'rule-word', 'rule-number'];

/**
 * @param {string} line
 * @param {boolean} inside whether the line begins within a comment
 * @returns {{tokens: import('../core/editor.js').Token[], inside: boolean}}
 */
export function colour(line, inside) {
  /** @type {import('../core/editor.js').Token[]} */
  const tokens = [];
  let from = 0;
  if (inside) {
    const end = line.indexOf('*/');
    if (end < 0) return { tokens: [{ name: 'rule-comment', start: 0, end: line.length }], inside: true };
    from = end + 2;
    tokens.push({ name: 'rule-comment', start: 0, end: from });
  }
  words.lastIndex = from;
  for (let found = words.exec(line); found; found = words.exec(line)) {
    const [text] = found;
    const [start, end] = [found.index, found.index + text.length];
    if (text.startsWith('/')) {
      tokens.push({ name: 'rule-comment', start, end });
      if (text.startsWith('/*') && !text.endsWith('*/')) return { tokens, inside: true };
    } else if (!text.startsWith('"')) tokens.push({ name: /^[tfn]/.test(text) ? 'rule-word' : 'rule-number', start, end });
    else if (/^\s*:/.test(line.slice(end))) tokens.push({ name: text.startsWith('".') ? 'rule-name' : 'rule-key', start, end });
    else expression(text, start, tokens);
  }
  return { tokens, inside: false };
}

/**
 * @param {string} text
 * @param {number} start
 * @param {import('../core/editor.js').Token[]} tokens
 */
function expression(text, start, tokens) {
  inner.lastIndex = 0;
  for (let found = inner.exec(text); found; found = inner.exec(text)) {
    const name = /^['/]/.test(found[0]) ? 'rule-text' : /^[0-9]/.test(found[0]) ? 'rule-number' : 'rule-word';
    tokens.push({ name, start: start + found.index, end: start + found.index + found[0].length });
  }
}
