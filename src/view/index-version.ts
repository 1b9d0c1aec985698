/**
 * The index versions of an index on a function: its entries as one version of the function makes them, of the rows of one tree of
 * the table, the base. A node that merges without that version leaves an index version as it is; it is out of date once its base is
 * not the table's present tree any more (docs/protocol.md, "Indexes on functions").
 */
import type { Bound } from '../format/stored-table.ts';
import type { Tree } from '../tree/tree.ts';
import type { RegisteredFunction } from '../schema/registered-functions.ts';
import type { TableIndex, TableShape } from '../schema/table-shape.ts';

export interface IndexVersion {
  /** With the version of the function. */
  readonly index: TableIndex;
  /** The entries. */
  readonly tree: Tree;
  /** The rows that they are of. */
  readonly base: Tree;
  /** Whether these are the rows of the table. */
  readonly isCurrent: boolean;
  /** The last key whose entry was made; undefined before the first, null once all are. */
  readonly built: Bound;
  /** Entries of rows on which the function failed. */
  readonly failed: number;
  /** Generation in which the table first went ahead of it; null while it is current. */
  readonly behindFrom: number | null;
}

/** Whether an index version holds the entry of every row, and of nothing else. */
export function isWhole({ isCurrent, built }: IndexVersion): boolean {
  return isCurrent && built === null;
}

/**
 * Whether queries may go by it: if the function failed on a row, they are to fail as they would without the index.
 */
export function isUsable(indexVersion: IndexVersion): boolean {
  return isWhole(indexVersion) && indexVersion.failed === 0;
}

/** An index on a function, and the version of it that is registered here. */
export interface IndexedFunction {
  readonly index: TableIndex;
  readonly registered: RegisteredFunction;
}

/**
 * The indexes on functions whose entries this node can make. A function without a version is not among them: nobody could
 * tell whose entries are stored.
 */
export function indexedFunctions(
  { functionIndexes }: TableShape,
  registered: (name: string) => RegisteredFunction | undefined,
): IndexedFunction[] {
  return functionIndexes.flatMap(({ name, function: on, typeId }) => {
    const found = registered(on);
    if (found?.version === undefined || !Number.isFinite(found.version)) return [];
    const result = { name: on, typeId, version: found.version };
    return [{ index: { name, fields: [], unique: false, result }, registered: found }];
  });
}

/** Whether two indexes are the same, in the same version of their function. */
export function isSameIndex(a: TableIndex, b: TableIndex): boolean {
  return a.name === b.name && a.result?.version === b.result?.version;
}
