/** Many databases, some open at a time: `forEachDatabase()`. */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { forEachDatabase, MemoryBudget, StoreDb, Types } from '../../../src/index.ts';
import type { DatabasesProgress } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';

const notes = { name: 'notes', version: 1, fields: { id: { typeId: Types.uint32 } }, primaryKey: 'id' } as const;
const notes2 = {
  ...notes,
  version: 2,
  fields: { ...notes.fields, stars: { typeId: Types.uint8, default: 3 } },
} as const;
const logLevel = 'silent';

let driver: MemoryDriver;

async function create(prefixes: readonly string[]): Promise<void> {
  for (const dbPrefix of prefixes) {
    const db = StoreDb({ dbPrefix, nodeId: 0, driver, logLevel, polling: 'onDemand' });
    db.registerSchema(notes);
    await db.start();
    await db.transaction((tx) => tx.insert('notes', { id: prefixes.indexOf(dbPrefix) }));
    await db.checkpoint();
    await db.stop();
  }
}

function names(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `tenants/${i}`);
}

beforeEach(() => {
  driver = new MemoryDriver();
});

describe('forEachDatabase()', () => {
  it('opens each once, no more at a time than the limit, returns the results, and stops them', async () => {
    const prefixes = names(20);
    await create(prefixes);
    const memory = new MemoryBudget(64 * 1024 * 1024);
    let [open, most] = [0, 0];
    const progress: DatabasesProgress[] = [];
    const options = {
      driver,
      logLevel,
      memory,
      concurrency: 3,
      onProgress: (each: DatabasesProgress) => progress.push(each),
    } as const;
    const report = await forEachDatabase(
      [...prefixes, 'tenants/0'],
      async (db, prefix) => {
        most = Math.max(most, ++open);
        expect(memory.stats().instances).toBeLessThanOrEqual(3);
        db.registerSchema(notes);
        const rows = await db.query('notes').execute();
        open--;
        return `${prefix} ${rows.map(({ id }) => String(id)).join()}`;
      },
      options,
    );
    expect([...report.results]).toEqual(prefixes.map((prefix, i) => [prefix, `${prefix} ${i}`]));
    expect([report.failed, report.skipped, most, memory.stats().instances]).toEqual([[], [], 3, 0]);
    expect(progress.map(({ done }) => done)).toEqual(prefixes.map((_, i) => i + 1));
    expect(progress.every(({ total, failed }) => total === 20 && failed === 0)).toBe(true);
  });

  it('goes on where one fails, and says which', async () => {
    await create(names(4));
    const report = await forEachDatabase(
      ['tenants/0', 'tenants/9', 'tenants/1', 'tenants/2', 'tenants/3'],
      (_, prefix) => {
        if (prefix === 'tenants/2') throw new Error('no good');
        return prefix.length;
      },
      { driver, logLevel },
    );
    expect([...report.results.keys()]).toEqual(['tenants/0', 'tenants/1', 'tenants/3']);
    expect(report.failed.map(({ prefix, error }) => [prefix, (error as Error).message.split(',')[0]])).toEqual([
      ['tenants/9', 'There is no database under tenants/9/'],
      ['tenants/2', 'no good'],
    ]);
    expect(report.failed[0]?.error).toMatchObject({
      code: 'NOT_A_DATABASE',
      message: expect.stringContaining('create') as string,
    });
    // None was made of a name that was wrong.
    expect((await driver.list('tenants/9/')).entries).toEqual([]);
  });

  it('creates missing databases on request', async () => {
    const report = await forEachDatabase(names(3), () => true, { driver, logLevel, create: true });
    expect([...report.results.keys()]).toEqual(names(3));
    await expect(driver.get('tenants/2/block0')).resolves.toMatchObject({ status: 'found' });
  });

  it('begins with no other one once it is asked to stop', async () => {
    await create(names(6));
    const stopping = new AbortController();
    const report = await forEachDatabase(
      names(6),
      (_, prefix) => {
        if (prefix === 'tenants/1') stopping.abort();
      },
      { driver, logLevel, concurrency: 1, signal: stopping.signal },
    );
    expect([...report.results.keys()]).toEqual(['tenants/0', 'tenants/1']);
    expect(report.skipped).toEqual(['tenants/2', 'tenants/3', 'tenants/4', 'tenants/5']);
  });

  it('brings all to a new version', async () => {
    const prefixes = names(12);
    await create(prefixes);
    const report = await forEachDatabase(
      prefixes,
      async (db) => {
        db.registerSchema(notes2);
        await db.setTargetSchemaVersion('notes', 2);
        while ((await db.migrationStatus('notes')).state === 'building') await sleep(10);
        await db.finishMigration('notes', { force: true });
      },
      { driver, logLevel, writeForwardInterval: 10 },
    );
    expect(report.failed).toEqual([]);
    const read = await forEachDatabase(
      prefixes,
      async (db) => {
        db.registerSchema(notes2);
        return [(await db.migrationStatus('notes')).from, await db.query(notes2).execute()];
      },
      { driver, logLevel },
    );
    expect([...read.results.values()]).toEqual(prefixes.map((_, i) => [2, [{ id: i, stars: 3 }]]));
  });

  it('opens each with two reads, and writes nothing where nothing is written', async () => {
    await create(names(5));
    const requests: string[] = [];
    const report = await forEachDatabase(
      names(5),
      (db) => {
        db.registerSchema(notes);
        return db.query(notes).count();
      },
      { driver, logLevel, onRequest: ({ kind }) => requests.push(kind) },
    );
    expect([...report.results.values()]).toEqual([1, 1, 1, 1, 1]);
    expect(requests).toEqual(Array.from({ length: 10 }, () => 'get'));
  });

  it.each([
    ['concurrency', names(1), { concurrency: 0 }],
    ['concurrency', names(1), { concurrency: 257 }],
    ['concurency', names(1), { concurency: 3 }],
    ['dbPrefix', ['good', 'bad/'], {}],
    ['writeForwardInterval', [], { writeForwardInterval: -1 }],
    ['prefixes', 'tenants', {}],
  ])('refuses a wrong %s before it opens any', async (option, prefixes, more) => {
    await create(['good']);
    let opened = 0;
    const visited = forEachDatabase(prefixes, () => opened++, { driver, logLevel, ...more });
    await expect(visited).rejects.toMatchObject({ code: 'INVALID_OPTION', option });
    expect(opened).toBe(0);
  });
});
