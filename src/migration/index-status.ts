/** What `db.indexes()` tells: the indexes that a table has, and those that are on their way to it. */
import { defined } from '../base/defined.ts';
import type { LayoutField } from '../format/row-layout.ts';
import type { StoredFunctionIndex, StoredIndex } from '../format/stored-schema.ts';
import { indexedFunctions, isSameIndex, isUsable } from '../view/index-version.ts';
import { conditionsOf } from '../schema/index-condition.ts';
import type { IndexConditions } from '../schema/index-condition.ts';
import type { Registry } from '../catalog/registry.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { TableState } from '../view/table-state.ts';
import type { View } from '../view/view.ts';
import { missingIndexes } from './added-chunk.ts';

/** An index of a table, as `db.indexes()` tells it. */
export interface IndexStatus {
  /** Name of the index. */
  readonly name: string;
  /** The indexed fields, in order; none for an index on a function. */
  readonly fields: readonly string[];
  /** The function that it is on. Absent for an index on fields. */
  readonly function?: string;
  /** Whether no two rows may agree in its fields. */
  readonly unique: boolean;
  /** Which rows it is of. Absent: all of them. */
  readonly where?: IndexConditions;
  /**
   * `ready`: queries use it. `waiting`: it is registered, and not begun, since a migration of the table is under way or no turn has come.
   * `building`: its entries are being made, and queries do without it. `failed`: it cannot be; `problem` says why.
   */
  readonly state: 'ready' | 'waiting' | 'building' | 'failed';
  /** Rows whose entries are there, merged. */
  readonly rowsDone: number;
  /** Rows of the table, merged. */
  readonly rowsTotal: number;
  /** Entries of the index, merged. */
  readonly entries: number;
  /** Whether it is in the definition that is registered here of the version that the table is in. */
  readonly declared: boolean;
  /** Why it is not ready, where a reason is known. */
  readonly problem?: string;
}

/** The indexes of a table in a view, in the active version; none where nothing is stored of the table. */
export function indexesIn(view: View, table: string, registry: Registry): IndexStatus[] {
  const state = view.table(table);
  if (state === undefined) return [];
  const { shape } = state;
  const registered = registry.versionShape(table, shape.version);
  const rowsTotal = state.tree.count;
  const about = (index: StoredIndex): Omit<IndexStatus, 'state' | 'rowsDone' | 'entries'> => {
    return { ...described(shape, index), rowsTotal, declared: isIn(registered, index.name) };
  };
  const onFields = shape.schema.indexes.map((index): IndexStatus => {
    const entries = state.indexes.get(index.name)?.count ?? 0;
    return { ...about(index), state: 'ready', rowsDone: rowsTotal, entries };
  });
  const added = state.added.map(({ stored, rows, tree, problem, built }): IndexStatus => {
    const done = built === null ? rowsTotal : Math.min(rows, rowsTotal);
    const why = problem === undefined ? waits(view, table) : { problem };
    return {
      ...about(stored),
      state: problem === undefined ? 'building' : 'failed',
      rowsDone: done,
      entries: tree.count,
      ...why,
    };
  });
  const missing = missingIndexes(state, registered);
  const waiting = missing.indexes.map((index): IndexStatus => {
    return { ...about(index), state: 'waiting', rowsDone: 0, entries: 0, ...waits(view, table) };
  });
  const functions = [
    ...shape.functionIndexes.map((index) => functionStatus(state, index, registry)),
    ...missing.functionIndexes.map((index) => functionStatus(state, index, registry, 'waiting')),
  ];
  return [...onFields, ...added, ...waiting, ...functions];
}

function waits(view: View, table: string): Pick<IndexStatus, 'problem'> {
  const nextVersion = view.nextVersion(table)?.rows.shape;
  if (nextVersion === undefined) return {};
  return { problem: `It waits for the end of the migration of table ${table} to version ${nextVersion.version}.` };
}

function isIn(registered: TableShape | undefined, index: string): boolean {
  return [...(registered?.indexes ?? []), ...(registered?.functionIndexes ?? [])].some(({ name }) => name === index);
}

function described(
  { layout }: TableShape,
  { name, fields, unique, where }: StoredIndex,
): Pick<IndexStatus, 'name' | 'fields' | 'unique' | 'where'> {
  const typeOf = (field: string): LayoutField['typeId'] => (layout.field(field) as LayoutField).typeId;
  return { name, fields, unique: unique === true, ...defined({ where: where && conditionsOf(where, typeOf) }) };
}

function functionStatus(
  state: TableState,
  { name, function: on }: StoredFunctionIndex,
  registry: Registry,
  before: 'waiting' | 'building' = 'building',
): IndexStatus {
  const { shape, tree, indexVersions } = state;
  const rowsTotal = tree.count;
  const declared = isIn(registry.versionShape(shape.name, shape.version), name);
  const about = { name, fields: [], function: on, unique: false, rowsTotal, declared };
  if (before === 'waiting') return { ...about, state: before, rowsDone: 0, entries: 0 };
  const known = indexedFunctions(shape, (each) => registry.registeredFunction(each)).find(
    ({ index }) => index.name === name,
  );
  if (known === undefined) {
    const problem = `Function ${on} is not registered here with a version: nodes that have it make the entries.`;
    return { ...about, state: before, rowsDone: 0, entries: 0, problem };
  }
  const indexVersion = indexVersions.find(({ index }) => isSameIndex(index, known.index));
  const entries = indexVersion?.tree.count ?? 0;
  const done = { rowsDone: Math.min(entries, rowsTotal), entries };
  if (indexVersion === undefined)
    return { ...about, state: rowsTotal === 0 && before === 'building' ? 'ready' : before, ...done };
  if (isUsable(indexVersion)) return { ...about, state: 'ready', ...done };
  if (indexVersion.failed === 0) return { ...about, state: 'building', ...done };
  return { ...about, state: 'failed', ...done, problem: `Function ${on} fails on ${indexVersion.failed} rows.` };
}
