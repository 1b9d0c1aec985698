/** What tests of loads that are resumed share: a table, its rows, and nodes with little memory. */
import { expect } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import type { LoadPosition } from '../../../src/load/row-source.ts';
import { range } from '../gc/cluster.ts';
import type { Cluster, ClusterNode } from '../gc/cluster.ts';

export const parts = {
  name: 'parts',
  version: 1,
  fields: { id: { typeId: Types.int32 }, code: { typeId: Types.varchar }, color: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: [{ fields: ['code'], unique: true }, 'color'],
} as const;

export interface Part {
  readonly id: number;
  readonly code: string;
  readonly color: string;
}

export function partOf(id: number): Part {
  return { id, code: `code ${id}`, color: ['red', 'green', 'blue'][id % 3] as string };
}

/** Numbers from 0 to before `count`, in no order. */
export function shuffled(count: number): number[] {
  return range(0, count).map((i) => (i * 7919) % count);
}

/** A node with so little memory that some hundred rows are a run. */
export async function small(
  cluster: Cluster,
  nodeId: number,
  options: Partial<StoreDbOptions> = {},
): Promise<ClusterNode> {
  const node = cluster.make(nodeId, { maxMemoryBytes: 1024 * 1024, blockSizeBytes: 4096, ...options });
  node.db.registerSchema(parts);
  await cluster.run(node.db.start());
  node.driver.takeLines();
  return node;
}

/** A source that gives the rows behind a position, notes where it began, and fails before a row if that is asked for. */
export class PartSource {
  readonly begun: LoadPosition[] = [];
  readonly #ids: readonly number[];
  failBefore = Number.POSITIVE_INFINITY;

  constructor(ids: readonly number[]) {
    this.#ids = ids;
  }

  readonly from = (position: LoadPosition): AsyncIterable<Part> => {
    this.begun.push(position);
    return this.#rows(position.rows);
  };

  async *#rows(from: number): AsyncGenerator<Part, void, undefined> {
    for (let i = from; i < this.#ids.length; i++) {
      if (i === this.failBefore) throw new RangeError('the source ends here');
      yield partOf(this.#ids[i] as number);
      if (i % 100 === 0) await Promise.resolve();
    }
  }
}

/** Loads until the source fails before a row. */
export async function interrupted(
  cluster: Cluster,
  node: ClusterNode,
  ids: readonly number[],
  failBefore: number,
): Promise<PartSource> {
  const source = new PartSource(ids);
  source.failBefore = failBefore;
  const error = await cluster.failure(node.db.load(parts, source.from, { resume: 'parts' }));
  expect(error).toMatchObject({ message: 'the source ends here' });
  source.failBefore = Number.POSITIVE_INFINITY;
  return source;
}

/** Expects a table of exactly these rows, sound with its indexes, and nothing left of any load. */
export async function expectLoaded(cluster: Cluster, node: ClusterNode, count: number): Promise<void> {
  const { db } = node;
  await cluster.run(db.checkpoint());
  const rows: unknown[] = [];
  const read = async (): Promise<void> => {
    for await (const row of db.query(parts).orderBy('id')) rows.push(row);
  };
  await cluster.run(read());
  expect(rows.length).toBe(count);
  expect(rows.every((row, i) => JSON.stringify(row) === JSON.stringify(partOf(i)))).toBe(true);
  expect(await cluster.run(db.query(parts).where('color', '=', 'red').count())).toBe(Math.ceil(count / 3));
  expect(
    await cluster.run(
      db
        .query(parts)
        .where('code', '=', `code ${count - 1}`)
        .count(),
    ),
  ).toBe(1);
  expect(await cluster.run(db.unfinishedLoads())).toEqual([]);
  expect(await cluster.run(db.snapshots())).toEqual([]);
  expect(await cluster.run(db.verify({ deep: true }))).toMatchObject({ ok: true });
}
