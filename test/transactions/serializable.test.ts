/** What a transaction reads holds when it is committed: against commits of others, and those that share its commit. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database.ts';
import type { Transaction } from '../../src/transaction/transaction.ts';
import { Nodes, people } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';

let nodes: Nodes;
let a: TestNode;
let b: TestNode;

beforeEach(async () => {
  nodes = new Nodes();
  a = await nodes.start(0);
  b = await nodes.start(1);
  await nodes.run(seed(a.db));
  await nodes.run(b.db.refresh());
  a.driver.takeLines();
});

/** Rows 1 to 9, of age 10 to 90. */
async function seed(db: Database): Promise<void> {
  const batch = db.batch();
  for (let id = 1; id < 10; id++) void batch.insert(people, { id, name: `row ${id}`, age: id * 10 });
  await batch.flush();
}

async function expectSound(): Promise<void> {
  for (const { db } of [a, b]) expect(await nodes.run(db.verify())).toMatchObject({ ok: true, findings: [] });
}

describe('anomalies', () => {
  it('loses no update', async () => {
    const increment = ({ db }: TestNode): Promise<number> =>
      db.transaction(async (tx) => {
        const row = await tx.get(people, 1);
        const age = (row?.age ?? 0) + 1;
        await tx.update(people, { id: 1, age });
        return age;
      });
    const results = await nodes.run(Promise.all([increment(a), increment(b), increment(a), increment(b)]));
    expect(results.toSorted((x, y) => x - y)).toEqual([11, 12, 13, 14]);
    await nodes.run(a.db.refresh());
    expect(await nodes.run(a.db.get(people, 1))).toMatchObject({ age: 14 });
    expect(a.db.stats().transactions).toMatchObject({ committed: 2, failed: 0 });
    await expectSound();
  });

  it('lets no two write after reading what the other one writes', async () => {
    const leave = ({ db }: TestNode, own: number, other: number): Promise<boolean> =>
      db.transaction(async (tx) => {
        if ((await tx.get(people, other))?.name === 'away') return false;
        await tx.update(people, { id: own, name: 'away' });
        return true;
      });
    const left = await nodes.run(Promise.all([leave(a, 1, 2), leave(b, 2, 1)]));
    expect(left.toSorted()).toEqual([false, true]);
  });

  it.each([
    ['an index', (tx: Transaction) => tx.query(people).where('age', '=', 77).count()],
    ['a range of primary keys', (tx: Transaction) => tx.query(people).where('id', '>', 100).count()],
    ['a function', (tx: Transaction) => tx.query(people).where('isOdd77', '=', true).count()],
    ['all rows', async (tx: Transaction) => (await tx.query(people).execute()).filter(({ age }) => age === 77).length],
  ])('lets no row appear in what was counted by %s', async (_, count) => {
    for (const { db } of [a, b]) db.registerFunction('isOdd77', (row) => row['age'] === 77);
    const insertFirst = ({ db }: TestNode, id: number): Promise<boolean> =>
      db.transaction(async (tx) => {
        if ((await count(tx)) > 0) return false;
        await tx.insert(people, { id, name: 'only one', age: 77 });
        return true;
      });
    const inserted = await nodes.run(Promise.all([insertFirst(a, 101), insertFirst(b, 102), insertFirst(a, 103)]));
    expect(inserted.filter((each) => each)).toHaveLength(1);
    await nodes.run(a.db.refresh());
    expect(await nodes.run(a.db.query(people).where('age', '=', 77).count())).toBe(1);
  });
});
