/**
 * Requests to the admin listener: with the session, errors as sentences, and events
 * over fetch.
 */

/** An answer that is not a success, or no answer at all (status 0). */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {string} body
   * @param {string} etag
   */
  constructor(status, message, body = '', etag = '') {
    super(message);
    this.status = status;
    this.body = body;
    this.etag = etag;
  }
}

/**
 * @typedef {object} Call
 * @property {string} [method]
 * @property {string | Blob} [body]
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 */

export class Api {
  /**
   * @param {() => string} session gives the session, or an empty text
   * @param {() => void} ended called when the server no longer knows the session
   * @param {typeof fetch} [fetcher]
   */
  constructor(session, ended, fetcher = (...args) => fetch(...args)) {
    this.session = session;
    this.ended = ended;
    this.fetcher = fetcher;
  }

  /**
   * Sends a request and returns the answer, if it is a success.
   * @param {string} path
   * @param {Call} [call]
   * @returns {Promise<Response>}
   */
  async send(path, call = {}) {
    const used = this.session();
    const headers = { ...call.headers, ...(used ? { Authorization: 'Bearer ' + used } : {}) };
    let answer;
    try {
      answer = await this.fetcher(path, { method: call.method ?? 'GET', body: call.body, headers, signal: call.signal, cache: 'no-store', credentials: 'omit' });
    } catch (error) {
      if (call.signal?.aborted) throw error;
      throw new ApiError(0, 'The server cannot be reached.');
    }
    if (answer.ok) return answer;
    const text = await answer.text().catch(() => '');
    if (answer.status === 401 && used && used === this.session()) this.ended();
    throw new ApiError(answer.status, sentence(answer.status, text), text, answer.headers.get('ETag') ?? '');
  }

  /**
   * @param {string} path
   * @param {Call} [call]
   * @returns {Promise<string>}
   */
  async text(path, call) {
    return (await this.send(path, call)).text();
  }

  /**
   * Sends a request with a JSON body, if there is one, and reads a JSON answer.
   * @param {string} path
   * @param {{method?: string, body?: unknown, signal?: AbortSignal}} [call]
   * @returns {Promise<any>}
   */
  async json(path, call = {}) {
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    const text = await this.text(path, { method: call.method ?? (body === undefined ? 'GET' : 'POST'), body, signal: call.signal });
    return text === '' ? null : JSON.parse(text);
  }

  /**
   * Reads a stream of events until it ends.
   * @param {string} path
   * @param {Call} call
   * @param {(event: {type: string, data: string, id: string}) => void} take
   * @param {() => void} [opened]
   */
  async events(path, call, take, opened) {
    const answer = await this.send(path, { ...call, headers: { Accept: 'text/event-stream', ...call.headers } });
    opened?.();
    if (!answer.body) return;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser(take);
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      parser.push(value);
    }
  }
}

/**
 * @param {number} status
 * @param {string} text
 * @returns {string}
 */
function sentence(status, text) {
  try {
    const { error } = JSON.parse(text);
    if (typeof error === 'string') return error.trim();
  } catch {
    // Not JSON: say what the status means.
  }
  switch (status) {
    case 401: return 'The session has ended. Sign in again.';
    case 403: return 'This session is not allowed to do that.';
    case 404: return 'The server does not offer this.';
    case 412: return 'It has changed meanwhile.';
    case 413: return 'This is too large for the server.';
    case 429: return 'Too many requests at the moment. Try again.';
    default: return `The server answered ${status}.`;
  }
}

const maxEvent = 64 << 20;

/** Cuts a text stream into server-sent events. */
export class EventParser {
  /** @param {(event: {type: string, data: string, id: string}) => void} take */
  constructor(take) {
    this.take = take;
    this.rest = '';
    this.id = '';
    this.type = '';
    /** @type {string[]} */
    this.data = [];
  }

  /** @param {string} text */
  push(text) {
    this.rest += text;
    if (this.rest.length > maxEvent) throw new ApiError(0, 'An event of the server is too large.');
    let from = 0;
    for (let end = this.rest.indexOf('\n'); end >= 0; end = this.rest.indexOf('\n', from)) {
      this.line(this.rest.slice(from, end).replace(/\r$/, ''));
      from = end + 1;
    }
    this.rest = this.rest.slice(from);
  }

  /** @param {string} line */
  line(line) {
    if (line === '') {
      if (this.data.length > 0 || this.type) this.take({ type: this.type || 'message', data: this.data.join('\n'), id: this.id });
      this.type = '';
      this.data = [];
      return;
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'event') this.type = value;
    else if (name === 'data') this.data.push(value);
    else if (name === 'id') this.id = value;
  }
}
