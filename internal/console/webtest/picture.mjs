// Makes the pictures of the manual: node picture.mjs LIVETREE DIRECTORY. LIVETREE is the command. The console is
// shown with the data of livetree demo, and the page of the quick start is the one in docs/quickstart.md.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [livetree, directory] = process.argv.slice(2);
const work = mkdtempSync(join(tmpdir(), 'livetree-pictures-'));
const running = [];

// start runs a server and returns its address when it is ready.
function start(data, ...args) {
  const server = spawn(livetree, [...args, '--data', data, '--addr', '127.0.0.1:0'], {
    env: { ...process.env, LIVETREE_ADMIN_ADDR: '127.0.0.1:0' },
  });
  running.push(server);
  return new Promise((resolve, reject) => {
    let text = '';
    server.stdout.on('data', (part) => {
      text += part;
      const address = /https:\/\/127\.0\.0\.1:(\d+)/.exec(text);
      if (address && /try|listening/.test(text)) resolve(address[1]);
    });
    server.on('exit', () => reject(new Error('the server has ended: ' + text)));
  });
}

function run(...args) {
  const done = spawnSync(livetree, args, { encoding: 'utf8' });
  if (done.status !== 0) throw new Error(`livetree ${args.join(' ')}: ${done.stderr}`);
  return done.stdout.trim();
}

async function consolePictures(browser) {
  const data = join(work, 'demo');
  await start(data, 'demo');
  for (const theme of ['light', 'dark']) {
    const page = await browser.newPage({ viewport: { width: 1200, height: 560 }, colorScheme: theme });
    await page.goto(run('console', '--data', data));
    await page.waitForSelector('html[data-ready=signed-in]');
    for (const path of ['/rooms', '/rooms/blue', '/rooms/blue/members']) {
      await page.locator(`[role=treeitem][data-path="${path}"] [data-part=key]`).click();
      await page.keyboard.press('ArrowRight');
      await page.waitForTimeout(500);
    }
    await page.screenshot({ path: join(directory, `console-${theme}.png`) });
    await page.close();
  }
}

async function quickStart(browser) {
  const data = join(work, 'quickstart');
  const port = await start(data, 'serve', '--dev', '--allow-http');
  const manual = readFileSync(new URL('../../../docs/quickstart.md', import.meta.url), 'utf8');
  const text = /```html\n([^]*?)\n```/.exec(manual)[1].replaceAll('localhost:9000', 'localhost:' + port);
  const web = createServer((_, answer) => answer.setHeader('Content-Type', 'text/html').end(text)).listen(0, '127.0.0.1');
  running.push({ kill: () => web.close() });
  await new Promise((resolve) => web.on('listening', resolve));
  const page = await browser.newPage({ viewport: { width: 560, height: 260 } });
  await page.goto(`http://localhost:${web.address().port}/`);
  await page.locator('#text').fill('hello from the browser');
  await page.locator('button').click();
  await page.locator('li').first().waitFor();
  run('push', '/messages', '{"text": "hello from the terminal"}', '--data', data);
  await page.locator('li').nth(1).waitFor(); // it came by the stream
  await page.screenshot({ path: join(directory, 'quickstart.png') });
  await page.close();
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  await consolePictures(browser);
  await quickStart(browser);
} finally {
  await browser.close();
  for (const server of running) {
    server.removeAllListeners?.('exit');
    server.kill('SIGKILL');
  }
  rmSync(work, { recursive: true, force: true });
}
