/** The example of shared to-do lists, in two windows of Chromium on two processes with one folder. */
import { mkdtempSync, rmSync } from 'node:fs';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Browser } from 'playwright-core';
import { openPage, startChromium } from './chromium.ts';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
const folder = mkdtempSync(path.join(tmpdir(), 'shared-todos-'));
const processes: ChildProcess[] = [];
let browser: Browser;

/** Starts a process, and returns the URL of its page. */
async function start(port = 0): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const child = spawn(process.execPath, ['--import', 'tsx', 'examples/shared-todos/main.ts', folder, String(port)], {
    cwd: repository,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  processes.push(child);
  let text = '';
  for await (const part of child.stdout) {
    text += String(part);
    const [url] = /http:\/\/localhost:\d+\//.exec(text) ?? [];
    if (url !== undefined) return { child, url };
  }
  throw new Error(`The process ended after "${text}".`);
}

beforeAll(async () => {
  browser = await startChromium();
});
afterAll(async () => {
  await browser.close();
  for (const child of processes) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

it('shows in each window what is written in the other, and goes on after its process was away', async () => {
  const [one, two] = [await start(), await start()];
  const faults: string[] = [];
  const first = await openPage(browser, faults);
  const second = await openPage(browser, faults);
  await first.goto(one.url);
  await second.goto(two.url);
  await first.locator('input[type=text]').fill('buy milk');
  await first.locator('input[type=text]').press('Enter');
  await second.locator('li', { hasText: 'buy milk' }).waitFor();
  await second.locator('input[type=checkbox]').click();
  await first.locator('li.done', { hasText: 'buy milk' }).waitFor();
  expect(faults).toEqual([]);

  one.child.kill('SIGTERM');
  await once(one.child, 'exit');
  await first.locator('#status', { hasText: 'reconnecting' }).waitFor();
  await first.locator('li.done', { hasText: 'buy milk' }).waitFor();
  await second.locator('input[type=text]').fill('call Ada');
  await second.locator('input[type=text]').press('Enter');
  await second.locator('li', { hasText: 'call Ada' }).waitFor();
  await start(Number(new URL(one.url).port));
  await first.locator('li', { hasText: 'call Ada' }).waitFor();
  await first.locator('#status', { hasText: 'live' }).waitFor();
  await first.context().close();
  await second.context().close();
});
