/** Reads of a version whose rows are made up to some key: rows on either side of it, and later changes. */
import { beforeEach, describe, expect, it } from 'vitest';
import { Fleet, intervalMs } from './fleet.ts';
import type { Member } from './fleet.ts';
import { users1, users2 } from './versions.ts';
import type { Row } from './versions.ts';

const rowCount = 600;

let fleet: Fleet;
let one: Member;
let two: Member;
/** What the new version is to see, by key. */
let expected: Map<number, Row>;

/** Half of the rows are made, and for the next minutes hardly any more. Nothing is merged unless a test says so. */
beforeEach(async () => {
  fleet = new Fleet();
  const lazy = { mergePolicy: { minCommits: 1000, maxWaitMs: 3_600_000 } };
  one = await fleet.open(1, [users1], lazy);
  const rows = Array.from({ length: rowCount }, (_, id) => ({ id: id * 2, name: `name ${id}`, age: id % 3, old: '' }));
  await fleet.write(one, 'insert', rows);
  await fleet.run(one.db.checkpoint());
  expected = new Map(rows.map(({ id, name, age }) => [id, { id, name, age, email: null, level: 3 }]));
  two = await fleet.open(2, [users1, users2], lazy);
  await fleet.run(two.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 200 }));
  for (let rowsDone = 0; rowsDone < rowCount / 2; await fleet.advance(intervalMs / 4)) {
    ({ rowsDone } = await fleet.status(two));
  }
  await fleet.run(two.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 1 }));
  await fleet.advance(intervalMs * 2);
  const { state, rowsDone } = await fleet.status(two);
  expect(state).toBe('building');
  expect(rowsDone).toBeLessThan(rowCount - 100);
});

async function oldWrites(rows: readonly { id: number; name: string; age: number }[]): Promise<void> {
  await fleet.write(one, 'upsert', rows);
  for (const row of rows) {
    const before = expected.get(row.id) ?? { email: null, level: 3 };
    expected.set(row.id, { ...before, ...row });
  }
}

async function newWrites(rows: readonly { id: number; name: string; age: number; email: string }[]): Promise<void> {
  await fleet.write(two, 'upsert', rows);
  for (const row of rows) expected.set(row.id, { level: 3, ...expected.get(row.id), ...row });
}

/** Everything that can be read, in every way. */
async function expectAll(): Promise<void> {
  await fleet.run(two.db.refresh());
  const { db } = two;
  const all = [...expected.values()].toSorted((a, b) => Number(a['id']) - Number(b['id']));
  const query = () => db.query('users');
  expect(await fleet.run(query().execute())).toEqual(all);
  expect(await fleet.run(query().count())).toBe(all.length);
  expect(await fleet.run(query().orderBy('id', 'desc').execute())).toEqual(all.toReversed());
  for (const [from, to] of [
    [0, 100],
    [500, 700],
    [1100, 1200],
    [100, 1100],
  ] as const) {
    const range = () => query().where('id', '>=', from).where('id', '<', to);
    const within = all.filter(({ id }) => Number(id) >= from && Number(id) < to);
    expect(await fleet.run(range().execute())).toEqual(within);
    expect(await fleet.run(range().count())).toBe(within.length);
    expect(await fleet.run(range().orderBy('id', 'desc').limit(5).execute())).toEqual(within.toReversed().slice(0, 5));
  }
  for (const age of [0, 1, 2, 7, 49, 99]) {
    const withAge = all.filter((row) => row['age'] === age);
    expect(await fleet.run(query().where('age', '=', age).execute())).toEqual(withAge);
    expect(await fleet.run(query().where('age', '=', age).count())).toBe(withAge.length);
  }
  for (const id of [0, 1, 2, 3, 4, 601, 602, 1198, 1199])
    expect(await fleet.run(db.get('users', id)), `${id}`).toEqual(expected.get(id));
}

/** What both versions write on both sides of the bound. */
async function writeAround(): Promise<void> {
  await oldWrites([
    { id: 1, name: 'old, under', age: 99 },
    { id: 2, name: 'changed, under', age: 99 },
    { id: 1199, name: 'old, above', age: 7 },
    { id: 1198, name: 'changed, above', age: 7 },
  ]);
  await newWrites([
    { id: 3, name: 'new, under', age: 99, email: 'a' },
    { id: 4, name: 'changed, under', age: 0, email: 'b' },
    { id: 1197, name: 'new, above', age: 99, email: 'c' },
    { id: 1196, name: 'changed, above', age: 0, email: 'd' },
  ]);
  // Over each other's rows, and the old one's only after the new one's.
  await oldWrites([
    { id: 4, name: 'by both', age: 49 },
    { id: 1196, name: 'by both', age: 49 },
  ]);
  const gone = [6, 8, 1190, 1192];
  await fleet.deleteRows(one, gone.slice(0, 1));
  await fleet.deleteRows(two, gone.slice(1, 3));
  await fleet.deleteRows(one, gone.slice(3));
  for (const id of gone) expected.delete(id);
}

describe('half of a version', () => {
  it('shows all rows', async () => {
    await expectAll();
  });

  it('shows later writes, before and after they are merged', async () => {
    await writeAround();
    await expectAll();
    await fleet.run(one.db.checkpoint());
    await expectAll();
    await fleet.advance(20 * intervalMs);
    expect((await fleet.status(two)).state).toBe('building');
    await expectAll();
    expect(await fleet.findings(two)).toEqual([]);
  });

  it('shows writes of the new version on both sides of the last row that was made', async () => {
    const { rowsDone } = await fleet.status(two);
    const around = Array.from({ length: 24 }, (_, i) => ({
      id: (rowsDone - 12 + i) * 2,
      name: 'near',
      age: 1,
      email: 'e',
    }));
    await oldWrites(around.filter((_, i) => i % 2 === 1).map(({ id, name, age }) => ({ id, name, age })));
    await newWrites(around.filter((_, i) => i % 2 === 0));
    await fleet.run(one.db.checkpoint());
    await fleet.run(two.db.refresh());
    const found = two.db.query('users').where('age', '=', 200).orderBy('id', 'desc');
    const all = [...expected.values()].filter(({ age }) => age === 200);
    expect(await fleet.run(found.execute())).toEqual(all.toReversed());
    expect(await fleet.run(two.db.query('users').where('age', '=', 200).execute())).toEqual(all);
    await expectAll();
  });

  it('shows writes to it when all made rows are gone', async () => {
    const batch = one.db.batch();
    for (const id of [...expected.keys()].slice(0, rowCount - 20)) {
      void batch.delete('users', id);
      expected.delete(id);
    }
    await fleet.run(batch.flush());
    await fleet.run(one.db.checkpoint());
    await oldWrites([{ id: 1, name: 'old, under', age: 7 }]);
    await fleet.run(one.db.checkpoint());
    await expectAll();
  });

  it('answers by an index that both versions have without reading all that was made', async () => {
    const hits = (): number => two.db.stats().cache.hits;
    const first = two.db.query('users').where('age', '=', 1).limit(3);
    await fleet.run(first.execute());
    const before = hits();
    expect(await fleet.run(first.execute())).toHaveLength(3);
    expect(hits() - before).toBeLessThan(20);
  });
});
