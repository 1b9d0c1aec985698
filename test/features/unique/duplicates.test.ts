/** Rows that agree in a unique index all the same: how they are found. */
import { describe, expect, it } from 'vitest';
import { realEnvironment } from '../../../src/base/env.ts';
import { Pacer } from '../../../src/base/pacer.ts';
import { Types } from '../../../src/format/types.ts';
import { findDuplicates } from '../../../src/catalog/checked-indexes.ts';
import type { Duplicate } from '../../../src/catalog/checked-indexes.ts';
import type { TableIndex } from '../../../src/schema/table-shape.ts';
import { createDatabase } from '../../../src/api/database.ts';
import { Nodes, people, prefix, quietIntervalMs } from '../protocol/nodes.ts';
import { TestTable } from '../query/test-table.ts';
import type { Row } from '../query/test-table.ts';

async function duplicatesAmong(rows: readonly Row[], limit = 10): Promise<Duplicate[]> {
  const table = new TestTable(
    {
      name: 't',
      version: 1,
      fields: { id: { typeId: Types.uint32 }, a: { typeId: Types.varchar }, b: { typeId: Types.uint8 } },
      primaryKey: 'id',
      indexes: [{ fields: ['a', 'b'], unique: true }],
    },
    { blockSizeBytes: 1024 },
  );
  await table.commit(rows);
  await table.merge();
  return findDuplicates(table.state, table.shape.indexes[0] as TableIndex, new Pacer(realEnvironment), limit);
}

const long = 'x'.repeat(1024);

describe('rows that agree', () => {
  it('are found in all leaves, with the first of them', async () => {
    const rows = Array.from({ length: 500 }, (_, id) => ({ id, a: `value ${id % 480}`, b: 1 }));
    const found = await duplicatesAmong([...rows, { id: 900, a: 'value 3', b: 1 }], 100);
    expect(found).toHaveLength(21);
    expect(found).toContainEqual(expect.objectContaining({ key: 483, other: 3, value: `'value 3', 1` }));
    expect(found).toContainEqual(expect.objectContaining({ key: 900, other: 3 }));
    expect(await duplicatesAmong(rows, 4)).toHaveLength(4);
  });

  it('are none that agree in some of the fields only, or in null', async () => {
    const rows: Row[] = [
      { id: 1, a: 'a', b: 1 },
      { id: 2, a: 'a', b: 2 },
      { id: 3, a: 'a', b: null },
      { id: 4, a: 'a', b: null },
      { id: 5, a: null, b: 1 },
      { id: 6, a: null, b: 1 },
    ];
    expect(await duplicatesAmong(rows)).toEqual([]);
  });

  it('are those with whole values alike, not with the same beginnings', async () => {
    const rows = ['1', '2', '3', '2', ''].map((end, id) => ({ id, a: long + end, b: 1 }));
    const found = await duplicatesAmong([...rows, { id: 9, a: `${long}3`, b: 2 }, { id: 10, a: `${long}1`, b: 1 }]);
    expect(found.map(({ key, other }) => [key, other])).toEqual([
      [3, 1],
      [10, 0],
    ]);
  });
});

describe('verify()', () => {
  it('names them, and repair() does not rebuild the index for that', async () => {
    const nodes = new Nodes();
    const { db } = await nodes.start(0);
    const batch = db.batch();
    for (const id of [1, 2, 3]) void batch.insert(people, { id, age: id % 2 });
    await nodes.run(batch.flush());
    await nodes.run(db.checkpoint());
    await nodes.run(db.stop());
    // As if the index had been unique all the time.
    await nodes.replaceBlock0(({ tables }) => ({
      tables: tables.map((table) => ({
        ...table,
        versions: table.versions.map((version) => {
          const indexes = version.schema.indexes.map((index) => ({ ...index, unique: true as const }));
          return { ...version, schema: { ...version.schema, indexes } };
        }),
      })),
    }));
    const given = { dbPrefix: prefix, nodeId: 1, driver: nodes.store, logLevel: 'silent' } as const;
    const later = createDatabase({ ...given, writeForwardInterval: quietIntervalMs }, nodes.environment);
    await nodes.run(later.start());
    const message = 'The index is unique, and rows 1 and 3 both have 1';
    const finding = { table: 'people', name: 'indexes/people/age', message };
    expect(await nodes.run(later.verify())).toMatchObject({ ok: false, findings: [finding] });
    expect(await nodes.run(later.repair())).toEqual({ ok: false, repaired: [], unrepairable: [finding] });
    await nodes.run(later.stop());
  });
});
