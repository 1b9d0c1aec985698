/** The index on a function that some runs have: nodes have the function in one version, in another one, or not at all. */
import type { Database } from '../../src/database.ts';
import { Types } from '../../src/format/types.ts';
import type { SeededRandom } from '../../src/testing/seeded-random.ts';
import { items, schemas } from './tables.ts';
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

/** The tables of a run. */
export function schemasOf(hasFunctions: boolean): typeof schemas | readonly [typeof indexedItems, ...typeof others] {
  return hasFunctions ? [indexedItems, ...others] : schemas;
}

const [, ...others] = schemas;
const indexedItems = {
  ...items,
  indexes: [...items.indexes, { function: name, typeId: Types.varchar }],
} as const;

export function registerFunction(db: Database, version: number): void {
  db.registerFunction(name, (row) => valueIn(row as Row, resultField(version)), version);
}

/** A value that some rows may have. */
export function someResult(random: SeededRandom): Value {
  return random.pick(values);
}

/** All of them. */
export const allResults: readonly Value[] = values;
