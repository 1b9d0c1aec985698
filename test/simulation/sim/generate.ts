/** Where the rows, operations and queries of the workload come from. */
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { Key, ModelQuery, Op, State, Where } from './model.ts';
import { blobFieldsOf } from './tables.ts';
import type { Row } from './tables.ts';

interface TablePlan {
  readonly name: string;
  readonly primaryKey: string;
  /** Every field with what its values come from. */
  readonly fields: Readonly<Record<string, (random: SeededRandom, scale: Scale) => Row[string]>>;
}

/** How large the tables get. */
export interface Scale {
  readonly keys: number;
  readonly textLength: number;
  /** How likely a blob field that is written holds a blob, and not null. */
  readonly blobChance: number;
}

const owners = ['ann', 'bob', 'cyd', 'dan'];
const orNull =
  (value: (random: SeededRandom, scale: Scale) => Row[string]) =>
  (random: SeededRandom, scale: Scale): Row[string] =>
    random.chance(0.1) ? null : value(random, scale);

const text = orNull((random, { textLength }) => {
  const length = random.integer(0, textLength);
  return String.fromCharCode(97 + random.integer(0, 25)).repeat(length);
});

const blob = (random: SeededRandom, { blobChance }: Scale): Row[string] =>
  random.chance(blobChance) ? `blob ${random.integer(0, 2 ** 48)}` : null;

const plans: readonly TablePlan[] = [
  {
    name: 'items',
    primaryKey: 'id',
    fields: {
      id: (random, { keys }) => random.integer(1, keys),
      owner: orNull((random) => random.pick(owners)),
      rank: orNull((random) => random.integer(-5, 5)),
      text,
    },
  },
  {
    name: 'notes',
    primaryKey: 'name',
    fields: {
      name: (random, { keys }) => `note ${random.integer(1, keys)}`,
      score: orNull((random) => random.integer(-8, 8) / 4),
      text,
      body: blob,
      photo: blob,
    },
  },
];

/** Fields that rows can be found by, or put in order. */
function plainFields({ name, fields }: TablePlan): string[] {
  return Object.keys(fields).filter((field) => !blobFieldsOf(name).includes(field));
}

function randomKey(plan: TablePlan, random: SeededRandom, scale: Scale): Key {
  return (plan.fields[plan.primaryKey] as TablePlan['fields'][string])(random, scale) as Key;
}

/** A key that exists (or does not), where there is one; it may have changed by the time that the flush is validated. */
function keyThat(exists: boolean, plan: TablePlan, state: State, random: SeededRandom, scale: Scale): Key {
  const rows = state.get(plan.name);
  if (exists && rows !== undefined && rows.size > 0) return random.pick([...rows.keys()]);
  for (let tries = 0; tries < 8; tries++) {
    const key = randomKey(plan, random, scale);
    if (rows?.has(key) !== true) return key;
  }
  return randomKey(plan, random, scale);
}

/** An operation that mostly makes sense on a state that was seen a moment ago. */
export function randomOp(random: SeededRandom, state: State, scale: Scale): Op {
  const plan = random.pick(plans);
  const kind = random.pick(['insert', 'insert', 'update', 'update', 'upsert', 'delete'] as const);
  const sensible = random.chance(0.85);
  const key =
    kind === 'upsert'
      ? randomKey(plan, random, scale)
      : keyThat(sensible === (kind !== 'insert'), plan, state, random, scale);
  if (kind === 'delete') return { kind, table: plan.name, key };
  const document: Record<string, Row[string]> = { [plan.primaryKey]: key };
  for (const [name, value] of Object.entries(plan.fields)) {
    if (name !== plan.primaryKey && random.chance(0.7)) document[name] = value(random, scale);
  }
  return { kind, table: plan.name, key, document };
}

/** Many operations that cannot be rejected, so that trees grow and shrink. */
export function bulkOps(random: SeededRandom, scale: Scale): Op[] {
  const plan = random.pick(plans);
  const removing = random.chance(0.3);
  const ops = new Map<Key, Op>();
  for (let i = random.integer(5, scale.keys); i > 0; i--) {
    const key = randomKey(plan, random, scale);
    if (removing) {
      ops.set(key, { kind: 'delete', table: plan.name, key });
      continue;
    }
    const few = { ...scale, blobChance: scale.blobChance / 8 };
    const document = Object.fromEntries(Object.entries(plan.fields).map(([name, make]) => [name, make(random, few)]));
    ops.set(key, { kind: 'upsert', table: plan.name, key, document: { ...document, [plan.primaryKey]: key } });
  }
  return [...ops.values()];
}

export function randomGet(random: SeededRandom, scale: Scale): { readonly table: string; readonly key: Key } {
  const plan = random.pick(plans);
  return { table: plan.name, key: randomKey(plan, random, scale) };
}

function randomWhere(plan: TablePlan, random: SeededRandom, scale: Scale): Where {
  const field = random.pick(plainFields(plan).filter((name) => name !== 'text'));
  const value = (): Row[string] => (plan.fields[field] as TablePlan['fields'][string])(random, scale);
  if (random.chance(0.2)) return { field, operator: 'IN', value: [value(), value(), value()] };
  const operator = random.pick(['=', '=', '=', '!=', '<', '<=', '>', '>='] as const);
  return { field, operator, value: value() };
}

export function randomQuery(random: SeededRandom, scale: Scale): ModelQuery {
  if (random.chance(0.1)) return { table: random.pick(['marks', 'accounts']), wheres: [], orders: [], offset: 0 };
  return queryOf(random.pick(plans), random, scale);
}

/** A query on the table without blobs. */
export function itemsQuery(random: SeededRandom, scale: Scale): ModelQuery {
  return queryOf(plans[0] as TablePlan, random, scale);
}

function queryOf(plan: TablePlan, random: SeededRandom, scale: Scale): ModelQuery {
  const wheres = Array.from({ length: random.pick([0, 1, 1, 2]) }, () => randomWhere(plan, random, scale));
  const orders = random.chance(0.4)
    ? [{ field: random.pick(plainFields(plan)), direction: random.pick(['asc', 'desc'] as const) }]
    : [];
  const page = random.chance(0.2) ? { limit: random.integer(0, 10), offset: random.integer(0, 3) } : { offset: 0 };
  return { table: plan.name, wheres, orders, ...page };
}
