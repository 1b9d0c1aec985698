/** The index on a function that some runs have: nodes have the function in one version, in another one, or not at all. */
import type { Database } from '../../../src/api/database.ts';
import { Types } from '../../../src/format/types.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { items, pages, pagesWith, schemas } from './tables.ts';
import type { Row, Value } from './tables.ts';

const name = 'initial';

/** What each version of the function makes of an owner. */
const results: Readonly<Record<number, (owner: string) => string>> = {
  1: (owner) => owner.slice(0, 1),
  2: (owner) => `${owner.length} ${owner.slice(1)}`,
};
export const functionVersions = [1, 2] as const;
const values = ['a', 'b', 'c', '3 nn', '3 ob', '3 yd', 'none', null];

/** The function in a version, as a field of the model's rows. */
export function resultField(version: number): string {
  return `${name} ${version}`;
}

/** The version of the function that a field of the model's rows stands for. */
function versionOf(field: string): number | undefined {
  return functionVersions.find((version) => resultField(version) === field);
}

/** What a model's field is called in the engine. */
export function engineName(field: string): string {
  return versionOf(field) === undefined ? field : name;
}

/** What a row has in a field, or what the function makes of it. */
export function valueIn(row: Row, field: string): Value {
  const version = versionOf(field);
  if (version === undefined) return row[field] as Value;
  const { owner } = row;
  return typeof owner === 'string' ? (results[version] as (owner: string) => string)(owner) : null;
}

const indexedItems = {
  ...items,
  indexes: [...items.indexes, { function: name, typeId: Types.varchar }],
} as const;

/** The tables of a run, as whoever looks after them has them: without the indexes that nodes add and drop. */
export function schemasOf(config: {
  readonly functions: boolean;
  readonly pageChance: number;
  readonly indexChance: number;
}): readonly SchemaDefinition[] {
  const [, ...others] = schemas;
  const keyed = config.indexChance > 0 ? pagesWith(new Set()) : pages;
  return [config.functions ? indexedItems : items, ...others, ...(config.pageChance > 0 ? [keyed] : [])];
}

export function registerFunction(db: Database, version: number): void {
  db.registerFunction(name, (row) => valueIn(row as Row, resultField(version)), version);
}

/** Values that rows may have. */
export const allResults: readonly Value[] = values;

/** What a query by the function asks for, as the model has it. */
export interface FunctionQuery {
  readonly table: 'items';
  readonly wheres: readonly { readonly field: string; readonly operator: '='; readonly value: Value }[];
  readonly orders: readonly { readonly field: string; readonly direction: 'asc' | 'desc' }[];
  readonly limit?: number;
  readonly offset: number;
}

/** One node's part: it has the function in some version, or not at all, and asks by it. */
export class FunctionUser {
  readonly #random: SeededRandom;
  readonly #version: number | undefined;

  constructor(db: Database, random: SeededRandom) {
    this.#random = random;
    this.#version = random.pick([undefined, 1, 1, 2]);
    if (this.#version !== undefined) registerFunction(db, this.#version);
  }

  /** Now and then a query by the function. */
  query(): FunctionQuery | undefined {
    const random = this.#random;
    if (this.#version === undefined || random.chance(0.6)) return undefined;
    const where = { field: resultField(this.#version), operator: '=', value: random.pick(values) } as const;
    const orders = random.chance(0.3) ? [{ field: 'rank', direction: 'desc' } as const] : [];
    const page = random.chance(0.2) ? { limit: random.integer(0, 6), offset: random.integer(0, 2) } : { offset: 0 };
    return { table: 'items', wheres: [where], orders, ...page };
  }
}
