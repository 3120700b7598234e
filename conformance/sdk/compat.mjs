// The SDK with namespaces, and the Admin SDK, as the agent calls them.

// makeCompat takes the namespace of firebase.database or admin.database, and a
// function that makes a database of it by the options of connect.
export function makeCompat(namespace, open, login) {
  let db;
  return {
    log: (line) => namespace.enableLogging(line),
    async connect(options) { db = await open(options); },
    signIn: (token) => login.signIn(token),
    renewBy: (token) => login.renewBy(token),
    goOffline: () => db.goOffline(),
    goOnline: () => db.goOnline(),
    ref: (path) => db.ref(path),
    query: (path, query) => Object.entries(query ?? {}).reduce(
      (q, [name, args]) => (name === 'orderBy' ? order(q, args) : q[name](...args)), db.ref(path)),
    set: (ref, value) => ref.set(value),
    setWithPriority: (ref, value, priority) => ref.setWithPriority(value, priority),
    setPriority: (ref, priority) => ref.setPriority(priority),
    update: (ref, value) => ref.update(value),
    push: async (ref, value) => (await ref.push(value)).key,
    remove: (ref) => ref.remove(),
    get: (query) => query.get(),
    transaction: (ref, update, applyLocally) => ref.transaction(update, undefined, applyLocally),
    onDisconnect: (ref) => ref.onDisconnect(),
    on(query, kind, told, cancelled) {
      query.on(kind, told, cancelled);
      return () => query.off(kind, told);
    },
    timestamp: () => namespace.ServerValue.TIMESTAMP,
    increment: (by) => namespace.ServerValue.increment(by),
  };
}

// openFirebase makes a database of the SDK with namespaces.
export function openFirebase(firebase, login) {
  return ({ url, emulator, mockUserToken, transport, token = null }) => {
    const made = firebase.initializeApp({ projectId: 'check', databaseURL: url });
    login.attach(made, (app, component) => app._addComponent(component), token);
    if (transport) {
      firebase.database.INTERNAL[transport]();
    }
    const db = made.database();
    if (emulator) {
      db.useEmulator(emulator.host, emulator.port, mockUserToken ? { mockUserToken } : undefined);
    }
    return db;
  };
}

// openAdmin makes a database of the Admin SDK. Its credential is the token; with a
// user, rules are judged as if that was logged in.
export function openAdmin(admin) {
  return ({ url, token = null, user }) => admin.initializeApp({
    projectId: 'check',
    databaseURL: url,
    credential: { getAccessToken: async () => ({ access_token: token, expires_in: 3600 }) },
    ...(user === undefined ? {} : { databaseAuthVariableOverride: user }),
  }).database();
}

function order(query, [by]) {
  switch (by) {
    case '$key': return query.orderByKey();
    case '$value': return query.orderByValue();
    case '$priority': return query.orderByPriority();
    default: return query.orderByChild(by);
  }
}
