/**
 * Follows a stream of events for as long as the page is seen.
 *
 * A stream that ends is begun again, where it was, after a while that grows. While the
 * page is hidden there is none: a browser has few connections to a server.
 */

import { takeTurn } from './turns.js';
import { onEnd, signal } from './signal.js';

const hiddenMillis = 5000;
const firstMillis = 500;
const mostMillis = 10_000;

/** @typedef {{type: string, data: string, id: string}} StreamEvent */

export class Follower {
  /**
   * @param {(since: string, signal: AbortSignal, take: (event: StreamEvent) => void, opened: () => void) => Promise<void>} read
   *   reads the stream after the event with an id, until it ends
   * @param {(event: StreamEvent) => void} take
   */
  constructor(read, take) {
    this.read = read;
    this.take = take;
    /** connecting, live, lost, or asleep while the page is hidden. */
    this.state = signal('connecting');
    this.wanted = false;
    this.since = '';
    this.wait = 0;
    /** @type {AbortController | null} */
    this.stream = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    const visible = () => this.visibility();
    document.addEventListener('visibilitychange', visible);
    onEnd(() => {
      document.removeEventListener('visibilitychange', visible);
      this.stop();
    });
  }

  start() {
    this.wanted = true;
    this.connect();
  }

  /** Ends the stream; start goes on where it was. */
  stop() {
    this.wanted = false;
    this.halt();
  }

  halt() {
    clearTimeout(this.timer);
    this.stream?.abort();
    this.stream = null;
  }

  visibility() {
    if (!this.wanted) return;
    clearTimeout(this.timer);
    if (document.hidden) this.timer = setTimeout(() => (this.halt(), (this.state.value = 'asleep')), hiddenMillis);
    else if (!this.stream) this.connect();
  }

  async connect() {
    this.halt();
    const stream = (this.stream = new AbortController());
    const take = (/** @type {StreamEvent} */ event) => {
      if (event.id) this.since = event.id;
      if (event.data && event.data !== 'null') this.take(event);
    };
    const opened = () => {
      this.wait = 0;
      this.state.value = 'live';
    };
    let turned = false;
    try {
      turned = await takeTurn(stream.signal, (signal) => this.read(this.since, signal, take, opened));
    } catch {
      // Tried again below.
    }
    if (stream.signal.aborted || !this.wanted) return;
    this.stream = null;
    if (turned) {
      this.timer = setTimeout(() => this.connect(), 0);
      return;
    }
    this.state.value = 'lost';
    this.wait = Math.min(mostMillis, this.wait ? this.wait * 2 : firstMillis);
    this.timer = setTimeout(() => this.connect(), this.wait);
  }
}
