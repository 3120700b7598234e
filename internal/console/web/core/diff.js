/**
 * The difference of two texts, line by line, by the method of Myers: the fewest lines
 * added and removed. Texts that differ in more than some thousand lines are shown as
 * all removed and all added, so that the time stays bounded.
 */

/** @typedef {{kind: 'same' | 'add' | 'remove', text: string, before: number, after: number}} Line lines count from 1; 0: not there */

const maxEdits = 3000;

/**
 * @param {string} before
 * @param {string} after
 * @returns {Line[]}
 */
export function diff(before, after) {
  const [a, b] = [before.split('\n'), after.split('\n')];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const [x, y] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  const steps = trace(x, y) ?? [...x.map(() => 'remove'), ...y.map(() => 'add')];
  /** @type {Line[]} */
  const lines = [];
  let [i, j] = [0, 0];
  const push = (/** @type {string} */ kind) => {
    if (kind === 'remove') lines.push({ kind, text: a[i] ?? '', before: ++i, after: 0 });
    else if (kind === 'add') lines.push({ kind, text: b[j] ?? '', before: 0, after: ++j });
    else lines.push({ kind: 'same', text: a[i] ?? '', before: ++i, after: ++j });
  };
  for (let n = 0; n < head; n++) push('same');
  for (const step of steps) push(step);
  for (let n = 0; n < tail; n++) push('same');
  return lines;
}

/**
 * The steps from one list to the other, or null if there are too many.
 * @param {string[]} a
 * @param {string[]} b
 * @returns {string[] | null}
 */
function trace(a, b) {
  /** @type {Map<number, number>[]} */
  const seen = [];
  /** @type {Map<number, number>} */
  let far = new Map([[1, 0]]);
  for (let d = 0; d <= Math.min(a.length + b.length, maxEdits); d++) {
    seen.push(new Map(far));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (far.get(k - 1) ?? -1) < (far.get(k + 1) ?? -1));
      let x = down ? (far.get(k + 1) ?? 0) : (far.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      far.set(k, x);
      if (x >= a.length && x - k >= b.length) return walk(seen, a.length, b.length);
    }
    if (d * seen.length > 2_000_000) return null;
  }
  return null;
}

/**
 * @param {Map<number, number>[]} seen
 * @param {number} x
 * @param {number} y
 */
function walk(seen, x, y) {
  /** @type {string[]} */
  const steps = [];
  for (let d = seen.length - 1; d >= 0; d--) {
    const far = seen[d];
    const k = x - y;
    const down = k === -d || (k !== d && (far?.get(k - 1) ?? -1) < (far?.get(k + 1) ?? -1));
    const from = down ? k + 1 : k - 1;
    const startX = d === 0 ? 0 : (far?.get(from) ?? 0);
    const startY = d === 0 ? 0 : startX - from;
    const [afterX, afterY] = d === 0 ? [0, 0] : down ? [startX, startY + 1] : [startX + 1, startY];
    while (x > afterX && y > afterY) {
      steps.push('same');
      x--;
      y--;
    }
    if (d > 0) steps.push(down ? 'add' : 'remove');
    [x, y] = [startX, startY];
  }
  return steps.reverse();
}
