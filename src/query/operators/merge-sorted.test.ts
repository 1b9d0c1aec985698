/** Merged streams deliver rows in order, whichever of them waits, and are asked for no more rows than are wanted. */
import { describe, expect, it } from 'vitest';
import { layerOf } from '../../../test/features/query/layers.ts';
import { readField } from '../../format/row-decode.ts';
import type { Node } from '../../format/node.ts';
import type { LayoutField } from '../../format/row-layout.ts';
import { Types } from '../../format/types.ts';
import { TableShape } from '../../schema/table-shape.ts';
import { SeededRandom } from '../../testing/seeded-random.ts';
import { RowBatch } from './row-batch.ts';
import type { RowStream } from './row-batch.ts';
import { MergedStream, PreparedStream } from './merge-sorted.ts';
import { RowOrder } from '../conditions/row-order.ts';

const shape = new TableShape({
  name: 't',
  version: 1,
  fields: [
    { name: 'id', typeId: Types.uint32 },
    { name: 'rank', typeId: Types.uint32 },
  ],
  primaryKey: ['id'],
  indexes: [],
});
const rank = shape.layout.field('rank') as LayoutField;
const order = new RowOrder(shape, [{ field: rank, descending: false }]);
const most = 5000;
const node = layerOf(shape, new Map(Array.from({ length: most }, (_, id) => [id, { id, rank: id }]))).node as Node;

/** Rows with given ranks. */
class Ranks implements RowStream {
  readonly #ranks: readonly number[];
  readonly #late: () => boolean;
  readonly #batchSize: () => number;
  given = 0;

  constructor(ranks: readonly number[], late: () => boolean, batchSize: () => number) {
    this.#ranks = ranks;
    this.#late = late;
    this.#batchSize = batchSize;
  }

  next(batch: RowBatch): boolean | Promise<boolean> {
    const give = (): boolean => {
      if (this.given === this.#ranks.length) return false;
      for (let left = Math.min(this.#batchSize(), batch.wanted); left > 0 && this.given < this.#ranks.length; left--) {
        batch.add(node, node.rowBase(this.#ranks[this.given++] as number));
      }
      return true;
    };
    return this.#late() ? Promise.resolve().then(give) : give();
  }
}

async function ranksOf(stream: RowStream, wanted: number): Promise<unknown[]> {
  const batch = new RowBatch(wanted);
  const found: unknown[] = [];
  for (;;) {
    let more = stream.next(batch);
    if (more instanceof Promise) more = await more;
    for (let i = 0; i < batch.count; i++) found.push(readField(node, batch.bases[i] as number, rank));
    batch.clear();
    if (!more || found.length >= wanted) return found;
  }
}

describe('Streams that are merged', () => {
  it.each(Array.from({ length: 30 }, (_, seed) => seed))('come in order, seed %i', async (seed) => {
    const random = new SeededRandom(seed);
    const parts: number[][] = Array.from({ length: random.integer(1, 6) }, () => []);
    for (let i = 0; i < random.integer(0, most); i++) parts[random.integer(0, parts.length - 1)]?.push(i);
    const lateness = random.pick([0, 0.3, 1]);
    const streams = parts.map(
      (part) =>
        new Ranks(
          part,
          () => random.chance(lateness),
          () => random.integer(0, 40),
        ),
    );
    const [first, ...others] = streams as [Ranks, ...Ranks[]];
    const all = parts.flat().toSorted((a, b) => a - b);
    expect(await ranksOf(new MergedStream(first, others, order), Number.POSITIVE_INFINITY)).toEqual(all);
  });

  it('are asked for few rows where few are wanted', async () => {
    const even = Array.from({ length: most / 2 }, (_, i) => i * 2);
    const streams = [even, even.map((i) => i + 1)].map(
      (part) =>
        new Ranks(
          part,
          () => false,
          () => most,
        ),
    );
    const [first, second] = streams as [Ranks, Ranks];
    const found = await ranksOf(new MergedStream(first, [second], order), 20);
    expect(found.slice(0, 20)).toEqual(Array.from({ length: 20 }, (_, i) => i));
    expect(first.given + second.given).toBeLessThan(60);
  });

  it('take in rows that are only there all at once', async () => {
    const own = new Ranks(
      [1, 3, 5],
      () => false,
      () => 2,
    );
    const rows = [0, 2, 9].map((i) => ({ source: node, base: node.rowBase(i) }));
    const prepared = new PreparedStream(() => Promise.resolve(rows));
    expect(await ranksOf(new MergedStream(own, [prepared], order), 10)).toEqual([0, 1, 2, 3, 5, 9]);
  });
});
