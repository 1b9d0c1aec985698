/** What a transaction has asked in clauses, aggregates and pages holds when it is committed, and no more than that. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Transaction } from '../../../src/transaction/transaction.ts';
import { Nodes, people } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';

type Step = (tx: Transaction) => unknown;

let nodes: Nodes;
let a: TestNode;
let b: TestNode;

/** Rows 1 to 9, of age 10 to 90. */
beforeEach(async () => {
  nodes = new Nodes();
  a = await nodes.start(0);
  b = await nodes.start(1);
  const batch = a.db.batch();
  for (let id = 1; id < 10; id++) void batch.insert(people, { id, name: `row ${id}`, age: id * 10 });
  await nodes.run(batch.flush());
  await nodes.run(a.db.checkpoint());
  await nodes.run(b.db.refresh());
});

/** How often a transaction is run that reads, while somebody else commits `change` the first time. */
async function attemptsOf(read: Step, change: Step): Promise<number> {
  let attempts = 0;
  await nodes.run(
    a.db.transaction(async (tx) => {
      attempts++;
      await read(tx);
      if (attempts === 1) await b.db.transaction(async (other) => void (await change(other)));
      await tx.upsert('people', { id: 1000, name: 'result' });
    }),
  );
  return attempts;
}

const set =
  (id: number, fields: object): Step =>
  (tx) =>
    tx.update('people', { id, ...fields });
const insert =
  (id: number, age: number | null, name: string): Step =>
  (tx) =>
    tx.insert(people, { id, name, age });
const remove =
  (id: number): Step =>
  (tx) =>
    tx.delete(people, id);

const union: Step = (tx) =>
  tx
    .query(people)
    .where(({ is, or, and }) => or(is('age', '=', 20), and(is('id', '>', 6), is('name', 'PREFIX', 'row 8'))))
    .execute();
const filtered: Step = (tx) =>
  tx
    .query(people)
    .where(({ is, or }) => or(is('age', '=', 20), is('name', '=', 'row 8')))
    .count();
const ranges: Step = (tx) =>
  tx
    .query(people)
    .where(({ is, not }) => not(is('age', 'BETWEEN', [15, 85])))
    .execute();
const keyRanges: Step = (tx) =>
  tx
    .query(people)
    .where(({ is, not }) => not(is('id', 'BETWEEN', [2, 8])))
    .count();
const between: Step = (tx) => tx.query(people).where('age', 'BETWEEN', [20, 30]).count();
const prefix: Step = (tx) => tx.query(people).where('name', 'PREFIX', 'other').first();
const sum: Step = (tx) => tx.query(people).where('age', '>', 70).sum('age');
const least: Step = (tx) => tx.query(people).where('id', '>', 5).min('age');
const grouped: Step = (tx) => tx.query(people).where('name', '>', 'row 7').groupBy('name').aggregate({ n: 'count' });
const page: Step = async (tx) => {
  const { next } = await tx.query(people).where('id', '<', 4).page({ size: 2 });
  await tx.query(people).where('id', '<', 4).page({ size: 2, after: next });
};

describe('a change makes another attempt', () => {
  it.each<[string, Step, Step]>([
    ['a union: into its first branch', union, set(5, { age: 20 })],
    ['a union: into its second branch', union, set(7, { name: 'row 8b' })],
    ['a union: out of it', union, set(8, { name: 'gone' })],
    ['a union: by an insert', union, insert(60, 1, 'row 80')],
    ['an OR without an index: into it', filtered, set(3, { name: 'row 8' })],
    ['an OR without an index: out of it', filtered, remove(8)],
    ['a NOT: null comes in', ranges, insert(60, null, 'no age')],
    ['a NOT: a value comes in', ranges, set(5, { age: 86 })],
    ['a NOT: a row goes', ranges, remove(9)],
    ['a NOT of keys', keyRanges, insert(60, 1, 'new')],
    ['BETWEEN: its end', between, set(9, { age: 30 })],
    ['PREFIX', prefix, insert(60, 1, 'other 60')],
    ['a sum', sum, set(9, { age: 91 })],
    ['a minimum', least, set(9, { age: 5 })],
    ['groups', grouped, set(1, { name: 'row 9' })],
    ['pages', page, remove(3)],
  ])('%s', async (_, read, change) => {
    expect(await attemptsOf(read, change)).toBe(2);
  });
});

describe('a change makes no other attempt', () => {
  it.each<[string, Step, Step]>([
    ['a union: beside its branches', union, set(5, { age: 21, name: 'row 8' })],
    ['an OR without an index: beside it', filtered, set(3, { name: 'row 3b' })],
    ['a NOT: within', ranges, set(5, { age: 85 })],
    ['a NOT of keys: within', keyRanges, set(5, { age: 85 })],
    ['BETWEEN: beside its end', between, set(9, { age: 31 })],
    ['PREFIX', prefix, insert(60, 1, 'othe')],
    ['a sum of others', sum, set(1, { age: 70 })],
    ['groups of others', grouped, set(1, { name: 'row 7' })],
    ['pages of others', page, set(4, { age: 1 })],
  ])('%s', async (_, read, change) => {
    expect(await attemptsOf(read, change)).toBe(1);
  });
});
