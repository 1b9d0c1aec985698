/** Where operations on the table that there is in several versions come from. */
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { Scale } from './generate.ts';
import type { Op } from './model.ts';
import type { Value } from './tables.ts';
import { fieldNames, peopleIn } from './versions.ts';

const names = ['ann', 'bob', 'cyd', 'somebody whose name is long'];

/**
 * Values of a version. What another version cannot hold becomes null there, and where null would be written too, which of
 * the two it was would depend on when rows are brought in line: so some fields are never null by themselves.
 */
const makers: Readonly<Record<string, (random: SeededRandom, version: number, broken: number) => Value>> = {
  name: (random) => random.pick([...names, null]),
  age: (random, version) =>
    random.pick([0, 7, 255, ...(version > 1 ? [300, 70_000] : []), ...(version > 2 ? [2.5] : [])]),
  rank: (random, version, broken) =>
    version === 1 && random.chance(broken) ? 40_000 : random.pick([null, -5, 0, 1, 9]),
  text: (random) => random.pick([null, '', 'a', 'text of some length, for the heap']),
  label: (random) => random.pick([null, '<>', '<b>', '<label of some length, for the heap>']),
  old: (random) => random.pick([null, 'old', 'older']),
  email: (random) => random.pick([null, 'mail', 'mail of some length, for the heap']),
  level: (random, version) => random.pick([1, 2, ...(version > 2 ? [300] : [])]),
  city: (random) => random.pick([null, 'rome', 'oslo']),
};

export interface PeoplePlan {
  readonly version: number;
  readonly scale: Scale;
  /** How likely the old version writes a row that cannot be migrated. */
  readonly brokenChance: number;
}

export function randomPersonOp(random: SeededRandom, plan: PeoplePlan, keys: readonly number[], calm: boolean): Op {
  const { version, scale, brokenChance } = plan;
  const table = peopleIn(version);
  const kinds = ['insert', 'update', 'update', 'update', 'upsert', 'delete'] as const;
  const kind = calm ? random.pick(['upsert', 'upsert', 'upsert', 'delete'] as const) : random.pick(kinds);
  const isThere = kind === 'update' || kind === 'delete';
  const sensible = keys.length > 0 && isThere && random.chance(0.9);
  // Some rows are written by all versions again and again.
  const most = !calm && random.chance(0.6) ? 4 : scale.keys;
  const low = keys.filter((other) => other <= most);
  const key = sensible && low.length > 0 ? random.pick(low) : random.integer(1, most);
  if (kind === 'delete') return { kind, table, key };
  const document: Record<string, Value> = { id: key };
  for (const name of fieldNames(version)) {
    const make = makers[name];
    if (make === undefined) continue;
    if ((name === 'age' && kind !== 'update') || random.chance(0.5))
      document[name] = make(random, version, brokenChance);
  }
  return { kind, table, key, document };
}

/** A field that can be looked for, and a value. */
export function randomPersonValue(random: SeededRandom, version: number): { field: string; value: Value } {
  const field = random.pick(fieldNames(version).filter((name) => !['text', 'label', 'rank'].includes(name)));
  if (field === 'id') return { field, value: random.integer(1, 12) };
  return { field, value: (makers[field] as (typeof makers)[string])(random, version, 0) };
}
