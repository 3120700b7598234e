/**
 * Writes that can be taken back.
 *
 * Every write says which state it is for, by ETag, and notes what was there before,
 * in export form, so that taking it back is exact. A write that meets another state
 * changes nothing and throws an ApiError with status 412. At most 50 writes of 16 MB
 * in all are kept.
 */

import { signal } from '../core/signal.js';
import { ApiError } from '../lib/api.js';
import { dataRoute, encodeKey, join } from '../lib/route.js';

/** What a node was: its JSON text in export form, or null if it is too large to keep. */
/** @typedef {{text: string | null, etag: string}} State */
/** @typedef {{path: string[], text: string, etag: string} | {from: string[], to: string[], etag: string}} Step */
/** @typedef {{name: string, steps: Step[], bytes: number}} Past */

const maxWrites = 50;
const maxBytes = 16_000_000;
export const maxKept = 5_000_000; // bytes of a node that are fetched for its undo
export const maxOpened = 1 << 20; // characters of a value that are shown or edited as a whole

/** The writers of this page, by database: what can be taken back outlives the screens. @type {Map<string, Writer>} */
const writers = new Map();

/**
 * @param {import('../lib/api.js').Api} api
 * @param {string} database
 */
export function writerOf(api, database) {
  const writer = writers.get(database) ?? new Writer(api, database);
  writers.set(database, writer);
  return writer;
}

export class Writer {
  /**
   * @param {import('../lib/api.js').Api} api
   * @param {string} database
   */
  constructor(api, database) {
    this.api = api;
    this.database = database;
    /** @type {import('../core/signal.js').Signal<Past[]>} */
    this.past = signal(/** @type {Past[]} */ ([]));
  }

  /** @param {string[]} path */
  url(path) {
    return dataRoute(this.database, path);
  }

  /**
   * Reads a node in export form. One that is too large gives its ETag alone.
   * @param {string[]} path
   * @param {number} [most] bytes
   * @returns {Promise<State>}
   */
  async read(path, most = maxKept) {
    const answer = await this.api.send(this.url(path) + '?format=export', { headers: { 'X-Firebase-ETag': 'true' } });
    const etag = answer.headers.get('ETag') ?? '';
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
      text += part.value;
      if (text.length > most) {
        await reader?.cancel();
        return { text: null, etag };
      }
    }
    return { text, etag };
  }

  /**
   * Puts JSON text in place of a state.
   * @param {string} name what the write is called when it is taken back
   * @param {string[]} path
   * @param {string | Blob} json
   * @param {State} before
   */
  async put(name, path, json, before) {
    const etag = await this.send('PUT', path, json, before.etag);
    if (before.text !== null) this.remember(name, [{ path, text: before.text, etag }]);
    return etag;
  }

  /**
   * @param {'PUT' | 'DELETE'} method
   * @param {string[]} path
   * @param {string | Blob | undefined} body
   * @param {string} etag
   */
  async send(method, path, body, etag) {
    const headers = { 'if-match': etag, 'X-Firebase-ETag': 'true' };
    const answer = await this.api.send(this.url(path) + '?print=silent', { method, body, headers });
    return answer.headers.get('ETag') ?? '';
  }

  /**
   * Deletes nodes, each in the state that is given.
   * @param {string} name
   * @param {{path: string[], before: State}[]} nodes
   */
  async remove(name, nodes) {
    /** @type {Step[]} */
    const steps = [];
    try {
      for (const { path, before } of nodes) {
        await this.send('DELETE', path, undefined, before.etag);
        if (before.text !== null) steps.push({ path, text: before.text, etag: 'null_etag' });
      }
    } finally {
      if (steps.length > 0) this.remember(name, steps);
    }
  }

  /**
   * Reads nodes before they are deleted. Those for which the memory of an undo has no room
   * give their ETag alone.
   * @param {string[][]} paths
   */
  async readAll(paths) {
    /** @type {{path: string[], before: State}[]} */
    const states = [];
    let left = maxBytes;
    for (const path of paths) {
      const before = await this.read(path, Math.min(maxKept, left));
      left -= before.text?.length ?? 0;
      states.push({ path, before });
    }
    return states;
  }

  /**
   * Merges the keys of a JSON object into a node.
   * @param {string} name
   * @param {string[]} path
   * @param {string | Blob} json
   * @param {State} before
   */
  async merge(name, path, json, before) {
    await this.api.send(this.url(path) + '?print=silent', { method: 'PATCH', body: json });
    if (before.text !== null) this.remember(name, [{ path, text: before.text, etag: await this.etag(path) }]);
  }

  /**
   * Copies or moves a node on the server, which keeps it exact.
   * @param {string} name
   * @param {string[]} from
   * @param {string[]} to
   * @param {boolean} move
   */
  async copy(name, from, to, move) {
    await this.api.json(`/v1/databases/${encodeKey(this.database)}/copy`, { body: { from: join(from), to: join(to), move } });
    const etag = await this.etag(to);
    this.remember(name, [move ? { from: to, to: from, etag } : { path: to, text: 'null', etag }]);
  }

  /**
   * The ETag of a node, without its text.
   * @param {string[]} path
   */
  async etag(path) {
    const answer = await this.api.send(this.url(path) + '?print=silent', { headers: { 'X-Firebase-ETag': 'true' } });
    return answer.headers.get('ETag') ?? '';
  }

  /**
   * @param {string} name
   * @param {Step[]} steps
   */
  remember(name, steps) {
    const size = steps.reduce((sum, step) => sum + ('text' in step ? step.text.length : 100), 0);
    const past = [...this.past.peek(), { name, steps, bytes: size }].slice(-maxWrites);
    while (past.length > 1 && past.reduce((sum, one) => sum + one.bytes, 0) > maxBytes) past.shift();
    this.past.value = past;
  }

  /** The undo that is under way: the next one begins after it, with the write before. @type {Promise<unknown>} */
  undoing = Promise.resolve();

  /**
   * Takes the newest write back. With force, also what others wrote since.
   * @param {boolean} [force]
   * @returns {Promise<string>} what was taken back
   */
  undo(force = false) {
    const done = this.undoing.then(() => this.takeBack(force));
    this.undoing = done.catch(() => {});
    return done;
  }

  /** @param {boolean} force */
  async takeBack(force) {
    const last = this.past.peek().at(-1);
    if (!last) return '';
    const left = [...last.steps];
    try {
      for (let step = left.at(-1); step; step = left.at(-1)) {
        await this.back(step, force);
        left.pop();
      }
    } finally {
      this.past.value = this.past.peek().flatMap((one) => (one !== last ? [one] : left.length > 0 ? [{ ...last, steps: left }] : []));
    }
    return last.name;
  }

  /** Forgets the newest write. */
  forget() {
    this.past.value = this.past.peek().slice(0, -1);
  }

  /**
   * @param {Step} step
   * @param {boolean} force
   */
  async back(step, force) {
    if ('from' in step) {
      const body = { from: join(step.from), to: join(step.to), move: true, ...(force ? {} : { etag: step.etag }) };
      try {
        await this.api.json(`/v1/databases/${encodeKey(this.database)}/copy`, { body });
      } catch (error) {
        if (error instanceof ApiError && error.status === 409) throw new ApiError(412, error.message);
        throw error;
      }
      return;
    }
    const etag = force ? await this.etag(step.path) : step.etag;
    if (step.text === 'null') await this.send('DELETE', step.path, undefined, etag);
    else await this.send('PUT', step.path, step.text, etag);
  }
}
