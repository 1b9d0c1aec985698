/** Functions in processes of their own that are frozen and killed, while other functions write, merge and collect garbage. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/api/database.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import { add, contents, intervalMs, openFunction } from './function-database.ts';
import { bundleProgram } from './program-bundle.ts';

let installation = '';
let program = '';
let folder = '';
let other: Database;
let children: ChildProcess[] = [];

beforeAll(async () => {
  installation = await mkdtemp(path.join(tmpdir(), 'store-db-function-'));
  program = bundleProgram(new URL('function-child.ts', import.meta.url), installation);
});
afterAll(() => rm(installation, { recursive: true, force: true }));
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'store-db-functions-'));
  other = await openFunction(new FileDriver(folder));
  await add(other, 0);
});
afterEach(async () => {
  for (const child of children) child.kill('SIGKILL');
  children = [];
  await other.stop();
  await rm(folder, { recursive: true, force: true });
});

interface Child {
  readonly process: ChildProcess;
  readonly ended: Promise<unknown>;
  /** Sends a call, and returns its answer. */
  call(line: string): Promise<string>;
  /** Resolves with the next line. */
  next(): Promise<string>;
}

async function start(): Promise<Child> {
  const child = spawn(process.execPath, ['--no-warnings', program, folder], { stdio: ['pipe', 'pipe', 'inherit'] });
  children.push(child);
  // A call may come too late for a process that was killed.
  child.stdin.on('error', () => undefined);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => (await lines.next()).value as string;
  const call = (line: string): Promise<string> => {
    child.stdin.write(`${line}\n`);
    return next();
  };
  const ended = once(child, 'exit');
  expect(await next()).toBe('started');
  return { process: child, ended, call, next };
}

/** Commits of another function, which also merges them, and deletes the log. */
async function othersGoOn(): Promise<void> {
  for (let id = 1000; id < 1020; id++) await add(other, id);
  await other.checkpoint();
  await other.gc({ loopGraceMs: 0, logRetentionMs: 0, graceMs: 0 });
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

async function expectEntries(ids: readonly number[]): Promise<void> {
  const fresh = await openFunction(new FileDriver(folder));
  expect(await contents(fresh)).toEqual({ ids, count: ids.length });
  expect((await fresh.verify({ deep: true })).findings).toEqual([]);
  await fresh.stop();
}

/** Commits until the next commit of the function is the eighth that waits, which merges. */
async function fill(child: Child): Promise<void> {
  for (let id = 1; id < 7; id++) expect(await child.call(`add ${id}`)).toBe('added');
}

const moments = [
  ['before', 'committed'],
  ['after', 'committed'],
  ['before', 'block0'],
  ['after', 'block0'],
] as const;

describe('a function that is frozen', () => {
  it('between two calls shows the newest state when it is thawed, and commits', { timeout: 60_000 }, async () => {
    const child = await start();
    expect(await child.call('add 1')).toBe('added');
    child.process.kill('SIGSTOP');
    await othersGoOn();
    await sleep(3 * intervalMs);
    child.process.kill('SIGCONT');
    const ids = [0, 1, ...range(1000, 1020)];
    expect(JSON.parse(await child.call('contents'))).toEqual({ ids, count: ids.length });
    child.process.kill('SIGSTOP');
    await add(other, 1020);
    await sleep(3 * intervalMs);
    child.process.kill('SIGCONT');
    expect(await child.call('add 2')).toBe('added');
    await expectEntries([0, 1, 2, ...range(1000, 1021)]);
  });

  it.each(moments)(
    'in a commit, %s the put of %s, commits once, and shows the newest state',
    { timeout: 60_000 },
    async (when, name) => {
      const child = await start();
      await fill(child);
      expect(await child.call(`signal ${when} ${name} SIGSTOP`)).toBe('ready');
      expect(await child.call('add 7')).toBe('stopping');
      await othersGoOn();
      await sleep(3 * intervalMs);
      child.process.kill('SIGCONT');
      expect(await child.next()).toBe('added');
      await sleep(3 * intervalMs);
      const ids = [...range(0, 8), ...range(1000, 1020)];
      expect(JSON.parse(await child.call('contents'))).toEqual({ ids, count: ids.length });
      expect(await child.call('add 8')).toBe('added');
      await expectEntries([...range(0, 9), ...range(1000, 1020)]);
    },
  );
});

describe('a function that is killed', () => {
  it.each(moments)(
    'in a commit, %s the put of %s, leaves the commit whole or not at all, and others go on',
    { timeout: 60_000 },
    async (when, name) => {
      const child = await start();
      await fill(child);
      expect(await child.call(`signal ${when} ${name} SIGKILL`)).toBe('ready');
      expect(await child.call('add 7')).toBe('stopping');
      await child.ended;
      const isCommitted = name === 'block0' || when === 'after';
      await expectEntries(range(0, isCommitted ? 8 : 7));
      await othersGoOn();
      await expectEntries([...range(0, isCommitted ? 8 : 7), ...range(1000, 1020)]);
    },
  );
});
