// An agent in a process of its own.
//
//   node nodeagent.mjs SDK     started with a channel for messages

import { createRequire } from 'node:module';

import { Agent } from './agent.mjs';
import { makeCompat, openAdmin, openFirebase } from './compat.mjs';
import { Login } from './login.mjs';
import { makeModular } from './modular.mjs';

const require = createRequire(import.meta.url);

// load loads an SDK by name: the package, and how it is called.
async function load(name) {
  const login = new Login();
  const [kind, from] = name.split(':');
  switch (kind) {
    case 'modular':
      return makeModular(await import(`${from}/app`), await import(`${from}/database`), login);
    case 'compat': {
      const firebase = require(`${from}/compat/app`).default;
      require(`${from}/compat/database`);
      return makeCompat(firebase.database, openFirebase(firebase, login), login);
    }
    case 'admin': {
      const admin = require(from);
      return makeCompat(admin.database, openAdmin(admin), login);
    }
    default:
      throw new Error(`there is no SDK ${name}`);
  }
}

// What SDKs say on the console is looked at when a check fails only.
const quiet = process.env.SDK_VERBOSE ? console.log : () => {};
console.warn = quiet;
console.info = quiet;

const agent = new Agent(await load(process.argv[2]));
process.on('message', async ({ id, method, args }) => {
  process.send({ id, ...await agent.call(method, args) });
});
process.on('disconnect', () => process.exit());
process.send({ ready: true });
