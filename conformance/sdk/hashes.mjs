// What the JavaScript SDK has as hashes of random nodes, and how it spells doubles.
//
//   npm ci && node hashes.mjs [seed [nodes [numbers]]] > ../../internal/sdkhash/testdata/sdk-vectors.json
//
// The functions are not exported. The SDK's file is loaded as a module with one more
// line, which exports them.
//
// Left out, because the SDK is at fault: the keys -0 and 00 together, which it takes for
// one key.

import { readFileSync } from 'node:fs';
import { createRequire, Module } from 'node:module';

const seed = Number(process.argv[2] ?? 1);
const NODES = Number(process.argv[3] ?? 200);
const NUMBERS = Number(process.argv[4] ?? 2000);

const file = createRequire(import.meta.url).resolve('@firebase/database');
const sdk = new Module(file);
sdk.filename = file;
sdk.paths = Module._nodeModulePaths(file);
sdk._compile(`${readFileSync(file, 'utf8')}
exports.inside = { nodeFromJSON, doubleToIEEE754String };`, file);
const { nodeFromJSON, doubleToIEEE754String } = sdk.exports.inside;

// random is mulberry32: 32 bits of state, the same on every machine.
let state = seed >>> 0;
function random() {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = state;
  t = Math.imul(t ^ (t >>> 15), t | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
const below = (n) => Math.floor(random() * n);
const pick = (choices) => choices[below(choices.length)];
const chance = (p) => random() < p;

const view = new DataView(new ArrayBuffer(8));
function fromBits(bits) {
  view.setBigUint64(0, bits);
  return view.getFloat64(0);
}
function toBits(v) {
  view.setFloat64(0, v);
  return view.getBigUint64(0).toString(16).padStart(16, '0');
}

// double is mostly near a power of two, and never -0, which no tree holds.
function double() {
  const exponent = chance(0.5) ? 1023 + below(60) : below(2047);
  let bits = BigInt(exponent) << 52n;
  if (chance(0.2)) bits |= (BigInt(below(2 ** 20)) << 32n) | BigInt(below(2 ** 32));
  else bits += BigInt(below(256) - 128);
  const v = fromBits(bits < 0n ? -bits : bits);
  if (!Number.isFinite(v)) return Number.MAX_VALUE;
  return v !== 0 && chance(0.3) ? -v : v;
}

const STRINGS = ['', ' ', '0', '7', 'a', 'ab', 'b', 'true', 'a\u0000', '\n\t\r\b\f"\\/', '\u007f', '\u00e9', '\u2028\u2029',
  '\u{1f600}', '\u{1f600}a', '\u{10ffff}', '\ue000', '\uffee', ':', 'string:a', 'x'.repeat(5000)];
const KEYS = ['0', '1', '7', '07', '10', '-1', '-07', '2147483647', '2147483648', '1a', '-', '!', ' ', '-Nx0', '-Nx1', ':', 'A', 'a',
  'aa', 'b', 'c', 'z', '~', '"', '\\', '\u00e9', '\u2028', '\ud7ff', '\u{1f600}', '\u{1f600}a', '\u{10ffff}', '\ue000', '\uffee'];
const number = () => (chance(0.5) ? below(1000) - 100 : double());

function leaf() {
  if (chance(0.2)) return chance(0.5);
  return chance(0.5) ? number() : pick(STRINGS);
}

const priority = () => (chance(0.5) ? (chance(0.5) ? below(3) : number()) : pick(STRINGS));

function node(depth) {
  const own = chance(0.3) ? { '.priority': priority() } : {};
  if (depth === 0 || chance(0.3)) {
    const l = leaf();
    return '.priority' in own ? { '.value': l, ...own } : l;
  }
  for (let n = 1 + below(6); n > 0; n--) own[pick(KEYS)] = node(depth - 1);
  return own;
}

const numbers = [];
for (let i = 0; i < NUMBERS; i++) {
  const v = double();
  numbers.push(`${toBits(v)} ${doubleToIEEE754String(v)}`);
}
const nodes = [];
for (let i = 0; i < NODES; i++) {
  const n = node(below(4));
  nodes.push({ node: n, hash: nodeFromJSON(n).hash() });
}
const lines = (list) => list.map((item) => JSON.stringify(item)).join(',\n');
console.log(`{"numbers":[\n${lines(numbers)}\n],"nodes":[\n${lines(nodes)}\n]}`);
process.exit(0);
