// An agent does what it is told by one SDK, and remembers what the SDK tells it.
//
// It is the same in a process of Node (nodeagent.mjs) and in a page of a browser
// (pages.mjs): the checks reach it by messages, so all that goes in and out of it
// is JSON. The adapters modular.mjs and compat.mjs hide how the SDK is called.

// Values that only the SDK can make are sent as {"@": name, …}.
export const timestamp = { '@': 'timestamp' };
export const increment = (by) => ({ '@': 'increment', by });

// updates are the functions of transactions, by name: a function cannot be sent.
const updates = {
  add: (by) => (value) => (value ?? 0) + by,
  put: (next) => () => next,
  abort: () => () => undefined,
  throw: () => () => { throw new Error('the function throws'); },
  append: (text) => (value) => [...(value ?? []), text],
};

export class Agent {
  constructor(sdk) {
    this.sdk = sdk;
    this.records = new Map(); // what listens were told, by name
    this.stops = new Map(); // how listens end, by name
    this.begun = new Map(); // calls that are waited for later, by name
    this.pushes = []; // what the server pushed: the action and its size
    sdk.log((line) => {
      const push = /handleServerMessage (\w+)/.exec(line);
      if (push) {
        this.pushes.push({ action: push[1], size: line.length });
      }
    });
  }

  // call runs a method by its name, and returns its result or its error.
  async call(method, args) {
    try {
      return { result: (await this[method](...args)) ?? null };
    } catch (e) {
      return { error: { message: String(e?.message ?? e), code: e?.code ?? null } };
    }
  }

  // begin starts a call; finish waits for it.
  begin(name, method, ...args) {
    this.begun.set(name, this.call(method, args));
  }

  async finish(name) {
    const { result, error } = await this.begun.get(name);
    this.begun.delete(name);
    if (error) {
      throw Object.assign(new Error(error.message), error);
    }
    return result;
  }

  connect(options) { return this.sdk.connect(options); }

  signIn(token) { return this.sdk.signIn(token); }

  renewBy(token) { return this.sdk.renewBy(token); }

  goOffline() { return this.sdk.goOffline(); }

  goOnline() { return this.sdk.goOnline(); }

  set(path, value) { return this.sdk.set(this.sdk.ref(path), this.revive(value)); }

  setWithPriority(path, value, priority) {
    return this.sdk.setWithPriority(this.sdk.ref(path), this.revive(value), this.revive(priority));
  }

  setPriority(path, priority) { return this.sdk.setPriority(this.sdk.ref(path), this.revive(priority)); }

  update(path, value) { return this.sdk.update(this.sdk.ref(path), this.revive(value)); }

  push(path, value) { return this.sdk.push(this.sdk.ref(path), this.revive(value)); }

  remove(path) { return this.sdk.remove(this.sdk.ref(path)); }

  async get(path, query) { return seen(await this.sdk.get(this.sdk.query(path, query))); }

  // getAll returns the keys that queries select, one after the other.
  async getAll(path, queries) {
    const all = [];
    for (const query of queries) {
      all.push((await this.get(path, query)).keys);
    }
    return all;
  }

  // firstAll does the same by listens, each of which ends after its first value:
  // the SDK would answer one from what it has for another.
  async firstAll(path, queries) {
    const all = [];
    for (const query of queries) {
      all.push(await new Promise((resolve, reject) => {
        const stop = this.sdk.on(this.sdk.query(path, query), 'value', (snapshot) => {
          resolve(seen(snapshot).keys);
          queueMicrotask(() => stop());
        }, reject);
      }));
    }
    return all;
  }

  // setMany sets children without waiting in between.
  async setMany(path, values) {
    await Promise.all(Object.entries(values).map(([key, value]) => this.set(`${path}/${key}`, value)));
  }

  async transaction(path, name, argument, applyLocally = true) {
    const { committed, snapshot } = await this.sdk.transaction(this.sdk.ref(path), updates[name](argument), applyLocally);
    return { committed, value: snapshot.exportVal() };
  }

  // transactions runs one after the other.
  async transactions(count, ...args) {
    for (; count > 0; count--) {
      await this.transaction(...args);
    }
  }

  onDisconnect(path, method, ...values) {
    return this.sdk.onDisconnect(this.sdk.ref(path))[method](...values.map((v) => this.revive(v)));
  }

  // listen records events of some kinds under a name.
  listen(name, path, query = null, kinds = ['value']) {
    const record = [];
    const at = this.sdk.query(path, query);
    const stops = kinds.map((kind) => this.sdk.on(at, kind,
      (snapshot, previous) => record.push({ kind, ...seen(snapshot), previous: previous ?? null }),
      (e) => record.push({ kind: 'cancel', code: e.code ?? null, message: e.message })));
    this.records.set(name, record);
    this.stops.set(name, () => stops.forEach((stop) => stop()));
  }

  unlisten(name) {
    this.stops.get(name)();
    this.stops.delete(name);
  }

  // reset ends what a check has left.
  reset() {
    [...this.stops.keys()].forEach((name) => this.unlisten(name));
    this.records.clear();
    this.pushes = [];
  }

  record(name) { return this.records.get(name); }

  // last returns the newest event without its value, which may be large, and how
  // many there were.
  last(name) {
    const record = this.records.get(name);
    return { count: record.length, kind: record.at(-1)?.kind, length: JSON.stringify(record.at(-1)?.value ?? null).length };
  }

  // pushed returns what the server pushed since it was asked before.
  pushed() { return this.pushes.splice(0); }

  revive(value) {
    if (value === null || typeof value !== 'object') {
      return value;
    }
    if ('@' in value) {
      return value['@'] === 'timestamp' ? this.sdk.timestamp() : this.sdk.increment(value.by);
    }
    if (Array.isArray(value)) {
      return value.map((v) => this.revive(v));
    }
    return Object.fromEntries(Object.entries(value).map(([key, v]) => [key, this.revive(v)]));
  }
}

// seen is what a snapshot holds. The order of the keys is that of the query.
function seen(snapshot) {
  const keys = [];
  snapshot.forEach((child) => { keys.push(child.key); });
  return { key: snapshot.key, value: snapshot.exportVal(), keys };
}
