// Looks for what the page must not have: ways by which a text could become markup or
// code, links made from data, foreign addresses, and files that are too long. Prints
// what it finds and fails.

import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const web = join(dirname(fileURLToPath(import.meta.url)), '../web');

/** What must not be there, and why. A line with `lint:` gives its reason itself. */
export const forbidden = [
  [/\.(innerHTML|outerHTML|srcdoc)\b/, 'text becomes markup'],
  [/\b(insertAdjacentHTML|createContextualFragment|setHTMLUnsafe|parseHTMLUnsafe|DOMParser)\b/, 'text becomes markup'],
  [/\bdocument\.write/, 'text becomes markup'],
  [/\beval\s*\(|new\s+Function\b|set(Timeout|Interval)\s*\(\s*['"`]/, 'text becomes code'],
  [/\.(href|src)\s*=|setAttribute\(\s*['"](href|src|style|on\w+)['"]|\.style\s*=|cssText/, 'an address or style from data: use the property to of h, or CSSOM'],
  [/\blocation\s*=|location\.(assign|replace)\s*\(|window\.open/, 'an address from data'],
  [/https?:\/\/(?!127\.0\.0\.1|www\.w3\.org\/2000\/svg)/, 'a foreign address'],
  [/document\.cookie/, 'the console has no cookies'],
  [/localStorage\.setItem\((?!themeName)/, 'only the theme may be kept there'],
];

/** What is wrong with a file, as lines of text. */
export function lint(name, text) {
  const found = [];
  const lines = text.split('\n');
  const most = name.startsWith('core/') ? 200 : 400;
  if (name.endsWith('.js') && lines.length > most) found.push(`${name}: ${lines.length} lines, at most ${most}`);
  for (const [index, line] of lines.entries()) {
    if (/\blint: /.test(line) || /^\s*(\*|\/\/|\/\*)/.test(line)) continue;
    for (const [pattern, why] of forbidden) if (name.endsWith('.js') && pattern.test(line)) found.push(`${name}:${index + 1}: ${why}: ${line.trim().slice(0, 100)}`);
  }
  if (name.startsWith('core/')) for (const [, from] of text.matchAll(/^import .* from '([^']+)'/gm)) if (!from.startsWith('./')) found.push(`${name}: imports ${from}: core stands alone`);
  if (name.startsWith('lib/')) for (const [, from] of text.matchAll(/^import .* from '([^']+)'/gm)) if (!from.startsWith('./')) found.push(`${name}: imports ${from}: lib knows lib only`);
  if (name.startsWith('lib/') && /\bdocument\./.test(text)) found.push(`${name}: touches the page`);
  if (name.endsWith('.html') && /<style|\son\w+=|style=|<script(?![^>]*\bsrc=)/i.test(text)) found.push(`${name}: inline script, style or handler`);
  if (name.endsWith('.css') && /@import|url\(/.test(text)) found.push(`${name}: fetches something`);
  return found;
}

function files(directory) {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? files(join(directory, entry.name)) : [join(directory, entry.name)]));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const found = files(web).flatMap((file) => lint(relative(web, file), readFileSync(file, 'utf8')));
  for (const line of found) console.error(line);
  process.exit(found.length > 0 ? 1 : 0);
}
