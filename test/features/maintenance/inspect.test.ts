/** The calls that show how a database is stored: commits of the log, blocks of trees, and objects by what they hold. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { BlockInfo, Database } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/index.ts';

const people = {
  name: 'people',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar, maxLength: 40 },
    age: { typeId: Types.uint8 },
  },
  primaryKey: 'id',
  indexes: ['age', { name: 'initial', function: 'initial', typeId: Types.varchar }],
} as const;
const rowCount = 20_000;
const rowOf = (id: number): { id: number; name: string; age: number } => ({ id, name: `Person ${id}`, age: id % 100 });

const driver = new MemoryDriver();
let db: Database;

const options = {
  dbPrefix: 'db',
  driver,
  logLevel: 'silent',
  blockSizeBytes: 16_384,
  polling: 'onDemand',
  mergePolicy: { minCommits: 1000 },
} as const;

async function insert(from: number, count: number): Promise<void> {
  const batch = db.batch();
  for (let id = from; id < from + count; id++) void batch.insert(people, rowOf(id));
  await batch.flush();
}

beforeAll(async () => {
  db = StoreDb({ ...options, nodeId: 7 });
  db.registerSchema(people);
  db.registerFunction('initial', ({ name }) => (String(name) === 'Person 3' ? 3 : String(name).at(-1)), 1);
  await db.start();
  await insert(0, rowCount);
  await db.checkpoint();
  await insert(rowCount, 1);
  await insert(rowCount + 1, 2);
});
afterAll(() => db.stop());

describe('the log', () => {
  it('lists the newest commits first, a page at a time, and says which are merged', async () => {
    const [newest, second, ...rest] = await db.log();
    expect(newest).toMatchObject({ position: db.position, nodeId: 7, flushes: 1, merged: false, rows: { people: 2 } });
    expect(newest?.writtenAt.getTime()).toBeGreaterThan(Date.now() - 60_000);
    expect(second).toMatchObject({ position: db.position - 1, merged: false, rows: { people: 1 } });
    expect(rest.map(({ position, merged, rows }) => [position, merged, rows])).toEqual([
      [db.position - 2, true, { people: rowCount }],
    ]);
    expect(await db.log({ before: db.position, limit: 1 })).toEqual([second]);
    expect(await db.log({ before: 1 })).toEqual([]);
  });

  it('takes a request for each merged commit, and none for the pending ones', async () => {
    await db.refresh();
    const requests = (): number => {
      const { get, getMissing, getUnchanged, list } = db.stats().requests;
      return get + getMissing + getUnchanged + list;
    };
    const idle = requests();
    await db.log({ limit: 2 });
    const look = requests() - idle;
    await db.log();
    expect(requests() - idle - 2 * look).toBe(1);
  });

  it('ends where garbage collection has deleted commits', async () => {
    const own = new MemoryDriver();
    const other = StoreDb({ ...options, driver: own, nodeId: 1 });
    other.registerSchema({ ...people, indexes: [] });
    await other.start();
    for (let id = 0; id < 3; id++) {
      const batch = other.batch();
      await batch.insert('people', rowOf(id));
      await batch.flush();
      if (id < 2) await other.checkpoint();
    }
    await other.gc({ logRetentionMs: 0 });
    expect((await other.log()).map(({ position }) => position)).toEqual([3]);
    await other.stop();
  });
});

describe('the blocks', () => {
  const childrenOf = ({ entries }: BlockInfo): string[] => entries.flatMap(({ child }) => child?.name ?? []);

  async function blocksBelow(index?: string): Promise<BlockInfo[]> {
    const root = await db.block(people, index === undefined ? {} : { index });
    const blocks: BlockInfo[] = [];
    const names: (string | undefined)[] = [undefined];
    for (let name = names.shift(), first = true; first || name !== undefined; name = names.shift(), first = false) {
      const block = first
        ? root
        : await db.block('people', { ...(index !== undefined && { index }), ...(name !== undefined && { name }) });
      if (block === null) break;
      blocks.push(block);
      names.push(...childrenOf(block));
    }
    return blocks;
  }

  it('lead from the root of a table to each of its rows', async () => {
    const blocks = await blocksBelow();
    const [root] = blocks;
    expect(root).toMatchObject({ kind: 'inner', rows: rowCount, generation: db.stats().log?.generation });
    const leaves = blocks.filter(({ level }) => level === 0);
    expect(leaves.flatMap(({ entries }) => entries.map(({ row }) => row))).toEqual(
      Array.from({ length: rowCount }, (_, id) => rowOf(id)),
    );
    expect(leaves.flatMap(({ entries }) => entries.map(({ key }) => key)).slice(0, 3)).toEqual([0, 1, 2]);
    expect(leaves[0]).toMatchObject({ kind: 'table', schemaVersion: 1 });
    for (const { level, sizeBytes, entries, name } of blocks) {
      expect([level, sizeBytes > 0, entries.length > 0, name.startsWith('data/people/')]).toContain(true);
    }
  });

  it('show the entries of indexes, with results of other types', async () => {
    const ages = (await blocksBelow('age')).filter(({ level }) => level === 0);
    const keys = ages.flatMap(({ entries }) => entries.map(({ key }) => key));
    expect(keys).toHaveLength(rowCount);
    expect(keys.slice(0, 2)).toEqual([
      [0, 0],
      [0, 100],
    ]);
    const initials = (await blocksBelow('initial')).filter(({ level }) => level === 0);
    const results = initials.flatMap(({ entries }) => entries.map(({ key }) => key as unknown[]));
    expect(results[0]).toEqual(['0', 0]);
    expect(results.at(-1)).toEqual(['(another type)', 3]);
  });

  it('are read in any order, and refused if they are not of the tree or not there', async () => {
    const [, second] = childrenOf((await db.block(people)) as BlockInfo);
    expect(await db.block(people, { name: second as string })).toMatchObject({ name: second, level: 0 });
    await expect(db.block(people, { index: 'age', name: second as string })).rejects.toThrow(
      'blocks of this tree begin with indexes/people/age/',
    );
    await expect(db.block(people, { name: 'data/people/000000000009-0000000000000000' })).rejects.toThrow(
      'Begin at the root again',
    );
    await expect(db.block('peopel')).rejects.toThrow('did you mean `people`?');
    await expect(db.block(people, { index: 'agee' })).rejects.toThrow('did you mean `age`?');
    await expect(db.block(people, { name: '../other/block0' })).rejects.toThrow('begin with data/people/');
    await expect(db.block(people, { name: 'data/people/../../other/block0' })).rejects.toThrow('no name of a block');
  });

  it('are none where nothing is merged', async () => {
    const own = StoreDb({ ...options, driver: new MemoryDriver(), nodeId: 1 });
    own.registerSchema({ ...people, indexes: [] });
    await own.start();
    await expect(own.block('people')).rejects.toThrow('not stored');
    const batch = own.batch();
    await batch.insert('people', rowOf(1));
    await batch.flush();
    expect(await own.block('people')).toBe(null);
    await own.stop();
  });
});

describe('the objects', () => {
  it('are all counted, by table and index, with their bytes as stored', async () => {
    const seen: number[] = [];
    const groups = await db.objects({ onProgress: ({ objects }) => void seen.push(objects) });
    const { entries } = await driver.list('db/');
    const total = (of: 'objects' | 'sizeBytes'): number => groups.reduce((sum, group) => sum + group[of], 0);
    expect(total('objects')).toBe(entries.length);
    expect(total('sizeBytes')).toBe(entries.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0));
    expect(seen).toEqual([entries.length]);
    const found = groups.map(({ kind, table, index }) => [kind, table, index].filter(Boolean).join(' '));
    expect(found.toSorted()).toEqual(
      expect.arrayContaining(['index people age', 'index people initial', 'log', 'root', 'rows people']),
    );
    expect(groups.map(({ sizeBytes }) => sizeBytes)).toEqual(
      groups.map(({ sizeBytes }) => sizeBytes).toSorted((a, b) => b - a),
    );
  });

  it('include objects that are not of the database', async () => {
    await driver.put('db/notes.txt', new Uint8Array(3), { if: 'absent' });
    expect(await db.objects()).toContainEqual({ kind: 'other', objects: 1, sizeBytes: 3 });
  });
});

it('a replica shows them too, and a database that is not running none', async () => {
  const replica = StoreDb({ dbPrefix: 'db', nodeId: 0, role: 'replica', driver, logLevel: 'silent' });
  await expect(replica.log()).rejects.toThrow('db.log()');
  await replica.start();
  expect(await replica.log()).toEqual(await db.log());
  expect((await replica.block('people'))?.rows).toBe(rowCount);
  expect((await replica.objects()).length).toBeGreaterThan(3);
  await replica.stop();
  await expect(replica.block('people')).rejects.toThrow('db.block()');
});
