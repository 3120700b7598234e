/** What is known of saved cases and of what they reach, without the page. */

/** @typedef {{path: string, kind: string, line: number, column: number, true: number, false: number, failed: number}} Outcome of a rule over all cases */
/** @typedef {{text: string, reach: 'none' | 'part' | 'all'}} Note at a line of the rules */

/** Saved cases are a draft of the tab: at most so much of one is kept. */
export const maxCases = 1 << 20;

/**
 * Adds a case to the text of others. Returns null if that would be too much.
 * @param {string} cases
 * @param {string} one
 * @returns {string | null}
 */
export function added(cases, one) {
  const before = cases.trim();
  const text = (before === '' ? '' : before + '\n\n') + one.trim() + '\n';
  return text.length > maxCases ? null : text;
}

/**
 * What a line of the rules has beside it. With several rules on one line, the least that was
 * reached counts.
 * @param {Outcome[]} coverage
 * @returns {Map<number, Note>}
 */
export function notes(coverage) {
  /** @type {Map<number, Outcome[]>} */
  const lines = new Map();
  for (const rule of coverage) lines.set(rule.line, [...(lines.get(rule.line) ?? []), rule]);
  /** @type {Map<number, Note>} */
  const found = new Map();
  for (const [line, rules] of lines) {
    const reaches = rules.map(reach);
    const text = rules.map((rule) => (reach(rule) === 'none' ? 'not reached' : `${rule.true}× true ${rule.false}× false`)).join(' · ');
    found.set(line, { text, reach: reaches.includes('none') ? 'none' : reaches.includes('part') ? 'part' : 'all' });
  }
  return found;
}

/**
 * How much of a rule cases have reached: both outcomes, one, or none.
 * @param {Outcome} rule
 * @returns {'none' | 'part' | 'all'}
 */
export function reach(rule) {
  if (rule.true + rule.false === 0) return 'none';
  return rule.true > 0 && rule.false > 0 ? 'all' : 'part';
}
