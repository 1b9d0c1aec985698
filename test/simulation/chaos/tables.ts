/** The tables that the processes write to, and their shared conventions. */
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { Types } from '../../../src/format/types.ts';
import { defineSchema } from '../../../src/schema/define-schema.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import type { Balances } from './history.ts';

/** Lists of which each is a row. `version` counts the changes of a list that is guarded. */
export const lists = defineSchema({
  name: 'lists',
  version: 1,
  fields: { id: { typeId: Types.varchar }, items: { typeId: Types.json }, version: { typeId: Types.int32 } },
  primaryKey: 'id',
});

/** Lists of which each element is a row. */
export const entries = defineSchema({
  name: 'entries',
  version: 1,
  fields: { id: { typeId: Types.varchar }, list: { typeId: Types.varchar }, position: { typeId: Types.int32 } },
  primaryKey: 'id',
  indexes: ['list'],
});

export const accounts = defineSchema({
  name: 'accounts',
  version: 1,
  fields: {
    id: { typeId: Types.varchar },
    bank: { typeId: Types.varchar },
    balance: { typeId: Types.int32 },
    version: { typeId: Types.int32 },
  },
  primaryKey: 'id',
  indexes: ['bank', 'balance'],
});

export const transfers = defineSchema({
  name: 'transfers',
  version: 1,
  fields: {
    id: { typeId: Types.varchar },
    bank: { typeId: Types.varchar },
    source: { typeId: Types.varchar },
    target: { typeId: Types.varchar },
    amount: { typeId: Types.int32 },
  },
  primaryKey: 'id',
  indexes: ['bank'],
});

/** One row for every version of every guarded row: who changes a row inserts the next one, which only one can. */
export const guards = defineSchema({
  name: 'guards',
  version: 1,
  fields: { id: { typeId: Types.varchar } },
  primaryKey: 'id',
});

export const marks = defineSchema({
  name: 'marks',
  version: 1,
  fields: { id: { typeId: Types.varchar }, flush: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['flush'],
});

/** Each field is written by one lane. */
export const fieldNames = ['a', 'b', 'c', 'd'] as const;

export const shared = defineSchema({
  name: 'shared',
  version: 1,
  fields: {
    id: { typeId: Types.varchar },
    a: { typeId: Types.int32 },
    b: { typeId: Types.int32 },
    c: { typeId: Types.int32 },
    d: { typeId: Types.int32 },
  },
  primaryKey: 'id',
  indexes: ['a', 'c'],
});

export const papers = defineSchema({
  name: 'papers',
  version: 1,
  fields: { id: { typeId: Types.varchar }, content: { typeId: Types.blob } },
  primaryKey: 'id',
});

/** A commit of the parent's own tells that what was sent before has landed, or never will. */
export const fences = defineSchema({
  name: 'fences',
  version: 1,
  fields: { id: { typeId: Types.varchar } },
  primaryKey: 'id',
});

export const tables: readonly SchemaDefinition[] = [
  lists,
  entries,
  accounts,
  transfers,
  guards,
  marks,
  shared,
  papers,
  fences,
];

export const laneCount = 4;
export const sharedRows: readonly string[] = ['first', 'second', 'third'];

/** In one, transfers are guarded, by plain batches; in the other they are transactions. */
export const guardedBank = 'guarded';
export const banks: readonly string[] = [guardedBank, 'transacted'];

export function openingBalances(bank: string): Balances {
  return Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`${bank}-${i}`, 100]));
}

/** Small blocks, so that every merge writes several. */
export const databaseOptions: Pick<StoreDbOptions, 'blockSizeBytes' | 'logLevel' | 'polling' | 'mergePolicy'> = {
  polling: 'interval',
  mergePolicy: { minCommits: 1 },
  blockSizeBytes: 2048,
  logLevel: 'silent',
};
