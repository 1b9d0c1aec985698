/**
 * The system tables of loads that can be resumed: a row for each unfinished load, and one for each sorted run of its rows that is
 * stored. Both are committed like any other rows, so every commit is certainly before or after them.
 *
 * Invariants:
 * - Only the call that `worker` names adds runs to a load or finishes it. A call that takes the load over replaces that name.
 * - The staged objects of the runs are there for as long as Block 0 has the pin of the load, which keeps the log.
 */
import { CorruptionError } from '../base/errors.ts';
import { parseStagedName, stagedName } from '../format/object-names.ts';
import { decodeRow } from '../format/row-decode.ts';
import { isStoredSchema } from '../format/stored-schema.ts';
import type { StoredSchema } from '../format/stored-schema.ts';
import { isCount } from '../format/stored-table.ts';
import { Types } from '../format/types.ts';
import type { PlainRow } from '../schema/schema.ts';
import { TableShape } from '../schema/table-shape.ts';
import type { KeyRange } from '../tree/cursor.ts';
import type { View } from '../view/view.ts';

/** The table of unfinished loads. */
export const loadsSchema: StoredSchema = {
  name: '_loads',
  version: 1,
  fields: [
    { name: 'name', typeId: Types.varchar },
    { name: 'table', typeId: Types.varchar },
    // The schema of the rows, as JSON.
    { name: 'schema', typeId: Types.varchar },
    { name: 'worker', typeId: Types.varchar },
    { name: 'nodeId', typeId: Types.float64 },
    { name: 'startedAt', typeId: Types.timestamp },
    { name: 'takenAt', typeId: Types.timestamp },
    { name: 'pin', typeId: Types.varchar },
  ],
  primaryKey: ['name'],
  indexes: [],
};

/** The table of the runs that unfinished loads have stored. */
export const loadRunsSchema: StoredSchema = {
  name: '_load_runs',
  version: 1,
  fields: [
    { name: 'load', typeId: Types.varchar },
    { name: 'run', typeId: Types.uint32 },
    // The place in the source behind the rows of the run: the rows before it, a checksum of their keys, and the key of the last one.
    { name: 'sourceRows', typeId: Types.float64 },
    { name: 'sourceKeys', typeId: Types.uint32 },
    { name: 'sourceKey', typeId: Types.bytes },
    { name: 'firstKey', typeId: Types.bytes },
    { name: 'lastKey', typeId: Types.bytes },
    // The tree: ids of its objects, as JSON, and its root, which is in the last of them.
    { name: 'objects', typeId: Types.varchar },
    { name: 'rootOffset', typeId: Types.float64 },
    { name: 'rootBytes', typeId: Types.uint32 },
    { name: 'level', typeId: Types.uint8 },
    { name: 'count', typeId: Types.float64 },
  ],
  primaryKey: ['load', 'run'],
  indexes: [],
};

export const loadsShape: TableShape = new TableShape(loadsSchema);
export const loadRunsShape: TableShape = new TableShape(loadRunsSchema);

/** The highest number of a run. */
const lastRun = 0xffff_ffff;

/** An unfinished load, as its row has it. */
export interface StoredLoad {
  readonly name: string;
  readonly table: string;
  readonly schema: string;
  /** A random name of the call that works on the load. */
  readonly worker: string;
  /** The node of that call. */
  readonly nodeId: number;
  readonly startedAt: Date;
  /** When that call began. */
  readonly takenAt: Date;
  /** Id of the pin in Block 0 that keeps the runs. */
  readonly pin: string;
}

/** A stored run, as its row has it. */
export interface StoredLoadRun {
  readonly load: string;
  readonly run: number;
  readonly sourceRows: number;
  readonly sourceKeys: number;
  readonly sourceKey: Uint8Array;
  readonly firstKey: Uint8Array;
  readonly lastKey: Uint8Array;
  readonly objects: string;
  readonly rootOffset: number;
  readonly rootBytes: number;
  readonly level: number;
  readonly count: number;
}

function malformed(shape: TableShape, name: string): CorruptionError {
  return new CorruptionError(shape.name, `The record of the load ${JSON.stringify(name)} is not valid`);
}

function hasAll(row: Readonly<Record<string, unknown>>): boolean {
  return Object.values(row).every((value) => value !== null && value !== undefined);
}

/** Checks a row of the table of loads. Throws `CorruptionError`. */
export function checkStoredLoad(name: string, row: Readonly<Record<string, unknown>>): StoredLoad {
  if (!hasAll(row)) throw malformed(loadsShape, name);
  return row as unknown as StoredLoad;
}

/** Checks a row of the table of runs: it decides what is read from the store. Throws `CorruptionError`. */
export function checkStoredRun(name: string, row: Readonly<Record<string, unknown>>): StoredLoadRun {
  const { sourceRows, rootOffset, count, level, objects } = row;
  const isValid =
    hasAll(row) && [sourceRows, rootOffset, count].every(isCount) && count !== 0 && (level as number) <= 40;
  if (!isValid || objectsOf(objects as string) === undefined) throw malformed(loadRunsShape, name);
  return row as unknown as StoredLoadRun;
}

/** Returns the ids of a run's objects; undefined if the text holds no such list. */
export function objectsOf(text: string): readonly string[] | undefined {
  let ids: unknown;
  try {
    ids = JSON.parse(text);
  } catch {
    return undefined;
  }
  const isId = (id: unknown): boolean => typeof id === 'string' && parseStagedName(stagedName(id)) !== undefined;
  return Array.isArray(ids) && ids.length > 0 && ids.every(isId) ? (ids as string[]) : undefined;
}

/** Returns the schema of a load's rows; undefined if the text holds none. */
export function schemaOfLoad(text: string): StoredSchema | undefined {
  try {
    const schema: unknown = JSON.parse(text);
    return isStoredSchema(schema) ? schema : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the unfinished load with a name. */
export async function findLoad(view: View, name: string): Promise<StoredLoad | undefined> {
  const found = await view.table(loadsSchema.name)?.lookup(loadsShape.keyBytes(name));
  return found && checkStoredLoad(name, decodeRow(loadsShape.layout, found.source, found.base));
}

function runRange(name: string): KeyRange {
  return { from: loadRunsShape.keyBytes([name, 0]), to: loadRunsShape.keyBytes([name, lastRun]) };
}

/** Returns the run of a load that was stored last; undefined if there is none. */
export async function lastRunOf(view: View, name: string): Promise<StoredLoadRun | undefined> {
  const cursor = view.table(loadRunsSchema.name)?.scan(runRange(name), true);
  if (cursor === undefined || !(await cursor.next())) return undefined;
  const { node, to } = cursor;
  return checkStoredRun(name, decodeRow(loadRunsShape.layout, node, node.rowBase(to - 1)));
}

/** Returns the runs of a load, in the order in which they were stored. */
export async function runsOfLoad(view: View, name: string): Promise<StoredLoadRun[]> {
  const rows = await rowsIn(view, loadRunsShape, runRange(name));
  return rows.map((row) => checkStoredRun(name, row));
}

/** Returns all unfinished loads, ordered by name. */
export async function allLoads(view: View): Promise<StoredLoad[]> {
  const rows = await rowsIn(view, loadsShape);
  return rows.map((row) => checkStoredLoad(String(row['name']), row));
}

/** Returns the rows of a table in a range of keys; none if there is no such table yet. */
async function rowsIn({ tables }: View, { name, layout }: TableShape, range?: KeyRange): Promise<PlainRow[]> {
  const rows: PlainRow[] = [];
  const cursor = tables.get(name)?.scan(range);
  while ((await cursor?.next()) === true) {
    const { node, from, to } = cursor as NonNullable<typeof cursor>;
    for (let i = from; i < to; i++) rows.push(decodeRow(layout, node, node.rowBase(i)));
  }
  return rows;
}
