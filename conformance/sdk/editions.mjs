// What is run: which SDK, where, against which server, with which checks.

import { connection } from './features/connection.mjs';
import { data } from './features/data.mjs';
import { emulator } from './features/emulator.mjs';
import { filtering } from './features/filtering.mjs';
import { adminLogin, clientLogin, devLogin, login } from './features/login.mjs';
import { polling, takeover, websocket } from './features/transports.mjs';
import { presence } from './features/presence.mjs';
import { transactions } from './features/transactions.mjs';

const common = { ...data, ...filtering, ...transactions, ...presence, ...login, ...connection };
const client = { ...common, ...clientLogin };
const dev = { ...client, ...devLogin };

const newest = 'firebase';
const older = 'firebase-two-years-older';

export const editions = [
  { name: 'node modular 12', sdk: `modular:${newest}`, server: 'secure', checks: client },
  { name: 'node compat 12', sdk: `compat:${newest}`, server: 'dev', checks: { ...dev, ...emulator } },
  { name: 'node modular 10', sdk: `modular:${older}`, server: 'dev', checks: { ...dev, ...emulator } },
  { name: 'node compat 10', sdk: `compat:${older}`, server: 'secure', checks: client },
  { name: 'admin 13', sdk: 'admin:firebase-admin', server: 'secure', admin: true, checks: { ...common, ...adminLogin } },
  { name: 'admin 13 as an emulator', sdk: 'admin:firebase-admin', server: 'dev', admin: true, checks: { ...data, ...transactions, ...emulator } },
  { name: 'chromium modular 12', sdk: `modular:${newest}`, server: 'secure', browser: {}, checks: { ...websocket, ...client } },
  { name: 'chromium compat 12', sdk: `compat:${newest}`, server: 'dev', browser: {}, checks: { ...websocket, ...dev } },
  { name: 'chromium compat 10', sdk: `compat:${older}`, server: 'secure', browser: {}, checks: { ...websocket, ...client } },
  { name: 'chromium polling', sdk: `modular:${newest}`, server: 'secure', browser: {}, transport: 'forceLongPolling', checks: { ...polling, ...client } },
  { name: 'chromium take-over', sdk: `modular:${newest}`, server: 'secure', browser: { failed: true }, checks: { ...takeover, ...client } },
];
