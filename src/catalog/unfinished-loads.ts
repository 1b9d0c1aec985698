/**
 * The system tables of loads that can be resumed: a row for each unfinished load, and one for each sorted run of its rows that is
 * stored. Both are committed like any other rows, so every commit is certainly before or after them.
 *
 * Invariants:
 * - Only the call that `worker` names adds runs to a load or finishes it. A call that takes the load over replaces that name.
 * - The staged objects of the runs are there for as long as Block 0 has the pin of the load, which keeps the log.
 */
import { ByteWriter } from '../base/bytes.ts';
import { CorruptionError } from '../base/errors.ts';
import { parseStagedName, stagedName } from '../format/object-names.ts';
import { readField } from '../format/row-decode.ts';
import type { LayoutField } from '../format/row-layout.ts';
import { isStoredSchema } from '../format/stored-schema.ts';
import type { StoredSchema } from '../format/stored-schema.ts';
import { Types } from '../format/types.ts';
import { TableShape } from '../schema/table-shape.ts';
import type { KeyValue } from '../schema/table-shape.ts';
import type { KeyRange } from '../tree/cursor.ts';
import type { RowRef } from '../tree/tree.ts';
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

function rowOf(shape: TableShape, { source, base }: RowRef): Record<string, unknown> {
  return Object.fromEntries(
    shape.layout.fields.map((field: LayoutField) => [field.name, readField(source, base, field)]),
  );
}

function keyOf(shape: TableShape, value: KeyValue): Uint8Array {
  const key = new ByteWriter(64);
  shape.writeKey(key, value);
  return key.finish();
}

function malformed(shape: TableShape, name: string): CorruptionError {
  return new CorruptionError(shape.name, `The record of the load ${JSON.stringify(name)} is not valid`);
}

function hasAll(row: Readonly<Record<string, unknown>>): boolean {
  return Object.values(row).every((value) => value !== null && value !== undefined);
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
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
  const found = await view.table(loadsSchema.name)?.lookup(keyOf(loadsShape, name));
  return found && checkStoredLoad(name, rowOf(loadsShape, found));
}

function runRange(name: string): KeyRange {
  return { from: keyOf(loadRunsShape, [name, 0]), to: keyOf(loadRunsShape, [name, lastRun]) };
}

/** Returns the run of a load that was stored last; undefined if there is none. */
export async function lastRunOf(view: View, name: string): Promise<StoredLoadRun | undefined> {
  const cursor = view.table(loadRunsSchema.name)?.scan(runRange(name), true);
  if (cursor === undefined || !(await cursor.next())) return undefined;
  const { node, to } = cursor;
  return checkStoredRun(name, rowOf(loadRunsShape, { source: node, base: node.rowBase(to - 1) }));
}

/** Returns the runs of a load, in the order in which they were stored. */
export async function runsOfLoad(view: View, name: string): Promise<StoredLoadRun[]> {
  const runs: StoredLoadRun[] = [];
  const cursor = view.table(loadRunsSchema.name)?.scan(runRange(name));
  while ((await cursor?.next()) === true) {
    const { node, from, to } = cursor as NonNullable<typeof cursor>;
    for (let i = from; i < to; i++) {
      runs.push(checkStoredRun(name, rowOf(loadRunsShape, { source: node, base: node.rowBase(i) })));
    }
  }
  return runs;
}

/** Returns all unfinished loads, ordered by name. */
export async function allLoads(view: View): Promise<StoredLoad[]> {
  const loads: StoredLoad[] = [];
  const cursor = view.table(loadsSchema.name)?.scan();
  while ((await cursor?.next()) === true) {
    const { node, from, to } = cursor as NonNullable<typeof cursor>;
    for (let i = from; i < to; i++) {
      const row = rowOf(loadsShape, { source: node, base: node.rowBase(i) });
      loads.push(checkStoredLoad(String(row['name']), row));
    }
  }
  return loads;
}
