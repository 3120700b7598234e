// A stand-in for the server, in memory, for work on the page where the real one is
// not at hand: node fake.mjs PORT. It answers what the page asks, without rules,
// queries, priorities or durability. Tests run against the real server.

import { createServer } from 'node:http';
import { readFile, readdir } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from '../web/lib/json.js';
import { compare } from '../web/lib/keys.js';

const web = join(dirname(fileURLToPath(import.meta.url)), '../web');
const types = { '.js': 'text/javascript', '.css': 'text/css', '.html': 'text/html' };
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

let position = 1;
let root = null; // null, a text of a leaf, or a Map of children
const watchers = new Set();
const log = [];
let rules = '{\n  "rules": {\n    ".read": true,\n    ".write": true\n  }\n}\n';
const history = [{ id: '1', time: new Date().toISOString(), by: 'operator', bytes: rules.length, text: rules }];

const at = () => `fake-${position}`;
const etagOf = (node) => (node === null ? 'null_etag' : createHash('sha1').update(print(node)).digest('base64url'));

function fromJson(json) {
  if (!json.children) return json.text === 'null' ? null : json.text;
  const map = new Map();
  for (const [key, child] of json.children) {
    const node = fromJson(child);
    if (node !== null) map.set(key, node);
  }
  return map.size === 0 ? null : map;
}
const sorted = (map) => [...map.entries()].sort((a, b) => compare(a[0], b[0]));
function print(node) {
  if (node === null) return 'null';
  return typeof node === 'string' ? node : '{' + sorted(node).map(([key, child]) => JSON.stringify(key) + ':' + print(child)).join(',') + '}';
}
function get(path, from = root) {
  for (const key of path) from = from instanceof Map ? (from.get(key) ?? null) : null;
  return from;
}
function set(node, path, value) {
  if (path.length === 0) return value;
  const map = node instanceof Map ? node : new Map();
  const child = set(map.get(path[0]) ?? null, path.slice(1), value);
  if (child === null) map.delete(path[0]);
  else map.set(path[0], child);
  return map.size === 0 ? null : map;
}
function write(path, value) {
  root = set(root, path, value);
  position++;
  log.push({ at: at(), time: new Date().toISOString(), patch: false, set: [{ path: '/' + path.join('/'), value: print(value).slice(0, 160), cut: false, bytes: print(value).length }] });
  if (log.length > 1000) log.shift();
  for (const watcher of watchers) watcher(path);
}

function row(key, node) {
  if (node === null) return { key, type: 'none' };
  if (typeof node === 'string') {
    const type = node[0] === '"' ? 'string' : /^[tf]/.test(node) ? 'boolean' : 'number';
    return node.length > 160 ? { key, type, value: node.slice(0, 160), cut: true, bytes: node.length } : { key, type, value: node };
  }
  const text = node.size < 100 ? print(node) : '';
  return { key, type: 'object', children: Math.min(1000, node.size), ...(node.size > 1000 ? { more: true } : {}), ...(text && text.length <= 160 ? { value: text } : {}) };
}

function list(path, params) {
  const node = get(path);
  const self = { at: at(), path: '/' + path.join('/'), before: false, after: false, rows: [] };
  if (!(node instanceof Map)) return { ...self, ...row('', node), key: undefined };
  const bound = (name) => (params.has(name) ? JSON.parse(params.get(name)) : null);
  const [startAt, startAfter, endAt, endBefore] = ['startAt', 'startAfter', 'endAt', 'endBefore'].map(bound);
  const inside = sorted(node).filter(([key]) => (startAt === null || compare(key, startAt) >= 0) && (startAfter === null || compare(key, startAfter) > 0) && (endAt === null || compare(key, endAt) <= 0) && (endBefore === null || compare(key, endBefore) < 0));
  const last = params.has('limitToLast');
  const limit = Number(params.get('limitToLast') ?? params.get('limitToFirst') ?? 100);
  const rows = last ? inside.slice(-limit) : inside.slice(0, limit);
  const more = inside.length > rows.length;
  return { ...self, type: 'object', before: last && more, after: !last && more, rows: rows.map(([key, child]) => row(key, child)) };
}

function outline(path) {
  const node = get(path);
  const keys = node instanceof Map ? sorted(node).map(([key]) => key) : [];
  return { at: at(), count: keys.length, exact: true, every: 1000, marks: keys.filter((_, i) => i % 1000 === 0), bytes: 1 };
}

function sse(answer) {
  answer.writeHead(200, { 'Content-Type': 'text/event-stream' });
  answer.flushHeaders();
  return (type, data) => answer.write(`event: ${type}\nid: ${at()}\ndata: ${JSON.stringify(data)}\n\n`);
}

function watch(request, answer, body) {
  const send = sse(answer);
  const { locations } = JSON.parse(body);
  const dirty = new Map();
  const watcher = (path) => {
    for (const { path: text } of locations) {
      const base = text.split('/').filter(Boolean);
      const common = base.every((key, i) => i >= path.length || path[i] === key);
      if (!common) continue;
      if (path.length <= base.length) dirty.set(text, null);
      else if (dirty.get(text) !== null) dirty.set(text, (dirty.get(text) ?? new Set()).add(path[base.length]));
    }
  };
  const timer = setInterval(() => {
    for (const [path, keys] of dirty) {
      const base = path.split('/').filter(Boolean);
      if (keys === null) send('reset', { path });
      else send('rows', { at: at(), path, rows: [...keys].map((key) => row(key, get([...base, key]))) });
    }
    dirty.clear();
  }, 100);
  watchers.add(watcher);
  request.on('close', () => (watchers.delete(watcher), clearInterval(timer)));
}

const check = (text) => {
  const problems = [];
  try {
    parse(text);
  } catch (error) {
    const [, line, column] = /line (\d+), column (\d+)/.exec(error.message) ?? [];
    problems.push({ line: Number(line), column: Number(column), message: error.message });
  }
  text.split('\n').forEach((line, i) => line.includes('"auth"') && problems.push({ line: i + 1, column: line.indexOf('"auth"') + 1, message: 'Expression must evaluate to a boolean.' }));
  return { problems, warnings: [], indexes: { added: [], dropped: [] }, open: text.includes('".read": true') };
};

function data(request, answer, url, body, json) {
  const path = url.pathname.replace(/^\/v1\/databases\/[^/]+\/data/, '').replace(/\.json$/, '').split('/').filter(Boolean).map((key) => decodeURIComponent(key));
  if (path[0] === '.settings') return rulesDocument(request, answer, body);
  if (url.searchParams.get('list')) return json(200, list(path, url.searchParams));
  if (url.searchParams.has('outline')) return json(200, outline(path));
  if (url.searchParams.has('explain')) return json(200, { path: '/' + path.join('/'), how: 'index', index: 'n', rows: 2, bytes: 120, result: 80 });
  const now = get(path);
  const match = request.headers['if-match'];
  if (match && match !== etagOf(now)) return answer.writeHead(412, { ETag: etagOf(now) }).end(print(now));
  if (request.method === 'PUT') write(path, fromJson(parse(body)));
  else if (request.method === 'DELETE') write(path, null);
  else if (request.method === 'PATCH') for (const [key, child] of parse(body).children) write([...path, key], fromJson(child));
  answer.writeHead(200, { ETag: etagOf(get(path)) }).end(print(get(path)));
}

function rulesDocument(request, answer, body) {
  const etag = createHash('sha1').update(rules).digest('hex');
  if (request.method === 'PUT') {
    if (request.headers['if-match'] && request.headers['if-match'] !== etag) return answer.writeHead(412).end(rules);
    rules = body;
    history.unshift({ id: String(history.length + 1), time: new Date().toISOString(), by: 'operator', bytes: rules.length, text: rules });
  }
  answer.writeHead(200, { ETag: createHash('sha1').update(rules).digest('hex') }).end(rules);
}

const wave = (n, base, high) => Array.from({ length: n }, (_, i) => Math.round(100 * (base + high * (1 + Math.sin(i / 20)) * (0.8 + 0.4 * Math.random()))) / 100);
const operations = () => ({ seconds: 1, requests: 12, failed: 0, bytes_in: 100, bytes_out: 1200, verbs: { GET: 9, PUT: 3 }, statuses: { 200: 11, 401: 1 }, latency_ms: { p50: 0.4, p99: 3.1 },
  busiest: [{ database: 'default', verb: 'GET', path: '/rooms/lobby', count: 9, ms_average: 0.4, bytes_out: 1200 }], slowest: [{ at: new Date().toISOString(), ms: 12, database: 'default', verb: 'GET', path: '/items', status: 200 }],
  unindexed: [{ database: 'default', verb: 'GET', path: '/items', index: 'n', count: 4, ms_average: 9, bytes_out: 100 }], denied: [{ database: 'default', verb: 'PUT', path: '/secret', count: 2, ms_average: 0.1, bytes_out: 0 }] });

const fixed = {
  'GET /v1/status': () => ({ version: '0.9-fake', ready: true, checks: [{ name: 'store', state: 'open', result: 'pass' }, { name: 'rules', state: 'open', result: 'warn' }], disk: 'ok', disk_free_bytes: 64e9, store_bytes: 3e6, streams: 2, commits: position, rss_bytes: 35e6, data_urls: ['https://127.0.0.1:9000'], dev: true }),
  'GET /v1/databases': () => ({ databases: [{ name: 'default', position, data_bytes: 120000, index_bytes: 2000, log_bytes: 30000, secrets: 1, open: true }, { name: 'shop', position: 3, data_bytes: 10, index_bytes: 0, log_bytes: 0 }] }),
  'GET /v1/operations': operations,
  'GET /v1/history': () => ({ from: new Date(Date.now() - 3600e3).toISOString(), step: 10, series: { requests_2xx: wave(360, 5, 40), requests_4xx: wave(360, 0, 2), requests_5xx: wave(360, 0, 0.1), latency_p50_ms: wave(360, 0.3, 0.4), latency_p99_ms: wave(360, 2, 4), streams: wave(360, 2, 5), bytes_in: wave(360, 1e3, 1e4), bytes_out: wave(360, 1e4, 1e5), disk_bytes: wave(360, 3e6, 1e4), memory_bytes: wave(360, 35e6, 1e6), commits: wave(360, 1, 10) } }),
  'GET /v1/audit': () => ({ audit: [{ time: new Date().toISOString(), what: 'signed in', scope: 'operator', session: '1f2e' }] }),
  'GET /v1/config': () => ({ addr: { value: '127.0.0.1:9000', origin: 'default' }, data: { value: '/var/lib/livetree', origin: 'flag' } }),
};

createServer(async (request, answer) => {
  const url = new URL(request.url, 'http://fake');
  let body = '';
  for await (const part of request) body += part;
  const json = (status, value) => answer.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }).end(JSON.stringify(value));
  const route = `${request.method} ${url.pathname}`;
  try {
    if (url.pathname.startsWith('/console/assets/')) {
      const name = url.pathname.replace(/^\/console\/assets\/[^/]+\//, '');
      return answer.writeHead(200, { 'Content-Type': types[extname(name)] ?? 'text/plain' }).end(await readFile(join(web, name)));
    }
    if (url.pathname === '/console/manual.json') {
      const docs = join(web, '../../../docs');
      const names = (await readdir(docs)).filter((name) => name.endsWith('.md')).sort();
      const texts = await Promise.all(names.map((name) => readFile(join(docs, name), 'utf8')));
      return json(200, { pages: names.map((name, i) => ({ topic: name.replace('.md', ''), title: texts[i].split('\n')[0].replace('# ', ''), text: texts[i] })) });
    }
    if (url.pathname.startsWith('/console')) return answer.writeHead(200, { 'Content-Type': 'text/html', 'Content-Security-Policy': policy }).end(await readFile(join(web, 'index.html')));
    if (route === 'POST /v1/sessions') {
      const { credential, code, database } = JSON.parse(body);
      return credential === 'right' || code === 'once' ? json(201, { session: 's1', scope: database ? 'database' : 'operator', database, expires: '', dev: code === 'once', label: { text: 'STAGING', color: 'orange' } }) : json(401, { error: 'refused' });
    }
    if (request.headers.authorization !== 'Bearer s1' && !url.pathname.startsWith('/v1/exports')) return json(401, { error: 'no session' });
    if (fixed[route]) return json(200, fixed[route]());
    const [, database, rest = ''] = /^\/v1\/databases\/([^/]+)\/?(.*)$/.exec(url.pathname) ?? [];
    if (rest.startsWith('data')) return data(request, answer, url, body, json);
    if (rest === 'watch') return watch(request, answer, body);
    if (rest === 'changes') {
      const send = sse(answer);
      let sent = url.searchParams.get('since') ? 0 : log.length;
      const timer = setInterval(() => { for (; sent < log.length; sent++) send('change', log[sent]); }, 100);
      return request.on('close', () => clearInterval(timer));
    }
    if (rest === 'copy') {
      const { from, to, move } = JSON.parse(body);
      const split = (text) => text.split('/').filter(Boolean);
      if (get(split(to)) !== null) return json(409, { error: 'there is data already' });
      write(split(to), structuredClone(get(split(from))));
      if (move) write(split(from), null);
      return json(200, {});
    }
    if (rest === 'exports') return json(201, { url: '/v1/exports/x' });
    if (rest === 'rules/check') return json(200, check(body));
    if (rest === 'rules/simulate') return json(200, { allowed: false, by: { path: '/rooms', kind: '.read', line: 3, column: 14 }, trace: [{ path: '/', kind: '.read', line: 3, column: 14, text: 'auth != null', outcome: 'false' }] });
    if (rest === 'rules/history') return json(200, { versions: history.map(({ text, ...one }) => one) });
    if (rest.startsWith('rules/history/')) return json(200, history.find((one) => rest.endsWith('/' + one.id)) ?? {});
    if (rest === 'secrets') return json(200, { secrets: [{ id: '47147c37', ...(url.searchParams.get('show') ? { value: 'abcdef' } : {}) }] });
    if (rest === 'accounts') return json(200, { accounts: [] });
    if (rest === 'tokens') return json(200, { token: 'eyJhbGciOi.fake.token', expires: new Date(Date.now() + 36e5).toISOString() });
    if (database && request.method === 'GET') return json(200, { name: database, position, data_bytes: 1, index_bytes: 0, log_bytes: 0, secrets: 1, open: true });
    json(404, { error: 'not here' });
  } catch (error) {
    if (!answer.headersSent) json(500, { error: String(error) });
  }
}).listen(Number(process.argv[2] ?? 9101), '127.0.0.1');

const rooms = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`-Nx4a${String(i).padStart(2, '0')}`, { at: 1763240000123 + i, by: i % 2 ? 'ann' : 'bob', text: 'hi there ' + i }]));
const start = { rooms: { lobby: rooms, blue: { topic: 'sea' } }, big: Object.fromEntries(Array.from({ length: 12000 }, (_, i) => ['k' + String(i).padStart(6, '0'), i])), users: { ann: { name: 'Ann', admin: true, score: 12.5 }, bob: { name: 'Bob', admin: false, score: 3 } }, items: Object.fromEntries(Array.from({ length: 30 }, (_, i) => ['i' + String(i).padStart(2, '0'), { n: i * 17, name: 'name ' + i, owner: { name: 'o' + (i % 4) } }])), 'a\u202eb': 'odd <b>key</b>', long: 'lorem ipsum '.repeat(50), 10: 'ten', 9: 'nine', '-5': -5 };
root = fromJson(parse(JSON.stringify(start)));
