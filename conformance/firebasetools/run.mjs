// Runs firebase-tools, unmodified, against a real server over HTTPS:
//
//	npm ci && node run.mjs /path/to/livetree
//
// Once as the owner of a server under --dev, and once, without --dev, with an
// access token for which a service account's key is exchanged here. It prints what
// was run and ends with 1 if anything was not as expected.

import { spawn, spawnSync } from "node:child_process";
import crypto from "node:crypto";
import { once } from "node:events";
import fs from "node:fs";
import https from "node:https";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";
import { createRequire } from "node:module";

const livetree = path.resolve(process.argv[2] ?? "livetree");
const firebase = createRequire(import.meta.url).resolve("firebase-tools/lib/bin/firebase.js");
const dir = fs.mkdtempSync(path.join(os.tmpdir(), "livetree-firebasetools-"));
let failures = 0;

// start runs a server and returns it when it is ready.
async function start(name, ...flags) {
  const data = path.join(dir, name);
  const args = ["serve", "--data", data, "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", ...flags];
  const child = spawn(livetree, args, { stdio: ["ignore", "pipe", "ignore"] });
  for await (const line of readline.createInterface({ input: child.stdout })) {
    const match = /listening on https:\/\/127\.0\.0\.1:(\d+)/.exec(line);
    if (match) {
      child.stdout.resume();
      return { child, data, url: `https://localhost:${match[1]}`, ca: path.join(data, "tls", "ca.pem") };
    }
  }
  throw new Error("the server ended before it was ready");
}

function stop(server) {
  return new Promise((resolve) => {
    server.child.once("exit", resolve);
    server.child.kill("SIGTERM");
  });
}

// surroundings returns a home and the environment for firebase-tools.
function surroundings(server, token) {
  const home = fs.mkdtempSync(path.join(dir, "home-"));
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    CI: "true",
    NO_UPDATE_NOTIFIER: "1",
    NODE_EXTRA_CA_CERTS: server.ca,
    FIREBASE_TOKEN: token,
    FIREBASE_TOKEN_URL: server.url,
    FIREBASE_API_URL: server.url,
    FIREBASE_RESOURCEMANAGER_URL: server.url,
    FIREBASE_RTDB_MANAGEMENT_URL: server.url,
  };
  return { home, env };
}

// tool returns a function that runs firebase-tools with a token and checks that
// what it prints has a text. A refusal is a wanted failure.
function tool(server, token) {
  const { home, env } = surroundings(server, token);
  return (args, want, { refused = false, instance = ["--instance", "default"] } = {}) => {
    const all = [...args, "--project", "default", "--non-interactive", ...instance];
    const run = spawnSync(process.execPath, [firebase, ...all], { cwd: home, env, encoding: "utf8", timeout: 120_000 });
    const out = run.stdout + run.stderr;
    const good = (run.status !== 0) === refused && out.includes(want);
    console.log(`${good ? "ok  " : "FAIL"} firebase ${args.join(" ")}`);
    if (!good) {
      failures++;
      const log = path.join(home, "firebase-debug.log");
      console.log(`     exit ${run.status}, want ${refused ? "a failure" : "0"} and ${JSON.stringify(want)}\n${out}`);
      if (fs.existsSync(log)) console.log(fs.readFileSync(log, "utf8").slice(-4000));
    }
  };
}

// exchange gets an access token for a key file, as Google's libraries do.
function exchange(file, ca) {
  const key = JSON.parse(fs.readFileSync(file, "utf8"));
  const now = Math.floor(Date.now() / 1000);
  const text = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed =
    text({ alg: "RS256", typ: "JWT", kid: key.private_key_id }) +
    "." +
    text({ iss: key.client_email, aud: key.token_uri, iat: now, exp: now + 3600, scope: "x" });
  const assertion = signed + "." + crypto.sign("sha256", Buffer.from(signed), key.private_key).toString("base64url");
  const form = new URLSearchParams({ grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion }).toString();
  const headers = { "Content-Type": "application/x-www-form-urlencoded" };
  return new Promise((resolve, reject) => {
    const request = https.request(key.token_uri, { method: "POST", ca: fs.readFileSync(ca), headers }, (answer) => {
      let body = "";
      answer.on("data", (piece) => (body += piece));
      answer.on("end", () => {
        const token = JSON.parse(body).access_token;
        return token ? resolve(token) : reject(new Error(`no access token: ${body}`));
      });
    });
    request.on("error", reject);
    request.end(form);
  });
}

// commands runs the commands that work with data.
function commands(run) {
  const file = path.join(dir, "import.json");
  fs.writeFileSync(file, JSON.stringify({ ann: { age: 30 }, ben: { age: 20 } }));
  run(["database:instances:list"], "default", { instance: [] });
  run(["database:set", "/rooms", "-d", '{"a":{"name":"A"},"b":{"name":"B"}}', "-f"], "Data persisted successfully");
  run(["database:get", "/rooms"], '{"a":{"name":"A"},"b":{"name":"B"}}');
  run(["database:get", "/rooms", "--shallow"], '{"a":true,"b":true}');
  run(["database:get", "/rooms", "--order-by-key", "--limit-to-last", "1"], '{"b":{"name":"B"}}');
  run(["database:get", "/rooms/a/name"], '"A"', { instance: [] });
  run(["database:push", "/list", "-d", '{"n":1}'], "Data pushed successfully");
  run(["database:update", "/rooms", "-d", '{"a/name":"Z"}', "-f"], "Data updated successfully");
  run(["database:get", "/rooms/a/name"], '"Z"');
  run(["database:import", "/people", file, "-f"], "Data persisted successfully");
  run(["database:get", "/people"], '{"ann":{"age":30},"ben":{"age":20}}');
  run(["database:get", "/people", "--order-by", "age"], "Index not defined", { refused: true });
  run(["database:remove", "/rooms", "-f"], "Data removed successfully");
  run(["database:get", "/rooms"], "null");
  run(["database:settings:set", "defaultWriteSizeLimit", "small"], "Successfully set setting");
  run(["database:settings:get", "defaultWriteSizeLimit"], "defaultWriteSizeLimit = small");
  run(["database:settings:set", "strictTriggerValidation", "false"], "Successfully set setting");
  run(["database:settings:get", "strictTriggerValidation"], "strictTriggerValidation = false");
}

// ask sends a request and returns when it is answered.
function ask(server, token, method, target, body) {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${token}` };
    const request = https.request(server.url + target, { method, ca: fs.readFileSync(server.ca), headers }, (answer) => {
      answer.resume();
      answer.on("end", resolve);
    });
    request.on("error", reject);
    request.end(body);
  });
}

// profile has firebase-tools profile a server that is used meanwhile, and looks for
// what was done in its report.
async function profile(server, token) {
  const { home, env } = surroundings(server, token);
  const report = path.join(home, "report.txt");
  const args = ["database:profile", "--duration", "3", "-o", report, "--project", "default", "--non-interactive", "--instance", "default"];
  const child = spawn(process.execPath, [firebase, ...args], { cwd: home, env, stdio: ["pipe", "ignore", "inherit"] });
  let code = null;
  const ended = once(child, "exit").then(([c]) => (code = c));
  while (code === null) {
    await ask(server, token, "PUT", "/profiled/written.json", '"text"');
    await ask(server, token, "PATCH", "/profiled/patched.json", '{"a":1}');
    await ask(server, token, "GET", "/profiled/written.json");
    await ask(server, token, "GET", '/profiled.json?orderBy="byage"');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await ended;
  const text = fs.existsSync(report) ? fs.readFileSync(report, "utf8") : "";
  const missing = ["Read Speed", "Write Speed", "/profiled/written", "/profiled/patched", "Unindexed Queries", "byage"].filter(
    (want) => !text.includes(want),
  );
  const good = code === 0 && missing.length === 0;
  console.log(`${good ? "ok  " : "FAIL"} firebase database:profile`);
  if (!good) {
    failures++;
    console.log(`     exit ${code}, the report lacks ${JSON.stringify(missing)}\n${text}`);
  }
}

console.log("--- as the owner, under --dev");
const dev = await start("dev", "--dev");
commands(tool(dev, "anything"));
await profile(dev, "owner");
await stop(dev);

console.log("--- with a service account");
const real = await start("real");
const keyFile = path.join(dir, "key.json");
const account = ["--data", real.data];
spawnSync(livetree, ["service-account", "create", "tools", "--url", real.url, "--out", keyFile, ...account], { stdio: "inherit" });
const token = await exchange(keyFile, real.ca);
commands(tool(real, token));
await profile(real, token);
tool(real, "anything")(["database:get", "/people"], "", { refused: true });
spawnSync(livetree, ["service-account", "revoke", "tools", ...account], { stdio: "inherit" });
tool(real, token)(["database:get", "/people"], "", { refused: true });
await stop(real);

fs.rmSync(dir, { recursive: true, force: true });
console.log(failures ? `${failures} FAILED` : "all passed");
process.exit(failures ? 1 : 0);
