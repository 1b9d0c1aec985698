/** Real processes on one folder: many at once, one that is stopped in the middle of a write, one that is killed. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FileDriver } from '../../../src/storage/index.ts';
import { indexOf, smallJournals } from './file-driver-bodies.ts';

const CHILD = fileURLToPath(new URL('file-driver-child.ts', import.meta.url));

/** The key of an object that is kept in a journal. */
const inJournal = '0000000000000007';

let folder = '';
let children: ChildProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'store-db-processes-'));
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children = [];
  rmSync(folder, { recursive: true, force: true });
});

interface Child {
  readonly process: ChildProcess;
  readonly lines: string[];
  /** Resolves with the next line that was not taken yet. */
  nextLine(): Promise<string>;
  readonly exited: Promise<number | null>;
}

function start(...args: string[]): Child {
  const child = spawn(process.execPath, ['--import', 'tsx', CHILD, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout });
  reader.on('line', (line) => lines.push(line));
  let taken = 0;
  const exited = Promise.all([once(child, 'exit'), once(reader, 'close')]).then(([[code]]) => code as number | null);
  return {
    process: child,
    lines,
    exited,
    async nextLine() {
      while (lines.length <= taken) await once(reader, 'line');
      return lines[taken++] as string;
    },
  };
}

async function text(driver: FileDriver, key: string): Promise<string> {
  const result = await driver.get(key);
  return result.status === 'found' ? Buffer.from(result.bytes).toString() : result.status;
}

/** Replaces the object so often that every version of before is cleaned away. */
async function replaceOften(driver: FileDriver, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const current = await driver.get('object');
    if (current.status !== 'found') throw new Error(`The object is ${current.status}.`);
    const result = await driver.put('object', Buffer.from(`replacement ${i}`), { if: { etag: current.etag } });
    expect(result.status).toBe('written');
  }
}

/** Returns the numbers of all bodies whose bytes are in the files of a folder. */
function bodiesIn(under: string): number[] {
  const found = new Set<number>();
  for (const name of readdirSync(under)) {
    for (const [, index] of readFileSync(path.join(under, name), 'latin1').matchAll(/this is body ([0-9]+)\n/g)) {
      found.add(Number(index));
    }
  }
  return [...found];
}

async function waitUntilStopped(child: Child): Promise<void> {
  expect(await child.nextLine()).toBe('stopping');
  if (process.platform !== 'linux') return;
  for (;;) {
    const state = /\) (\w)/.exec(readFileSync(`/proc/${child.process.pid}/stat`, 'utf8'))?.[1];
    if (state === 'T') return;
  }
}

describe('FileDriver, in several processes', () => {
  it.each(['counter', inJournal])(
    '16 processes that count by compare-and-swap lose no update, in %s',
    {
      timeout: 60_000,
    },
    async (key) => {
      const driver = new FileDriver(folder);
      await driver.put(key, Buffer.from('0'), { if: 'absent' });
      const workers = Array.from({ length: 16 }, () => start('increment', folder, '10', key));
      expect(await Promise.all(workers.map((worker) => worker.exited))).toEqual(workers.map(() => 0));
      expect(await text(driver, key)).toBe('160');
    },
  );

  it.each([
    ['before it has a token', 1],
    ['between its look and its link', 2],
  ])('a replacement that was stopped %s loses, however much happened meanwhile', async (_, links) => {
    const driver = new FileDriver(folder);
    await driver.put('object', Buffer.from('start'), { if: 'absent' });
    // One link begins the versions, where there are none yet.
    await replaceOften(driver, 1);
    const child = start('stop', folder, 'etag', String(links - 1));
    await waitUntilStopped(child);
    await replaceOften(driver, 40);
    expect(readdirSync(path.join(folder, 'object+'))).not.toContain('3');
    child.process.kill('SIGCONT');
    expect(await child.nextLine()).toBe('lost');
    expect(await child.exited).toBe(0);
    expect(await text(driver, 'object')).toBe('replacement 39');
  });

  it.each([0, 1, 2, 3])('the first replacement of an object, stopped at link %i, loses', async (links) => {
    const driver = new FileDriver(folder);
    await driver.put('object', Buffer.from('start'), { if: 'absent' });
    const child = start('stop', folder, 'etag', String(links));
    await waitUntilStopped(child);
    await replaceOften(driver, 40);
    child.process.kill('SIGCONT');
    expect(await child.nextLine()).toBe('lost');
    expect(await text(driver, 'object')).toBe('replacement 39');
  });

  it.each([0, 1, 2])('a replacement, stopped at link %i, loses if the object had a second life', async (links) => {
    const driver = new FileDriver(folder);
    await driver.put('object', Buffer.from('first life'), { if: 'absent' });
    const child = start('stop', folder, 'etag', String(links));
    await waitUntilStopped(child);
    await driver.delete(['object']);
    expect(await text(driver, 'object')).toBe('missing');
    expect((await driver.put('object', Buffer.from('second life'), { if: 'absent' })).status).toBe('written');
    child.process.kill('SIGCONT');
    expect(await child.nextLine()).toBe('lost');
    expect(await text(driver, 'object')).toBe('second life');
  });

  it('a create that was stopped loses to one that was made meanwhile, and wins if there is none', async () => {
    const driver = new FileDriver(folder);
    const loser = start('stop', folder, 'absent', '0');
    await waitUntilStopped(loser);
    await driver.put('object', Buffer.from('made meanwhile'), { if: 'absent' });
    loser.process.kill('SIGCONT');
    expect(await loser.nextLine()).toBe('lost');
    expect(await text(driver, 'object')).toBe('made meanwhile');
    await driver.delete(['object']);
    const winner = start('stop', folder, 'absent', '0');
    await waitUntilStopped(winner);
    winner.process.kill('SIGCONT');
    expect(await winner.nextLine()).toBe('written');
    expect(await text(driver, 'object')).toBe('written by the one that was stopped');
  });

  it.each([
    ['before append', 'lost'],
    ['after append', 'written'],
  ])('a create in a journal, stopped %s, is %s, however much happened meanwhile', async (where, status) => {
    const driver = new FileDriver({ path: folder, journalPolicy: { maxGrowthBytes: 300 } });
    await driver.put('0000000000000001', Buffer.from('the first'), { if: 'absent' });
    const child = start('stop in journal', folder, inJournal, where);
    await waitUntilStopped(child);
    const own = await driver.put(inJournal, Buffer.from('made meanwhile'), { if: 'absent' });
    expect(own.status).toBe(status === 'lost' ? 'written' : 'lost');
    for (let i = 10; i < 40; i++) {
      await driver.put(String(i).padStart(16, '0'), Buffer.from('x'.repeat(50)), { if: 'absent' });
      if (i > 12) await driver.delete([String(i - 2).padStart(16, '0')]);
    }
    expect(readdirSync(folder)).not.toContain('!journal-1');
    child.process.kill('SIGCONT');
    expect(await child.nextLine()).toBe(status);
    expect(await text(new FileDriver(folder), inJournal)).toBe(
      status === 'lost' ? 'made meanwhile' : 'written by the one that was stopped',
    );
  });

  it('a process that was stopped before it made a journal makes none again that was removed', async () => {
    const driver = new FileDriver({ path: folder, journalPolicy: { maxGrowthBytes: 1 } });
    await driver.put('0000000000000001', Buffer.from('the first'), { if: 'absent' });
    const reader = new FileDriver(folder);
    const child = start('stop in journal', folder, inJournal, '!journal-2');
    await waitUntilStopped(child);
    await driver.put('0000000000000002', Buffer.from('the second'), { if: 'absent' });
    // This process takes journal 2 for the newest.
    expect(await text(reader, '0000000000000002')).toBe('the second');
    await driver.delete(['0000000000000001', '0000000000000002']);
    await driver.put('0000000000000003', Buffer.from('the third'), { if: 'absent' });
    await driver.put('0000000000000004', Buffer.from('the fourth'), { if: 'absent' });
    expect(readdirSync(folder)).not.toContain('!journal-2');
    child.process.kill('SIGCONT');
    await waitUntilStopped(child);
    expect(readdirSync(folder)).not.toContain('!journal-2');
    child.process.kill('SIGCONT');
    expect(await child.nextLine()).toBe('written');
    for (const each of [driver, reader, new FileDriver(folder)]) {
      expect(await text(each, '0000000000000002')).toBe('missing');
      expect(await text(each, '0000000000000004')).toBe('the fourth');
      expect(await text(each, inJournal)).toBe('written by the one that was stopped');
    }
  });

  it.each([0, 16])(
    'kill -9 leaves everything that was acknowledged, and nothing torn, in names of %i digits',
    {
      timeout: 60_000,
    },
    async (digits) => {
      const driver = new FileDriver({ path: folder, journalPolicy: smallJournals });
      const keyOf = (index: number): string => `objects/${String(index).padStart(digits, '0')}`;
      const acknowledged = new Set<number>();
      let newest = -1;
      for (let round = 0; round < 6; round++) {
        const writer = start('write', folder, String(round * 1000), String(digits));
        await writer.nextLine();
        const started = performance.now();
        const lifeMs = 20 + 300 * Math.random();
        while (performance.now() - started < lifeMs) {
          for (const { key } of (await driver.list('objects/')).entries.slice(-5)) {
            const object = await driver.get(key);
            expect(object.status === 'missing' || object.status === 'found').toBe(true);
            const torn = object.status === 'found' && key !== keyOf(indexOf(object.bytes) ?? -1);
            expect(torn, key).toBe(false);
          }
          const register = await driver.get('register');
          if (register.status !== 'found') continue;
          const seen = indexOf(register.bytes) ?? -2;
          expect(seen).toBeGreaterThanOrEqual(newest);
          newest = seen;
        }
        const isForgetting = digits > 0 && round % 2 === 1;
        // Two processes forget at the same time, one of which is killed.
        const forgotten = isForgetting ? driver.forget('objects/') : undefined;
        writer.process.kill('SIGKILL');
        await writer.exited;
        await forgotten;
        for (const line of writer.lines) {
          const [what, index] = line.split(' ') as [string, string];
          if (what === 'created') acknowledged.add(Number(index));
          else newest = Math.max(newest, Number(index));
        }
        const register = await driver.get('register');
        expect(register.status === 'found' && (indexOf(register.bytes) as number)).toBeGreaterThanOrEqual(newest);
      }
      expect(acknowledged.size).toBeGreaterThan(6);
      for (const index of acknowledged) {
        // Every third object is deleted again, and that may or may not have been done.
        const object = await driver.get(keyOf(index));
        const isWhole = object.status === 'found' && indexOf(object.bytes) === index;
        expect(isWhole || (object.status === 'missing' && index % 3 === 0), String(index)).toBe(true);
      }
      if (digits === 0) return;
      await driver.forget('objects/');
      const there = new Set((await driver.list('objects/')).entries.map(({ key }) => Number(key.slice(-digits))));
      expect(bodiesIn(path.join(folder, 'objects@')).filter((index) => !there.has(index))).toEqual([]);
    },
  );
});
