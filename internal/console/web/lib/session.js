/**
 * The sign-in session of a tab.
 *
 * It is kept in the storage of the tab, which ends with the tab. A new tab asks its
 * sisters for theirs. The credential itself is never kept.
 */

/**
 * @typedef {object} Session
 * @property {string} session
 * @property {'operator' | 'database'} scope
 * @property {string} [database]
 * @property {string} [expires]
 * @property {boolean} [dev]
 * @property {unknown} [label]
 */

/** @typedef {{getItem(name: string): string | null, setItem(name: string, value: string): void, removeItem(name: string): void}} Store */
/** @typedef {{postMessage(message: any): void, onmessage: ((event: any) => void) | null}} Channel */

const name = 'livetree.session';
const patience = 80; // milliseconds that a sister has to answer

export class SessionKeeper {
  /**
   * @param {Store} store
   * @param {Channel} channel
   * @param {() => void} changed called when a sister signed in or out
   */
  constructor(store, channel, changed) {
    this.store = store;
    this.channel = channel;
    this.changed = changed;
    /** @type {((session: Session) => void) | null} */
    this.waits = null;
    channel.onmessage = (event) => this.heard(event.data);
  }

  /** @returns {Session | null} */
  get current() {
    const text = this.store.getItem(name);
    if (!text) return null;
    try {
      const found = JSON.parse(text);
      return typeof found?.session === 'string' ? found : null;
    } catch {
      return null;
    }
  }

  /** @param {Session} session */
  keep(session) {
    this.store.setItem(name, JSON.stringify(session));
  }

  /** Forgets the session here and in every sister tab. */
  end() {
    const ended = this.current?.session;
    this.store.removeItem(name);
    if (ended) this.channel.postMessage({ ended });
  }

  /**
   * Asks the other tabs of this console for their session.
   * @returns {Promise<boolean>}
   */
  askSisters() {
    if (this.current) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.waits = null; // one that answers later is heard as one that has signed in
        resolve(false);
      }, patience);
      this.waits = () => {
        clearTimeout(timer);
        resolve(true);
      };
      this.channel.postMessage({ ask: true });
    });
  }

  /** @param {any} message */
  heard(message) {
    const mine = this.current;
    if (message?.ask && mine) this.channel.postMessage({ offer: mine });
    else if (message?.offer?.session && !mine) {
      this.keep(message.offer);
      if (this.waits) this.waits(message.offer);
      else this.changed();
      this.waits = null;
    } else if (message?.ended && mine?.session === message.ended) {
      this.store.removeItem(name);
      this.changed();
    }
  }
}

/**
 * Takes the one-time code out of an address.
 * @param {string} fragment
 * @returns {string}
 */
export function codeOf(fragment) {
  return new URLSearchParams(fragment.replace(/^#/, '')).get('code') ?? '';
}

/**
 * The label of the server, in either form that it comes in.
 * @param {unknown} label
 * @returns {{text: string, color: string}}
 */
export function labelOf(label) {
  if (typeof label === 'string') {
    const [text = '', color = 'grey'] = label.split(',');
    return { text, color };
  }
  const { text = '', color = 'grey' } = /** @type {{text?: string, color?: string}} */ (label ?? {});
  return { text, color };
}
