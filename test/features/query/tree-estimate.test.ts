/** How many leaves a table is taken to have of which hardly anything is in memory yet: plans are chosen by that. */
import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import { TestTable } from './test-table.ts';

const schema = {
  name: 'pages',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: [],
} as const;

async function leavesOf(
  rows: number,
  rowBytes: number,
  blockSizeBytes: number,
  inlineRoots: boolean,
): Promise<{ readonly estimated: number; readonly real: number; readonly level: number | undefined }> {
  const table = new TestTable(schema, { blockSizeBytes, inlineRoots });
  await table.commit(Array.from({ length: rows }, (_, id) => ({ id, text: 'x'.repeat(rowBytes) })));
  await table.merge();
  table.forgetBlocks();
  const estimated = table.state.tree.estimate().leaves;
  const before = table.requests;
  expect(await table.query().where('text', '!=', null).count()).toBe(rows);
  // Once all of it is in memory, it is counted.
  const { leaves, level } = table.state.tree.estimate();
  expect(table.requests - before).toBeGreaterThanOrEqual(Math.floor(leaves * 0.9));
  return { estimated, real: leaves, level };
}

describe('leaves of a tree', () => {
  it('come from the length of a root that is not in memory, for rows of any length', async () => {
    for (const rowBytes of [10, 100, 700]) {
      const { estimated, real, level } = await leavesOf(2000, rowBytes, 16_384, false);
      expect(level).toBe(1);
      expect(estimated / real).toBeGreaterThan(0.6);
      expect(estimated / real).toBeLessThan(1.7);
    }
  });

  it('come from the root if it is in memory, and nothing below it', async () => {
    for (const [rows, rowBytes] of [
      [4000, 300],
      [20_000, 20],
    ] as const) {
      const { estimated, real, level } = await leavesOf(rows, rowBytes, 2048, true);
      expect(level).toBeGreaterThan(1);
      expect(estimated / real).toBeGreaterThan(0.6);
      expect(estimated / real).toBeLessThan(1.7);
    }
  });
});
