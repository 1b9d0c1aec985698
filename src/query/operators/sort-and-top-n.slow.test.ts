import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TestTable } from '../../../test/features/query/test-table.ts';
import type { Row } from '../../../test/features/query/test-table.ts';
import { realEnvironment } from '../../base/env.ts';
import { Pacer } from '../../base/pacer.ts';
import { Types } from '../../format/types.ts';
import { CutKeysTie, TopRows, collect } from './sort-and-top-n.ts';
import { requireField } from '../conditions/condition.ts';
import { openTable } from './open-operator.ts';
import { QueryWork } from './row-batch.ts';
import { RowOrder } from '../conditions/row-order.ts';
import { Filter } from '../conditions/filter.ts';

const fields = {
  id: { typeId: Types.uint32 },
  text: { typeId: Types.varchar },
  bytes: { typeId: Types.bytes },
};

async function tableOf(rows: readonly Row[]): Promise<TestTable> {
  const table = new TestTable({ name: 't', version: 1, fields, primaryKey: 'id' }, { blockSizeBytes: 16_384 });
  await table.commit(rows);
  await table.merge();
  return table;
}

/** The ids of the first rows by text, of a collector that holds so much of each key, and the memory that it reports. */
async function firstIds(table: TestTable, count: number, maxKeyBytes?: number): Promise<[number[], number]> {
  const { state } = table;
  const order = new RowOrder(state.shape, [{ field: requireField(state.shape, 'text', 'orderBy'), descending: false }]);
  const keep = (source: { readonly rowsView: DataView }, base: number): number => {
    return source.rowsView.getUint32(base + requireField(state.shape, 'id', 'select').offset, true);
  };
  const top = new TopRows(order, count, keep, () => 8, maxKeyBytes);
  const filter = new Filter([]);
  const opening = { state, filter, work: new QueryWork(), breathe: () => undefined };
  const stream = openTable(opening, { kind: 'table', ranges: [{}], descending: false });
  const ids = await collect(stream, top, new Pacer(realEnvironment), ({ bound }) => {
    filter.bound = bound;
  });
  return [ids, top.sizeBytes];
}

describe('TopRows', () => {
  const filler = 'All work and no play makes a dull table. '.repeat(100);
  const rankOf = (id: number): number => (id * 7919) % 3000;

  it('holds the first bytes of long keys, if it may, and takes no more than those', async () => {
    const rows = Array.from({ length: 3000 }, (_, id) => ({ id, text: `${rankOf(id) + 1000} ${filler}` }));
    const table = await tableOf(rows);
    const expected = rows.toSorted((a, b) => rankOf(a.id) - rankOf(b.id)).map(({ id }) => id);
    const [whole, wholeBytes] = await firstIds(table, 500);
    const [cut, cutBytes] = await firstIds(table, 500, 256);
    expect(whole).toEqual(expected.slice(0, 500));
    expect(cut).toEqual(whole);
    expect(wholeBytes).toBeGreaterThan(500 * filler.length);
    // The last slab may be empty but for one key.
    expect(cutBytes).toBeLessThan(500 * (256 + 8 + 96) + 256 * 1024);
  });

  it('says that keys tie as far as they are held, wherever that matters', async () => {
    const rows = Array.from({ length: 900 }, (_, id) => ({ id, text: `${rankOf(id >> 1) + 1000} ${filler}` }));
    await expect(firstIds(await tableOf(rows), 300, 256)).rejects.toThrow(CutKeysTie);
    // The last row comes before one that ties with it: not even the bound may keep it out.
    const unique = Array.from({ length: 3000 }, (_, id) => ({ id, text: `${id + 1000} ${filler}` }));
    const tied = await tableOf([...unique, { id: 3000, text: (unique[299]?.text ?? '').slice(0, -1) }]);
    await expect(firstIds(tied, 300, 256)).rejects.toThrow(CutKeysTie);
    expect((await tied.query().orderBy('text').select('id').limit(300).execute())[299]).toEqual({ id: 3000 });
    // Of two rows behind those that are wanted, it does not matter which comes first.
    const late = rows.map(({ id, text }) => ({ id, text: id < 500 ? `${id + 1000} ${filler}` : `9 ${text}` }));
    const [ids] = await firstIds(await tableOf(late), 300, 256);
    expect(ids).toEqual(Array.from({ length: 300 }, (_, i) => i));
  });
});

describe('the first of many rows with long values', () => {
  const part = fc.constantFrom('', 'a', 'é', '\u0000', '\u{10FFFF}', 'b', 'x'.repeat(120), '\u0000'.repeat(60));
  const text = fc.array(part, { maxLength: 6 }).map((parts) => parts.join(''));
  const bytes = fc
    .array(
      fc.constantFrom(
        [],
        [0],
        [255],
        [1, 2],
        Array.from({ length: 250 }, () => 255),
        Array.from({ length: 126 }, () => 0),
      ),
      {
        maxLength: 3,
      },
    )
    .map((parts) => Buffer.from(parts.flat()));
  const row = fc.record({ text: fc.option(text), bytes: fc.option(bytes), count: fc.integer({ min: 1, max: 90 }) });
  const orders = fc.constantFrom(
    ...(['text', 'bytes'] as const).flatMap((name) => (['asc', 'desc'] as const).map((way) => [name, way] as const)),
  );

  it('come in the order of all rows, however much their values have in common', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(row, { minLength: 20, maxLength: 40 }),
        orders,
        fc.boolean(),
        async (made, order, unique) => {
          const rows: Row[] = [];
          for (const { text: shared, bytes: data, count } of made) {
            for (let i = 0; i < count; i++) {
              const id = rows.length;
              // Told apart within the first bytes, or behind them, or not at all.
              const mark = unique ? String.fromCodePoint(0x100 + ((id * 7) % 5000)) : '';
              rows.push({ id, text: shared === null ? null : mark + shared + (id % 3), bytes: data });
            }
          }
          const table = await tableOf(rows);
          const [name, way] = order;
          const all = await table.query().orderBy(name, way).select('id').execute();
          const limit = Math.floor(rows.length / 3);
          expect(await table.query().orderBy(name, way).select('id').limit(limit).execute()).toEqual(
            all.slice(0, limit),
          );
        },
      ),
      { numRuns: 60 },
    );
  });
});
