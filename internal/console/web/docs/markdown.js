/**
 * As much of Markdown as the manual uses: headings, paragraphs, lists, tables and code.
 * It is read into plain pieces; what they look like is decided elsewhere.
 */

/**
 * @typedef {{kind: 'heading', level: number, text: string} | {kind: 'code', text: string} | {kind: 'list', items: Block[][]} |
 *   {kind: 'table', rows: string[][]} | {kind: 'text', text: string}} Block
 */

/** @typedef {{kind: 'text' | 'code' | 'strong', text: string} | {kind: 'link', text: string, to: string}} Part */

/** What an item of a list begins with. */
const mark = /^([-*]|\d+\.) +/;

/**
 * @param {string} text
 * @returns {Block[]}
 */
export function blocks(text) {
  /** @type {Block[]} */
  const found = [];
  const lines = text.split('\n');
  for (let i = 0; i < lines.length;) {
    const line = lines[i] ?? '';
    const start = i;
    if (line.trim() === '') i++;
    else if (line.startsWith('```')) {
      for (i++; i < lines.length && !lines[i]?.startsWith('```');) i++;
      found.push({ kind: 'code', text: lines.slice(start + 1, i).join('\n') });
      i++;
    } else if (/^#{1,6} /.test(line)) {
      found.push({ kind: 'heading', level: line.indexOf(' '), text: line.replace(/^#+ /, '') });
      i++;
    } else if (line.startsWith('|')) {
      while (lines[i]?.startsWith('|')) i++;
      found.push({ kind: 'table', rows: lines.slice(start, i).filter((row) => !/^\|[\s|:-]+$/.test(row)).map(cells) });
    } else if (line.startsWith('<!--')) {
      while (i < lines.length && !lines[i]?.includes('-->')) i++; // is for programs
      i++;
    } else if (line.startsWith('    ')) {
      while (lines[i]?.startsWith('    ')) i++;
      found.push({ kind: 'code', text: lines.slice(start, i).map((one) => one.slice(4)).join('\n') });
    } else if (mark.test(line)) {
      while (i < lines.length && (mark.test(lines[i] ?? '') || /^ +\S/.test(lines[i] ?? '') || lines[i] === '' && /^( +\S|([-*]|\d+\.) )/.test(lines[i + 1] ?? ''))) i++;
      found.push({ kind: 'list', items: lines.slice(start, i).join('\n').split(/\n(?=(?:[-*]|\d+\.) )/).map(inside) });
    } else {
      for (i++; i < lines.length && !/^(\s*$|```|#{1,6} |\||[-*] |1\. |<!--)/.test(lines[i] ?? '');) i++;
      found.push({ kind: 'text', text: lines.slice(start, i).join(' ') });
    }
  }
  return found;
}

/** @param {string} item */
function inside(item) {
  const width = mark.exec(item)?.[0].length ?? 0;
  const indent = new RegExp(`\\n {1,${width}}`, 'g');
  return blocks(item.slice(width).replace(indent, '\n'));
}

/** @param {string} row */
function cells(row) {
  return row.replace(/^\||\|\s*$/g, '').split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
}

/**
 * @param {string} text
 * @returns {Part[]}
 */
export function inline(text) {
  /** @type {Part[]} */
  const parts = [];
  const special = /`([^`]+)`|\*\*([^*]+)\*\*|!?\[([^\]]+)\]\(([^)\s]+)\)/g;
  let at = 0;
  for (let found = special.exec(text); found; found = special.exec(text)) {
    if (found.index > at) parts.push({ kind: 'text', text: text.slice(at, found.index) });
    if (found[1] !== undefined) parts.push({ kind: 'code', text: found[1] });
    else if (found[2] !== undefined) parts.push({ kind: 'strong', text: found[2] });
    else parts.push({ kind: 'link', text: found[3] ?? '', to: found[4] ?? '' });
    at = special.lastIndex;
  }
  if (at < text.length) parts.push({ kind: 'text', text: text.slice(at) });
  return parts;
}
