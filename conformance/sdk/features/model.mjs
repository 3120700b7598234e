// What a query selects, computed without an SDK.

const integer = /^-?0*[0-9]{1,10}$/;
const isInteger = (key) => integer.test(key) && Number(key) >= -(2 ** 31) && Number(key) < 2 ** 31;

export function compareKeys(a, b) {
  if (isInteger(a) !== isInteger(b)) {
    return isInteger(a) ? -1 : 1;
  }
  return isInteger(a) ? Number(a) - Number(b) || a.length - b.length : compareTexts(a, b);
}

const compareTexts = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

// rank orders the kinds of values.
function rank(v) {
  if (v === null || v === undefined) return 0;
  return v === false ? 1 : v === true ? 2 : typeof v === 'number' ? 3 : typeof v === 'string' ? 4 : 5;
}

export function compareValues(a, b) {
  const difference = rank(a) - rank(b);
  if (difference !== 0 || rank(a) === 5) {
    return difference;
  }
  return rank(a) === 3 ? a - b : rank(a) === 4 ? compareTexts(a, b) : 0;
}

// orderedBy returns what a child is ordered by.
function orderedBy(child, order) {
  switch (order) {
    case '$value': return child !== null && typeof child === 'object' && '.value' in child ? child['.value'] : child;
    case '$priority': return child?.['.priority'] ?? null;
    default: return order.split('/').reduce((n, key) => n?.[key], child) ?? null;
  }
}

// select returns the keys that a query selects of children, in order.
export function select(children, query) {
  const order = query.orderBy[0];
  const compare = order === '$key'
    ? (a, b) => compareKeys(a.key, b.key)
    : (a, b) => compareValues(a.by, b.by) || compareKeys(a.key, b.key);
  const all = Object.entries(children)
    .map(([key, child]) => ({ key, by: order === '$key' ? null : orderedBy(child, order) }))
    .sort(compare);
  // against tells on which side of a bound a child is: below 0, on 0, above 1.
  const against = (child, [bound, key]) => {
    if (order === '$key') {
      return Math.sign(compareKeys(child.key, bound));
    }
    return Math.sign(compareValues(child.by, bound) || (key === undefined ? 0 : compareKeys(child.key, key)));
  };
  const isIn = {
    startAt: (side) => side >= 0,
    startAfter: (side) => side > 0,
    endAt: (side) => side <= 0,
    endBefore: (side) => side < 0,
    equalTo: (side) => side === 0,
  };
  const kept = all.filter((child) => Object.entries(isIn)
    .every(([name, holds]) => !query[name] || holds(against(child, query[name]))));
  const keys = kept.map((child) => child.key);
  if (query.limitToFirst) {
    return keys.slice(0, query.limitToFirst[0]);
  }
  return query.limitToLast ? keys.slice(-query.limitToLast[0]) : keys;
}
