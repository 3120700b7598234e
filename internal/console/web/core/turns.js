/**
 * Streams of all tabs together.
 *
 * A browser opens six connections to a server over HTTP/1.1, for all its tabs. So a few tabs
 * keep their streams for as long as they want, and the others take turns with one more: there is
 * always a connection for requests. A stream goes on where it was, so a turn loses nothing.
 */

const lasting = 3; // streams that are kept
const turnMillis = 500;

/**
 * Opens a stream when this tab may, and waits until it has ended.
 * @param {AbortSignal} signal ends it
 * @param {(signal: AbortSignal) => Promise<void>} open
 * @param {Pick<LockManager, 'request'> | undefined} [locks]
 * @returns {Promise<boolean>} whether it ended because the turn was over, so that another should be taken
 */
export async function takeTurn(signal, open, locks = globalThis.navigator?.locks) {
  if (!locks) {
    await open(signal);
    return false;
  }
  for (let i = 0; i < lasting; i++) {
    const kept = await locks.request(`livetree-stream-${i}`, { ifAvailable: true }, async (lock) => {
      if (lock) await open(signal);
      return Boolean(lock);
    });
    if (kept) return false;
  }
  return locks.request('livetree-stream-turn', { signal }, () => once(signal, open));
}

/**
 * @param {AbortSignal} signal
 * @param {(signal: AbortSignal) => Promise<void>} open
 */
async function once(signal, open) {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), turnMillis);
  try {
    await open(AbortSignal.any([signal, over.signal]));
  } catch (error) {
    if (!over.signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
  }
  return over.signal.aborted && !signal.aborted;
}
