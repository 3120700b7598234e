// The modular SDK, as the agent calls it.

// makeModular takes the modules firebase/app and firebase/database.
export function makeModular(app, database, login) {
  let db;
  const constraint = ([name, args]) => (name === 'orderBy' ? order(database, args) : database[name](...args));
  return {
    log: (line) => database.enableLogging(line),
    async connect({ url, emulator, mockUserToken, transport, token = null }) {
      const made = app.initializeApp({ projectId: 'check', databaseURL: url });
      login.attach(made, app._addComponent, token);
      if (transport) {
        database[transport]();
      }
      db = database.getDatabase(made);
      if (emulator) {
        database.connectDatabaseEmulator(db, emulator.host, emulator.port, mockUserToken ? { mockUserToken } : {});
      }
    },
    signIn: (token) => login.signIn(token),
    renewBy: (token) => login.renewBy(token),
    goOffline: () => database.goOffline(db),
    goOnline: () => database.goOnline(db),
    ref: (path) => database.ref(db, path),
    query: (path, query) => database.query(database.ref(db, path), ...Object.entries(query ?? {}).map(constraint)),
    set: database.set,
    setWithPriority: database.setWithPriority,
    setPriority: database.setPriority,
    update: database.update,
    push: async (ref, value) => (await database.push(ref, value)).key,
    remove: database.remove,
    get: database.get,
    transaction: (ref, update, applyLocally) => database.runTransaction(ref, update, { applyLocally }),
    onDisconnect: database.onDisconnect,
    on: (query, kind, told, cancelled) => database[listeners[kind]](query, told, cancelled),
    timestamp: database.serverTimestamp,
    increment: database.increment,
  };
}

const listeners = {
  value: 'onValue',
  child_added: 'onChildAdded',
  child_changed: 'onChildChanged',
  child_moved: 'onChildMoved',
  child_removed: 'onChildRemoved',
};

function order(database, [by]) {
  switch (by) {
    case '$key': return database.orderByKey();
    case '$value': return database.orderByValue();
    case '$priority': return database.orderByPriority();
    default: return database.orderByChild(by);
  }
}
