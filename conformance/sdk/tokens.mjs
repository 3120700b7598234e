// Tokens that are signed with the app secret of a database.

import { createHmac } from 'node:crypto';

import { secret } from '../browser/server.mjs';

const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

// mint makes a token. data is what rules see as auth.
export function mint(data, claims = {}) {
  const text = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ v: 0, iat: Math.floor(Date.now() / 1000), d: data, ...claims })}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}
