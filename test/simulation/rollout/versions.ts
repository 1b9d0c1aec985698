/**
 * The two versions of the application whose processes run at once. Each lane of processes has fields of its own in every
 * row, so that whoever writes a field does so in a known order: one that both versions have, and one for each version.
 */
import { Types } from '../../../src/format/types.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import type { CrashStore } from '../crash/crash-store.ts';

export type Version = 1 | 2;

export const lanes: readonly number[] = [0, 1, 2, 3];
/** Rows that are there from the beginning, and stay. */
export const seededRows = 300;
export const groups = 10;
/** Rows of sums, which transactions add to. */
export const sumRows: readonly number[] = [-1, -2, -3];

function fieldsOf(name: string, typeId: number, more: object = {}): Record<string, { typeId: number }> {
  return Object.fromEntries([...lanes, 'Sum'].map((lane) => [`${name}${lane}`, { typeId, ...more }]));
}

/** `shared` is in both, with a wider type in the new one; `old` and `fresh` are in one. */
export const items1: SchemaDefinition = {
  name: 'items',
  version: 1,
  fields: {
    id: { typeId: Types.int32 },
    group: { typeId: Types.uint8 },
    ...fieldsOf('shared', Types.uint32),
    ...fieldsOf('old', Types.uint32),
  },
  primaryKey: 'id',
  indexes: ['group'],
};

export const items2: SchemaDefinition = {
  name: 'items',
  version: 2,
  fields: {
    id: { typeId: Types.int32 },
    group: { typeId: Types.uint8 },
    ...fieldsOf('shared', Types.float64),
    ...fieldsOf('fresh', Types.uint32, { default: 0 }),
  },
  primaryKey: 'id',
  indexes: ['group', 'shared0'],
};

export function schemaOf(version: Version): SchemaDefinition {
  return version === 1 ? items1 : items2;
}

/** The name of the fields that only one version has. */
export function ownField(version: Version): 'old' | 'fresh' {
  return version === 1 ? 'old' : 'fresh';
}

/** A table of the parent's: what was sent before its commit has landed by then, or never will. */
export const fences: SchemaDefinition = {
  name: 'fences',
  version: 1,
  fields: { id: { typeId: Types.varchar } },
  primaryKey: 'id',
};

export const databaseOptions: Pick<StoreDbOptions, 'blockSizeBytes' | 'logLevel' | 'polling' | 'mergePolicy'> = {
  polling: 'interval',
  mergePolicy: { minCommits: 1 },
  blockSizeBytes: 1024,
  logLevel: 'silent',
};

/** What a process is to do: its argument, as JSON. */
export interface RolloutTask {
  readonly store: CrashStore;
  readonly dbPrefix: string;
  readonly lane: number;
  readonly life: number;
  readonly version: Version;
  readonly intervalMs: number;
  readonly pauseMs: number;
}

/** What was asked of the database. Values of a lane ascend, and no two are the same. */
export interface Asked {
  readonly kind: 'update' | 'add' | 'insert' | 'delete';
  readonly row: number;
  readonly value: number;
}

/** Lines on the standard output of a process, each as JSON. */
export type Line =
  | { readonly tells: 'ready' | 'held' }
  | ({ readonly tells: 'begin'; readonly id: number } & Asked)
  | {
      readonly tells: 'end';
      readonly id: number;
      readonly outcome: 'ok' | 'failed' | 'unknown';
      readonly error?: string;
    }
  | { readonly tells: 'state'; readonly state: string; readonly rowsDone: number }
  | { readonly tells: 'anomaly'; readonly message: string };
