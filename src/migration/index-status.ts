/**
 * The status of indexes as `db.indexes()` returns it: the indexes of a table, and those that are being added or waiting. Also
 * computes their sizes, and drops indexes: that is one generation, in which the version of the table and its rows stay.
 */
import { toTextDefinition } from '../schema/stored-definition.ts';
import type { TextDefinition } from '../schema/index-definitions.ts';
import { backOff } from '../base/env.ts';
import type { Environment, Backoff } from '../base/env.ts';
import { ContentionError, InvalidOptionError, InvalidSchemaError, MigrationActiveError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { describeValue } from '../base/messages.ts';
import { defined, didYouMean, kinds, OptionTable } from '../base/options.ts';
import type { Registry } from '../catalog/registry.ts';
import type { Engine } from '../engine/engine.ts';
import type { LayoutField } from '../format/row-layout.ts';
import { isSystemTable } from '../format/stored-schema.ts';
import type { StoredFunctionIndex, StoredIndex } from '../format/stored-schema.ts';
import { conditionsOf } from '../schema/index-condition.ts';
import type { IndexConditions } from '../schema/index-condition.ts';
import type { TableShape } from '../schema/table-shape.ts';
import { indexedFunctions, isSameIndex, isUsable, isWhole } from '../view/index-version.ts';
import type { TableState } from '../view/table-state.ts';
import { View } from '../view/view.ts';
import { missingIndexes, droppedIndex } from './added-chunk.ts';
import type { Node } from '../format/node.ts';
import { loadChild } from '../tree/tree.ts';
import type { Tree } from '../tree/tree.ts';

/** An index of a table, as `db.indexes()` returns it. */
export interface IndexStatus {
  /** Name of the index. */
  readonly name: string;
  /** The indexed fields, in order; none for an index on a function. */
  readonly fields: readonly string[];
  /** The function of an index on a function. Absent for an index on fields. */
  readonly function?: string;
  /** Whether the index is unique: no two rows may agree in its fields. */
  readonly unique: boolean;
  /** The conditions of the rows that have entries. Absent: all rows have entries. */
  readonly where?: IndexConditions;
  /** Other fields whose values the index holds too. Absent: none. */
  readonly include?: readonly string[];
  /** Whether it has an entry for each element of the list in its json field. Absent: an entry for each row. */
  readonly each?: boolean;
  /** How the words of its fields are made and ranked, in an index on texts. Absent: it is another. */
  readonly text?: TextDefinition;
  /**
   * `ready`: queries use it. `waiting`: it is registered but not begun, because a migration of the table is under way or no
   * turn has come. `building`: its entries are being made, and queries do not use it. `failed`: it cannot be added or used;
   * `problem` has the reason.
   */
  readonly state: 'ready' | 'waiting' | 'building' | 'failed';
  /** Rows whose entries are made, without pending commits. */
  readonly rowsDone: number;
  /** Rows of the table, without pending commits. */
  readonly rowsTotal: number;
  /** Entries of the index, without pending commits. */
  readonly entries: number;
  /**
   * Bytes of its blocks before compression and encryption, without pending commits; a root in Block 0 counts too. Only with
   * `sizes: true`, and absent if this node knows of no stored block of the index.
   */
  readonly sizeBytes?: number;
  /** Whether the index is in the definition that is registered here for the active version of the table. */
  readonly declared: boolean;
  /** The reason why the index is not ready, if it is known. */
  readonly problem?: string;
}

/** Options of `db.indexes()`. */
export interface IndexesOptions {
  /** Ends the call early. */
  readonly signal?: AbortSignal;
  /** Whether to return `sizeBytes`. That reads the inner blocks of the indexes that are not in memory. Default false. */
  readonly sizes?: boolean;
}

export const indexesOptions: OptionTable<IndexesOptions> = new OptionTable({ sizes: kinds.flag, signal: kinds.signal });

/** Returns the indexes of a table in a view, in the active version; none if the table is not stored. */
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
  { name, fields, unique, where, include, each, text }: StoredIndex,
): Pick<IndexStatus, 'name' | 'fields' | 'unique' | 'where' | 'include' | 'each' | 'text'> {
  const typeOf = (field: string): LayoutField['typeId'] | undefined => layout.field(field)?.typeId;
  return {
    name,
    fields,
    unique: unique === true,
    ...defined({
      where: where && conditionsOf(where, typeOf),
      include,
      each,
      text: text && toTextDefinition(text, fields),
    }),
  };
}

function functionStatus(
  state: TableState,
  { name, function: on, each }: StoredFunctionIndex,
  registry: Registry,
  before: 'waiting' | 'building' = 'building',
): IndexStatus {
  const { shape, tree, indexVersions } = state;
  const rowsTotal = tree.count;
  const declared = isIn(registry.versionShape(shape.name, shape.version), name);
  const about = { name, fields: [], function: on, unique: false, rowsTotal, declared, ...defined({ each }) };
  if (before === 'waiting') return { ...about, state: before, rowsDone: 0, entries: 0 };
  const known = indexedFunctions(shape, (called) => registry.registeredFunction(called)).find(
    ({ index }) => index.name === name,
  );
  if (known === undefined) {
    const problem = `Function ${on} is not registered here with a version: nodes that have it make the entries.`;
    return { ...about, state: before, rowsDone: 0, entries: 0, problem };
  }
  const indexVersion = indexVersions.find(({ index }) => isSameIndex(index, known.index));
  const entries = indexVersion?.tree.count ?? 0;
  // Of how many rows the entries of elements are is not known before they are all there.
  const isDone = indexVersion !== undefined && isWhole(indexVersion);
  const rowsDone = each === true ? (isDone ? rowsTotal : 0) : Math.min(entries, rowsTotal);
  const done = { rowsDone, entries };
  if (indexVersion === undefined)
    return { ...about, state: rowsTotal === 0 && before === 'building' ? 'ready' : before, ...done };
  if (isUsable(indexVersion)) return { ...about, state: 'ready', ...done };
  if (indexVersion.failed === 0) return { ...about, state: 'building', ...done };
  return { ...about, state: 'failed', ...done, problem: `Function ${on} fails on ${indexVersion.failed} rows.` };
}

export interface DropIndexOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly registry: Registry;
}

/** Attempts before the call fails because other writes of Block 0 came first. */
const maxAttempts = 40;
const betweenAttempts: Backoff = { firstMs: 40, maxMs: 640, jitter: 'full' };

/** There is no index to drop any more. */
class AlreadyGone extends Error {}

/** Drops an index, or one that is being added. Throws `InvalidOptionError`, `InvalidSchemaError` or `MigrationActiveError`. */
export async function dropIndex(
  { environment, logger, engine, registry }: DropIndexOptions,
  table: string,
  index: unknown,
  signal: AbortSignal,
): Promise<void> {
  if (typeof index !== 'string') {
    throw new InvalidOptionError('index', `An index is given by its name, not by ${describeValue(index)}.`);
  }
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    await engine.refresh(signal);
    checkDrop(engine.view, table, index, registry);
    try {
      const done = await engine.merger.rebuild(async (block0, context) => {
        const state = View.ofBlock0(engine.context, block0).table(table);
        if (state === undefined || block0.migrations.some((other) => other.table === table)) throw new AlreadyGone();
        return [droppedIndex(state, index, context)];
      });
      if (done) {
        logger.info(`Index ${index} of table ${table} was dropped`, { table, index });
        return;
      }
    } catch (error) {
      if (!(error instanceof AlreadyGone)) throw error;
    }
    await backOff(environment, betweenAttempts, attempt, signal);
  }
  throw new ContentionError(
    'Other nodes merged before every attempt to drop the index. Nothing was changed: try it again.',
  );
}

/** Throws unless there is such an index and it may be dropped. */
function checkDrop(view: View, table: string, index: string, registry: Registry): void {
  const state = view.table(table);
  if (state === undefined || isSystemTable(table)) {
    throw new InvalidOptionError('tableName', `There is no table '${table}' of the application in the database.`);
  }
  const { shape, added } = state;
  const all = [...shape.indexes, ...shape.functionIndexes, ...added.map((one) => one.index)].map(({ name }) => name);
  if (!all.includes(index)) {
    throw new InvalidOptionError('index', `Table '${table}' has no index '${index}'${didYouMean(index, all) || '.'}`);
  }
  const nextVersion = view.nextVersion(table)?.rows.shape;
  if (nextVersion !== undefined) {
    throw new MigrationActiveError(
      table,
      `Table '${table}' is being migrated to version ${nextVersion.version}: drop the index '${index}' once that is finished or cancelled.`,
    );
  }
  const definition = registry.versionShape(table, shape.version);
  const isDefined = [...(definition?.indexes ?? []), ...(definition?.functionIndexes ?? [])].some(
    ({ name }) => name === index,
  );
  // A failed index may be dropped although it is declared: it begins again then, which is the purpose.
  const hasFailed = added.some((one) => one.index.name === index && one.problem !== undefined);
  if (!isDefined || hasFailed) return;
  throw new InvalidSchemaError(
    table,
    `Index '${index}' is in the definition of table '${table}' that is registered here, so it would be added again. Register ` +
      'the definition without it first, here and in all other processes.',
  );
}

/** Returns the trees of a table's indexes, by the names of the indexes. */
function treesOf(view: View, table: string, registry: Registry): Map<string, Tree> {
  const state = view.table(table);
  if (state === undefined) return new Map();
  const trees = new Map(state.indexes);
  for (const { index, tree } of state.added) trees.set(index.name, tree);
  for (const { index } of indexedFunctions(state.shape, (name) => registry.registeredFunction(name))) {
    const stored = state.indexVersions.find((each) => isSameIndex(each.index, index));
    if (stored !== undefined) trees.set(index.name, stored.tree);
  }
  return trees;
}

/** Returns the bytes of all blocks of a tree. The signal ends the reading. */
async function bytesOf(tree: Tree, signal: AbortSignal | undefined): Promise<number> {
  if (tree.ref === null) return 0;
  const below = async (node: Node): Promise<number> => {
    signal?.throwIfAborted();
    let bytes = 0;
    for (let i = 0; i < node.count; i++) {
      bytes += node.child(i).sizeBytes;
      if (node.level > 1) bytes += await below(await loadChild(tree.source, node, i, true));
    }
    return bytes;
  };
  return tree.ref.sizeBytes + (tree.ref.level === 0 ? 0 : await below(await tree.loadRoot()));
}

/** Adds sizes to the status of indexes. An index of which this node knows no stored tree gets no size. */
export async function withSizes(
  view: View,
  table: string,
  registry: Registry,
  found: readonly IndexStatus[],
  signal: AbortSignal | undefined,
): Promise<IndexStatus[]> {
  const trees = treesOf(view, table, registry);
  const sized: IndexStatus[] = [];
  for (const status of found) {
    const tree = trees.get(status.name);
    sized.push(tree === undefined ? status : { ...status, sizeBytes: await bytesOf(tree, signal) });
  }
  return sized;
}
