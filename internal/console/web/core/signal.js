/**
 * Signals: values that tell who reads them when they change.
 *
 * A signal holds a value. An effect runs a function, notes which signals the
 * function reads, and runs it again after one of them has changed. Effects run
 * together, once each, in a microtask after the change, so ten changes in a row
 * cost one run. An effect belongs to the scope in which it was made; ending
 * the scope ends it, and nothing is left behind.
 */

/**
 * @template T
 * @typedef {{value: T, peek(): T}} Signal
 */

/** @typedef {{run(): void, sources: Set<Set<Effect>>, ended: boolean}} Effect */

/** @type {Effect | null} */
let reader = null;
/** @type {(() => void)[] | null} */
let owner = null;
/** @type {Set<Effect>} */
const waiting = new Set();
let planned = false;

/**
 * Returns a signal that holds a value. Setting the value it has does nothing.
 * @template T
 * @param {T} initial
 * @returns {Signal<T>}
 */
export function signal(initial) {
  let current = initial;
  /** @type {Set<Effect>} */
  const readers = new Set();
  return {
    get value() {
      if (reader) {
        readers.add(reader);
        reader.sources.add(readers);
      }
      return current;
    },
    set value(next) {
      if (Object.is(next, current)) return;
      current = next;
      for (const effect of readers) plan(effect);
    },
    peek: () => current,
  };
}

/** @param {Effect} effect */
function plan(effect) {
  waiting.add(effect);
  if (planned) return;
  planned = true;
  queueMicrotask(flush);
}

/** Runs every effect that waits. Only tests need to call it. */
export function flush() {
  planned = false;
  // An effect may change signals in turn; a circle ends after 100 rounds.
  for (let round = 0; waiting.size > 0 && round < 100; round++) {
    const now = [...waiting];
    waiting.clear();
    for (const effect of now) if (!effect.ended) effect.run();
  }
  waiting.clear();
}

/**
 * Runs a function now, and again after a signal that it read has changed.
 * @param {() => void} body
 * @returns {() => void} ends the effect
 */
export function effect(body) {
  /** @type {(() => void)[]} */
  let inner = [];
  /** @type {Effect} */
  const self = {
    sources: new Set(),
    ended: false,
    run() {
      release(self);
      finish(inner);
      inner = [];
      const [outerReader, outerOwner] = [reader, owner];
      reader = self;
      owner = inner;
      try {
        body();
      } finally {
        reader = outerReader;
        owner = outerOwner;
      }
    },
  };
  const end = () => {
    self.ended = true;
    release(self);
    finish(inner);
  };
  owner?.push(end);
  self.run();
  return end;
}

/** @param {Effect} effect */
function release(effect) {
  for (const readers of effect.sources) readers.delete(effect);
  effect.sources.clear();
}

/** @param {(() => void)[]} list */
function finish(list) {
  for (const end of list.splice(0).reverse()) end();
}

/**
 * Runs a function, and returns what it returned and a function that ends every
 * effect and calls every onEnd that was made meanwhile.
 * @template T
 * @param {() => T} body
 * @returns {[T, () => void]}
 */
export function scope(body) {
  /** @type {(() => void)[]} */
  const mine = [];
  const [outerReader, outerOwner] = [reader, owner];
  reader = null;
  owner = mine;
  try {
    return [body(), () => finish(mine)];
  } finally {
    reader = outerReader;
    owner = outerOwner;
  }
}

/**
 * Calls a function when the scope around ends, or before its effect runs again.
 * @param {() => void} end
 */
export function onEnd(end) {
  owner?.push(end);
}

/**
 * Runs a function without noting what it reads.
 * @template T
 * @param {() => T} body
 * @returns {T}
 */
export function untracked(body) {
  const outer = reader;
  reader = null;
  try {
    return body();
  } finally {
    reader = outer;
  }
}
