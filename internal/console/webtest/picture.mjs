// Makes the pictures of the console in the README: node picture.mjs LINK LINK DIRECTORY, with
// two links that livetree console prints, since each is good for one theme.
import { chromium } from 'playwright-core';

const [light, dark, directory] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
for (const [theme, link] of [['light', light], ['dark', dark]]) {
  const page = await browser.newPage({ viewport: { width: 1200, height: 560 }, colorScheme: theme });
  await page.goto(link);
  await page.waitForSelector('html[data-ready=signed-in]');
  for (const path of ['/rooms', '/rooms/lobby', '/rooms/lobby/members']) {
    await page.locator(`[role=treeitem][data-path="${path}"] [data-part=key]`).click();
    await page.keyboard.press('ArrowRight');
    await page.waitForTimeout(300);
  }
  await page.screenshot({ path: `${directory}/console-${theme}.png` });
  await page.close();
}
await browser.close();
