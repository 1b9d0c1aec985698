/**
 * Watched queries in random histories, in virtual time: every result is that of the model at its position, its differences lead from the
 * result before to it, and once the instance has caught up the newest result is the present one.
 */
import { describe, expect, it } from 'vitest';
import type { Query, LiveRows, LiveValue } from '../../../src/index.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { Cluster, items } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';

interface Item {
  readonly id: number;
  readonly text: string | null;
  readonly group: number | null;
}
type Items = Query<Item>;

const by =
  (field: 'id' | 'text' | 'group', direction: 1 | -1 = 1) =>
  (a: Item, b: Item): number => {
    // Null comes before every value.
    const [x, y] = [a[field] ?? (field === 'text' ? '' : -1), b[field] ?? (field === 'text' ? '' : -1)];
    return x === y ? a.id - b.id : (x < y ? -1 : 1) * direction;
  };
const all = (rows: Item[]): Item[] => rows.toSorted(by('id'));

/** Queries on rows, and the same on a model. */
const queries: readonly (readonly [string, (query: Items) => Query<object>, (rows: Item[]) => unknown[]])[] = [
  ['every row', (query) => query, all],
  ['a condition', (query) => query.where('group', '=', 3), (rows) => all(rows).filter(({ group }) => group === 3)],
  [
    'a range, by the newest key, the first rows',
    (query) => query.where('id', '>=', 10).orderBy('id', 'desc').limit(4),
    (rows) =>
      rows
        .filter(({ id }) => id >= 10)
        .toSorted(by('id', -1))
        .slice(0, 4),
  ],
  [
    'an order, the first rows',
    (query) => query.where('group', '!=', 1).orderBy('text').limit(5),
    (rows) =>
      rows
        .filter(({ group }) => group !== 1)
        .toSorted(by('text'))
        .slice(0, 5),
  ],
  [
    'fields without the key, by a field that is left out',
    (query) => query.where('id', '<', 30).orderBy('group', 'desc').limit(6).select('text'),
    (rows) =>
      rows
        .filter(({ id }) => id < 30)
        .toSorted(by('group', -1))
        .slice(0, 6)
        .map(({ text }) => ({ text })),
  ],
  ['rows that are skipped', (query) => query.offset(2).limit(3), (rows) => all(rows).slice(2, 5)],
  ['one row', (query) => query.where('id', '=', 7), (rows) => rows.filter(({ id }) => id === 7)],
  [
    'branches',
    (query) => query.where(({ is, or }) => or(is('group', '=', 2), is('text', '=', 'b'))),
    (rows) => all(rows).filter(({ group, text }) => group === 2 || text === 'b'),
  ],
];

type Result = LiveRows<object> | LiveValue<unknown>;

/** Follows one loop, and holds each result against the model. */
class Follower {
  readonly results: LiveRows<object>[] = [];
  values: LiveValue<unknown>[] = [];
  error: unknown;
  readonly #loop: AsyncIterator<Result, unknown>;

  constructor(loop: AsyncIterable<Result>) {
    this.#loop = loop[Symbol.asyncIterator]();
    void this.#follow();
  }

  async #follow(): Promise<void> {
    try {
      for (;;) {
        const next = await this.#loop.next();
        if (next.done === true) return;
        if ('rows' in next.value) this.results.push(next.value);
        else this.values.push(next.value);
      }
    } catch (error) {
      this.error = error;
    }
  }

  async end(): Promise<void> {
    await this.#loop.return?.();
  }
}

function plain(rows: readonly object[]): unknown[] {
  return rows.map((row) => {
    const { file: _, ...rest } = row as Record<string, unknown>;
    return rest;
  });
}

class History {
  readonly cluster = new Cluster();
  readonly random: SeededRandom;
  readonly #rows = new Map<number, Item>();
  /** The rows after each commit, by its position. */
  readonly states = new Map<number, Item[]>();

  constructor(seed: number) {
    this.random = new SeededRandom(`live ${seed}`);
  }

  #below(count: number): number {
    return Math.floor(this.random.next() * count);
  }

  note(position: number): void {
    this.states.set(position, [...this.#rows.values()]);
  }

  /** The rows as of a position. */
  at(position: number): Item[] {
    const known = this.states.get(position);
    expect(known, `a state of position ${position}`).toBeDefined();
    return known as Item[];
  }

  async commit(node: ClusterNode): Promise<void> {
    const batch = node.db.batch();
    for (let left = 1 + this.#below(3); left > 0; left--) {
      const id = this.#below(40);
      if (this.#below(4) === 0) {
        void batch.delete(items, id);
        this.#rows.delete(id);
        continue;
      }
      const text = ['a', 'b', 'c', 'd', null][this.#below(5)] ?? null;
      const group = this.#below(6) === 0 ? null : this.#below(5);
      void batch.upsert(items, { id, text, group });
      this.#rows.set(id, { id, text, group });
    }
    await this.cluster.run(batch.flush());
    this.note(node.db.position);
  }

  async step(nodes: readonly ClusterNode[], watching: ClusterNode): Promise<void> {
    const what = this.#below(20);
    const node = nodes[this.#below(nodes.length)] as ClusterNode;
    if (what === 0) await this.cluster.run(node.db.checkpoint());
    else if (what === 1) {
      await this.cluster.run(watching.db.stop());
      await this.cluster.run(watching.db.start());
    } else if (what === 2) await this.cluster.advance(this.#below(3000));
    else await this.commit(node);
  }
}

function check(follower: Follower, history: History, expected: (rows: Item[]) => unknown[]): void {
  expect(follower.error).toBeUndefined();
  let before: LiveRows<object> | undefined;
  for (const result of follower.results) {
    expect(plain(result.rows)).toEqual(expected(history.at(result.position)));
    expect(result.position).toBeGreaterThanOrEqual(before?.position ?? 0);
    const removed = new Set(result.removed);
    const kept = (before?.rows ?? []).filter((row) => !removed.has(row));
    expect(kept.length + result.added.length).toBe(result.rows.length);
    // Rows that did not change are the same objects.
    const fresh = result.rows.filter((row) => before?.rows.includes(row) !== true);
    expect(new Set(fresh)).toEqual(new Set([...result.added, ...result.changed]));
    const { added, changed, removed: gone } = result;
    // Another row may look the same where its key is left out.
    if (before !== undefined && added.length + changed.length + gone.length === 0) {
      expect(result.rows).not.toEqual(before.rows);
    }
    before = result;
  }
}

async function run(seed: number, role: 'writer' | 'replica'): Promise<number> {
  const history = new History(seed);
  const { cluster } = history;
  const writer = await cluster.start(1, { polling: 'interval' });
  const other = await cluster.start(2, { polling: 'interval' });
  const polling = seed % 2 === 0 ? 'interval' : 'adaptive';
  const watching = role === 'replica' ? await cluster.start(3, { role: 'replica', polling }) : writer;
  history.note(0);
  history.note(writer.db.position);
  for (let i = 0; i < 5; i++) await history.commit(writer);
  const rows = (): Items => watching.db.query(items);
  const followers = queries.map(([name, build, expected]) => {
    return { name, build, expected, follower: new Follower(build(rows()).watch()) };
  });
  const counted = new Follower(rows().where('group', '>', 1).watchCount());
  const summed = new Follower(rows().watchAggregate({ sum: { sum: 'group' }, most: { max: 'id' } }));
  const grouped = new Follower(rows().groupBy('group').watch({ n: 'count' }));
  await cluster.settle();
  let results = 0;
  for (let step = 0; step < 30; step++) {
    await history.step([writer, other], watching);
    if (step % 3 === 2) await cluster.advance(3 * 60_000);
    await cluster.settle();
    if (step % 3 !== 2) continue;
    for (const { name, build, expected, follower } of followers) {
      const present = plain(await cluster.run(build(rows()).execute()));
      expect(plain(follower.results.at(-1)?.rows ?? []), name).toEqual(present);
      check(follower, history, expected);
      results += follower.results.length;
    }
    expect(counted.values.at(-1)?.value).toBe(await cluster.run(rows().where('group', '>', 1).count()));
    expect(summed.values.at(-1)?.value).toEqual(
      await cluster.run(rows().aggregate({ sum: { sum: 'group' }, most: { max: 'id' } })),
    );
    expect(grouped.results.at(-1)?.rows).toEqual(await cluster.run(rows().groupBy('group').aggregate({ n: 'count' })));
    for (const { value, position } of counted.values) {
      expect(value).toBe(history.at(position).filter(({ group }) => (group ?? 0) > 1).length);
    }
    for (const { values } of [counted, summed]) {
      expect(values.slice(1).every(({ value }, i) => JSON.stringify(value) !== JSON.stringify(values[i]?.value))).toBe(
        true,
      );
    }
  }
  for (const { follower } of followers) await follower.end();
  for (const follower of [counted, summed, grouped]) await follower.end();
  for (const { db } of new Set([watching, other, writer])) await cluster.run(db.stop());
  return results;
}

describe('a watched query in a random history', () => {
  it.each([1, 2, 3, 4, 5, 6])('gives what a fresh run gives, on an instance that writes (seed %i)', async (seed) => {
    expect(await run(seed, 'writer')).toBeGreaterThan(50);
  });

  it.each([7, 8, 9, 10])('gives what a fresh run gives, on a replica (seed %i)', async (seed) => {
    expect(await run(seed, 'replica')).toBeGreaterThan(50);
  });
});
