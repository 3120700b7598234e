// Runs the checks of one edition.

import { secret } from '../browser/server.mjs';
import { Browser } from './pages.mjs';
import { startProcess } from './processes.mjs';
import { rules } from './rules.mjs';
import { mint } from './tokens.mjs';

// A Report counts what was checked.
export class Report {
  constructor(only) {
    Object.assign(this, { only, passed: 0, failed: 0, skipped: [] });
  }

  wants(edition, check) {
    return `${edition}: ${check}`.includes(this.only);
  }

  ok(name, millis) {
    this.passed++;
    console.log(`ok    ${name} (${millis} ms)`);
  }

  fail(name, error) {
    this.failed++;
    console.log(`FAIL  ${name}: ${String(error?.stack ?? error).slice(0, 3000)}`);
  }

  skip(name, why) {
    this.skipped.push(name);
    console.log(`*** SKIPPED, not checked: ${name}: ${why}`);
  }

  print() {
    const skipped = this.skipped.length > 0 ? `, ${this.skipped.length} editions SKIPPED` : '';
    console.log(`${this.passed + this.failed} checks: ${this.passed} passed, ${this.failed} failed${skipped}`);
  }
}

// A Crew starts the agents of an edition and ends them.
class Crew {
  constructor(edition, server, browser) {
    Object.assign(this, { edition, server, browser, agents: [] });
  }

  // add starts an agent and connects it.
  async add(options = {}, env = {}) {
    const { sdk, transport, admin } = this.edition;
    const agent = this.browser ? await this.browser.start(sdk, this.edition.browser) : await startProcess(sdk, env);
    this.agents.push(agent);
    const url = `${this.server.url}?ns=default`;
    await agent.connect({ url, transport, token: admin ? secret : null, ...options });
    return agent;
  }

  // as starts an agent whose rules are judged with some auth.
  as(data, claims) {
    if (this.edition.admin) {
      return this.add({ user: data });
    }
    return this.add({ token: data && mint(data, claims) });
  }

  async end() {
    await Promise.all(this.agents.splice(0).map((agent) => agent.end()));
  }
}

export async function runEdition(edition, { servers, chromium, key }, report) {
  const wanted = Object.entries(edition.checks).filter(([name]) => report.wants(edition.name, name));
  if (wanted.length === 0) {
    return;
  }
  if (edition.browser && !chromium) {
    report.skip(edition.name, 'there is no chromium');
    return;
  }
  const server = servers[edition.server];
  const browser = edition.browser && await Browser.launch(chromium, key());
  console.log(`--- ${edition.name}${browser ? `, Chromium ${browser.version}` : ''}`);
  try {
    await server.admin('PUT', '/.settings/rules.json', rules);
    await server.admin('PUT', '/.json', null);
    const crew = new Crew(edition, server, browser);
    // Where nothing goes, every check would wait in vain.
    const connects = await runCheck(`${edition.name}: connect`, async () => (await crew.add()).set('open/connect', 1), report);
    await crew.end();
    if (!connects) {
      return;
    }
    let pair = null;
    let count = 0;
    for (const [name, check] of wanted) {
      // Two agents serve all checks, until one of those fails.
      pair ??= { crew: new Crew(edition, server, browser), a: null, b: null };
      pair.a ??= await pair.crew.add();
      pair.b ??= await pair.crew.add();
      const { a, b } = pair;
      const passed = await runCheck(`${edition.name}: ${name}`, check, report, {
        a, b, server, id: String(++count), at: `open/${count}`, edition,
        agent: (options, env) => crew.add(options, env), as: (data, claims) => crew.as(data, claims),
      });
      await crew.end();
      if (passed) {
        await Promise.all([a.reset(), b.reset()]);
        continue;
      }
      await pair.crew.end();
      pair = null;
      await server.ensure();
    }
    await pair?.crew.end();
  } finally {
    await browser?.close();
  }
}

async function runCheck(name, check, report, context) {
  const start = Date.now();
  try {
    await check(context);
    report.ok(name, Date.now() - start);
    return true;
  } catch (error) {
    report.fail(name, error);
    return false;
  }
}
