/** Rows that are written as they are already: none of them is in a commit, and nobody's change is lost for that. */
import { beforeEach, describe, expect, it } from 'vitest';
import { Types } from '../../../src/index.ts';
import { decodeCommit } from '../../../src/format/commit.ts';
import { commitName } from '../../../src/format/object-names.ts';
import { Nodes, prefix } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';

const files = {
  name: 'files',
  version: 1,
  fields: { id: { typeId: Types.int32 }, name: { typeId: Types.varchar }, body: { typeId: Types.blob } },
  primaryKey: 'id',
} as const;

const ann = { id: 1, name: 'Ann', age: 30 };
const bob = { id: 2, name: 'Bob', age: 40 };

let nodes: Nodes;
let a: TestNode;

async function open(nodeId: number): Promise<TestNode> {
  const node = nodes.make(nodeId);
  node.db.registerSchema(files);
  await nodes.run(node.db.start());
  return node;
}

function upsert({ db }: TestNode, ...rows: object[]): Promise<void> {
  const batch = db.batch();
  for (const row of rows) void batch.upsert('people', row);
  return nodes.run(batch.flush());
}

/** How many commits there are, and the number of rows in the last of them. */
async function log(): Promise<{ commits: number; rows: number }> {
  await nodes.run(a.db.refresh());
  const commits = a.db.position;
  const found = await nodes.run(nodes.store.get(`${prefix}/${commitName(commits)}`));
  if (found.status !== 'found') throw new Error(`Slot ${commits} is empty`);
  const { members } = decodeCommit(commits, found.bytes);
  const changes = members.flatMap((member) => member.changes);
  return { commits, rows: changes.reduce((sum, { node }) => sum + node.count, 0) };
}

beforeEach(async () => {
  nodes = new Nodes();
  a = await open(0);
  await upsert(a, ann, bob);
});

describe.each(['not merged', 'merged'])('rows that are there as they are, %s,', (stage) => {
  beforeEach(async () => {
    if (stage === 'merged') await nodes.run(a.db.checkpoint());
  });

  it('are not written: no commit, nor anything else', async () => {
    const before = await log();
    a.driver.takeLines();
    await upsert(a, { ...ann }, { ...bob });
    expect(a.driver.takeLines().filter((line) => line.startsWith('put'))).toEqual([]);
    expect(await log()).toEqual(before);
    expect(await nodes.run(a.db.query('people').execute())).toEqual([ann, bob]);
  });

  it('are left out of a commit of others', async () => {
    const { commits } = await log();
    await upsert(a, ann, { ...bob, age: 41 }, { id: 3, name: 'Cid', age: 50 });
    expect(await log()).toEqual({ commits: commits + 1, rows: 2 });
    const rows = [ann, { ...bob, age: 41 }, { id: 3, name: 'Cid', age: 50 }];
    expect(await nodes.run(a.db.query('people').execute())).toEqual(rows);
  });

  it('are not written by an update either, nor by operations that together change nothing', async () => {
    const before = await log();
    const batch = a.db.batch();
    void batch.update('people', { id: 1, age: 30 });
    void batch.update('people', { id: 2, age: 41 });
    void batch.update('people', { id: 2, age: 40 });
    await nodes.run(batch.flush());
    expect(await log()).toEqual(before);
  });

  it('are written if another node has changed them, even unseen by this one', async () => {
    const b = await open(1);
    await upsert(b, { ...ann, age: 31 });
    // This node still shows the row as it writes it.
    expect(await nodes.run(a.db.get('people', 1))).toEqual(ann);
    await upsert(a, ann);
    await nodes.run(b.db.refresh());
    expect(await nodes.run(b.db.get('people', 1))).toEqual(ann);
  });

  it('are written where another node changes them while the commit looks for its slot', async () => {
    const b = await open(1);
    await Promise.all([upsert(b, { ...ann, age: 31 }), upsert(a, ann, { ...bob, age: 41 })]);
    await nodes.run(Promise.all([a.db.refresh(), b.db.refresh()]));
    const rows = await nodes.run(a.db.query('people').execute());
    expect(await nodes.run(b.db.query('people').execute())).toEqual(rows);
    // One after the other, in either order.
    expect([ann.age, 31]).toContain(rows[0]?.['age']);
    expect(rows[1]).toEqual({ ...bob, age: 41 });
  });
});

it('rows that a flush in the same commit changes are written', async () => {
  const { commits } = await log();
  const first = a.db.batch();
  const second = a.db.batch();
  void first.upsert('people', { ...ann, age: 31 });
  void second.upsert('people', ann);
  await nodes.run(Promise.all([first.flush(), second.flush()]));
  expect(await log()).toEqual({ commits: commits + 1, rows: 2 });
  expect(await nodes.run(a.db.get('people', 1))).toEqual(ann);
});

it('a transaction without anything to write is still validated by its reads', async () => {
  const b = await open(1);
  let attempts = 0;
  await nodes.run(
    a.db.transaction(async (tx) => {
      attempts++;
      const read = await tx.get('people', 2);
      if (attempts === 1) await b.db.transaction((other) => other.upsert('people', { ...bob, age: 41 }));
      // The row that it writes is there as it is; the row that it has read is another one by now.
      await tx.upsert('people', { ...ann, age: attempts === 1 ? ann.age : read?.['age'] });
    }),
  );
  expect(attempts).toBe(2);
  expect(await nodes.run(a.db.get('people', 1))).toEqual({ ...ann, age: 41 });
});

it('an increment by nothing is not written', async () => {
  const before = await log();
  const batch = a.db.batch();
  void batch.increment('people', 1, { age: 0 });
  void batch.increment('people', 2, { age: 5 });
  void batch.increment('people', 2, { age: -5 });
  await nodes.run(batch.flush());
  expect(await log()).toEqual(before);
});

it('triggers fire for a row that is not written, and their additions are written', async () => {
  a.db.registerTrigger('people', 'update', async (row, batch) => {
    await batch.insert('files', { id: row['id'], name: 'seen' });
  });
  const { commits } = await log();
  await upsert(a, ann);
  expect(await log()).toEqual({ commits: commits + 1, rows: 1 });
  expect(await nodes.run(a.db.query('files').count())).toBe(1);
});

it('a row with the same blob is not written, and one with a new blob of the same bytes is', async () => {
  const write = async (row: object): Promise<void> => {
    const batch = a.db.batch();
    void batch.upsert('files', row);
    await nodes.run(batch.flush());
  };
  await write({ id: 1, name: 'n', body: a.db.Blob('text') });
  const row = (await nodes.run(a.db.get('files', 1))) as Record<string, unknown>;
  const { commits } = await log();
  await write(row);
  expect((await log()).commits).toBe(commits);
  await write({ ...row, body: a.db.Blob('text') });
  expect((await log()).commits).toBe(commits + 1);
  expect(await nodes.run(a.db.verify({ deep: true }))).toMatchObject({ ok: true });
});

it('many rows that are there as they are leave other work its turns, and are not written', async () => {
  const rows = Array.from({ length: 5000 }, (_, id) => ({ id, name: `n${id}`, age: id % 100 }));
  await upsert(a, ...rows);
  await nodes.run(a.db.checkpoint());
  const b = await open(1);
  const before = await log();
  await upsert(b, ...rows);
  expect(await log()).toEqual(before);
}, 60_000);
