/** What stands in the way of a version with unique indexes: rows that agree where it wants no two to. */
import type { Pacer } from '../base/pacer.ts';
import type { MigrationProblem } from '../format/stored-migration.ts';
import { describeKey } from '../base/describe-value.ts';
import { findDuplicates } from '../catalog/duplicate-values.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { TableState } from '../view/table-state.ts';

export function hasUniqueIndex({ indexes }: TableShape): boolean {
  return indexes.some(({ unique }) => unique);
}

/** The rows in blocks that agree with another one in a unique index, at most `limit`. */
export async function uniqueProblems(rows: TableState, pacer: Pacer, limit: number): Promise<MigrationProblem[]> {
  const problems: MigrationProblem[] = [];
  for (const index of rows.shape.indexes) {
    if (!index.unique || problems.length >= limit) continue;
    for (const { key, other, value } of await findDuplicates(rows, index, pacer, limit - problems.length)) {
      const message = `Unique index '${index.name}' has ${value} for this row and for row ${describeKey(other)}.`;
      problems.push({ key: describeKey(key), message });
    }
  }
  return problems;
}
