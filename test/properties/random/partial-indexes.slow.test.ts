/**
 * Random conditions, rows and queries: whatever is merged, and whichever node writes, queries give what the model gives, a flush is
 * refused exactly where two rows inside would agree, and `verify()` finds nothing.
 */
import { describe, expect, it } from 'vitest';
import { UniqueIndexError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import type { IndexConditions } from '../../../src/schema/index-condition.ts';
import { nameOfIndexed } from '../../../src/schema/index-definitions.ts';
import type { IndexDefinition } from '../../../src/schema/index-definitions.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { Nodes } from '../../features/protocol/nodes.ts';
import type { TestNode } from '../../features/protocol/nodes.ts';

type Value = string | number | bigint | boolean | Date | null;
type Row = Readonly<Record<string, Value>>;

const values = {
  kind: ['draft', 'live', 'gone', 'dra', '\u{1f600}', null],
  size: [-1.5, 0, -0, 3, 1e9, null],
  shard: [-1n, 0n, 9007199254740993n, null],
  open: [true, false, null],
  deleted: [new Date(0), new Date(86_400_000), null, null],
  note: ['a', 'b', 'c', 'd', 'e', null],
} satisfies Record<string, readonly Value[]>;

type Field = keyof typeof values;
const names = Object.keys(values) as Field[];

const fields = {
  id: { typeId: Types.uint16 },
  kind: { typeId: Types.varchar },
  size: { typeId: Types.float64 },
  shard: { typeId: Types.int64 },
  open: { typeId: Types.boolean },
  deleted: { typeId: Types.timestamp },
  note: { typeId: Types.varchar },
} as const;

function same(a: Value, b: Value): boolean {
  if (a instanceof Date && b instanceof Date) return a.getTime() === b.getTime();
  return a === b;
}

function order(a: Value, b: Value): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Whether a row is inside, as the documentation has it. */
function isInside(where: IndexConditions | undefined, row: Row): boolean {
  return Object.entries(where ?? {}).every(([field, condition]) => {
    const value = row[field] as Value;
    if (typeof condition === 'object' && condition !== null && 'not' in condition) return value !== null;
    const all = (Array.isArray(condition) ? condition : [condition]) as Value[];
    return all.some((one) => same(one, value));
  });
}

interface Asked {
  readonly field: Field;
  readonly operator: '=' | '!=' | '<' | '>=' | 'IN' | 'BETWEEN';
  readonly value: Value | readonly Value[];
}

function holds({ field, operator, value }: Asked, row: Row): boolean {
  const own = row[field] as Value;
  if (operator === 'IN') return (value as Value[]).some((one) => same(one, own));
  if (operator === 'BETWEEN') {
    const [low, high] = value as Value[];
    return (
      own !== null && low !== null && high !== null && order(own, low as Value) >= 0 && order(own, high as Value) <= 0
    );
  }
  const one = value as Value;
  if (operator === '=') return same(own, one);
  if (operator === '!=') return !same(own, one);
  if (own === null || one === null) return false;
  return operator === '<' ? order(own, one) < 0 : order(own, one) >= 0;
}

class World {
  readonly random: SeededRandom;
  readonly nodes: Nodes;
  readonly indexes: IndexDefinition[] = [];
  readonly schema: SchemaDefinition;
  rows = new Map<number, Row>();
  members: TestNode[] = [];
  refused = 0;
  used = 0;

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
    this.nodes = new Nodes(seed);
    const { random } = this;
    for (let i = 0; i < 3; i++) {
      const on = random.shuffled(names).slice(0, random.integer(1, 2));
      const unique = random.chance(0.4);
      this.indexes.push({ fields: on, where: this.condition(), name: `part ${i}`, ...(unique && { unique }) });
    }
    if (random.chance(0.5)) this.indexes.push({ fields: ['note'] });
    this.schema = { name: 'things', version: 1, fields, primaryKey: 'id', indexes: this.indexes };
  }

  value(field: Field): Value {
    return this.random.pick<Value>(values[field]);
  }

  condition(): IndexConditions {
    const { random } = this;
    const on = random.shuffled(names).slice(0, random.pick([1, 1, 2]));
    return Object.fromEntries(
      on.map((field): [string, IndexConditions[string]] => {
        const dice = random.next();
        if (dice < 0.25) return [field, { not: null }];
        if (dice < 0.6) return [field, null];
        const some = random.shuffled([...new Set<Value>(values[field])]).slice(0, random.integer(1, 2));
        const different = some.filter((value, i) => some.findIndex((one) => same(one, value)) === i);
        return [field, different.length === 1 ? (different[0] as Value) : different];
      }),
    );
  }

  async open(): Promise<void> {
    for (const nodeId of [1, 2]) {
      const node = this.nodes.make(nodeId, { blockSizeBytes: 512 });
      node.db.registerSchema(this.schema);
      await this.nodes.run(node.db.start());
      this.members.push(node);
    }
  }

  row(id: number): Row {
    return { id, ...Object.fromEntries(names.map((name) => [name, this.value(name)])) };
  }

  /** Whether two of the rows agree in an index that wants none that do. */
  agrees(rows: ReadonlyMap<number, Row>): boolean {
    return this.indexes.some(({ fields: indexed, unique, where }) => {
      if (unique !== true) return false;
      const on = indexed.map(nameOfIndexed);
      const inside = [...rows.values()].filter((row) => isInside(where, row) && on.every((name) => row[name] !== null));
      return inside.some((row, i) =>
        inside.slice(0, i).some((other) => on.every((name) => same(row[name] as Value, other[name] as Value))),
      );
    });
  }

  async write(): Promise<void> {
    const { random } = this;
    const { db } = random.pick(this.members);
    const batch = db.batch();
    const after = new Map(this.rows);
    for (let i = random.pick([1, 1, 2, 5]); i > 0; i--) {
      const id = random.integer(0, 40);
      const old = after.get(id);
      if (old !== undefined && random.chance(0.2)) {
        void batch.delete('things', id);
        after.delete(id);
      } else if (old !== undefined && random.chance(0.5)) {
        const [name] = random.shuffled(names) as [Field];
        const change = { id, [name]: this.value(name) };
        void batch.update('things', change);
        after.set(id, { ...old, ...change });
      } else {
        const row = this.row(id);
        void batch.upsert('things', row);
        after.set(id, row);
      }
    }
    let error: unknown;
    await this.nodes.run(batch.flush().catch((caught: unknown) => (error = caught)));
    expect(error instanceof UniqueIndexError, JSON.stringify([this.indexes, String(error)], bigints)).toBe(
      this.agrees(after),
    );
    if (error === undefined) this.rows = after;
    else if (error instanceof UniqueIndexError) this.refused++;
    else throw error as Error;
  }

  asked(): Asked {
    const { random } = this;
    // Mostly what a condition asks for, so that the index is of use.
    const [likely] = random.shuffled(this.indexes.flatMap(({ where }) => Object.entries(where ?? {})));
    if (likely !== undefined && random.chance(0.6)) {
      const [name, condition] = likely;
      const field = name as Field;
      if (condition === null || typeof condition !== 'object' || condition instanceof Date) {
        return { field, operator: '=', value: condition };
      }
      if ('not' in condition) {
        if (random.chance(0.5)) return { field, operator: '!=', value: null };
        return { field, operator: random.pick(['<', '>=', '='] as const), value: this.value(field) };
      }
      const all = condition as readonly Value[];
      if (random.chance(0.5))
        return { field, operator: 'IN', value: random.chance(0.2) ? [...all, this.value(field)] : all };
      return { field, operator: '=', value: random.pick(all) };
    }
    const field = random.pick(names);
    const operator = random.pick(['=', '!=', '<', '>=', 'IN', 'BETWEEN'] as const);
    if (operator === 'IN') return { field, operator, value: [this.value(field), this.value(field)] };
    if (operator === 'BETWEEN') return { field, operator, value: [this.value(field), this.value(field)] };
    return { field, operator, value: this.value(field) };
  }

  async ask(): Promise<void> {
    const { random } = this;
    const all = Array.from({ length: random.integer(1, 3) }, () => this.asked());
    const any = random.chance(0.3) ? [[this.asked(), this.asked()], [this.asked()]] : [];
    const { db } = random.pick(this.members);
    await this.nodes.run(db.refresh());
    let query = db.query('things');
    for (const { field, operator, value } of all) query = query.where(field, operator, value);
    if (any.length > 0) {
      query = query.where(({ is, and, or }) =>
        or(...any.map((each) => and(...each.map(({ field, operator, value }) => is(field, operator, value))))),
      );
    }
    const by = random.pick(names);
    const descending = random.chance(0.5);
    const isOrdered = random.chance(0.6);
    if (isOrdered) query = query.orderBy(by, descending ? 'desc' : 'asc');
    const matches = [...this.rows.values()]
      .filter(
        (row) =>
          all.every((one) => holds(one, row)) &&
          (any.length === 0 || any.some((each) => each.every((one) => holds(one, row)))),
      )
      .toSorted((a, b) => {
        const own = isOrdered ? order(a[by] as Value, b[by] as Value) * (descending ? -1 : 1) : 0;
        return own === 0 ? (a['id'] as number) - (b['id'] as number) : own;
      });
    const limit = random.chance(0.4) ? random.integer(0, 5) : undefined;
    if (limit !== undefined) query = query.limit(limit);
    const expected = matches.slice(0, limit).map(({ id }) => id);
    const plan = await this.nodes.run(query.explain());
    const told = JSON.stringify([this.indexes, all, any, isOrdered && [by, descending], plan], bigints);
    if (told.includes('(rows where ')) this.used++;
    const found = await this.nodes.run(query.execute());
    expect(
      found.map(({ id }) => id),
      told,
    ).toEqual(expected);
    expect(await this.nodes.run(query.count()), told).toBe(expected.length);
    const ids = await this.nodes.run(query.select('id').execute());
    expect(
      ids.map(({ id }) => id),
      told,
    ).toEqual(expected);
    const least = await this.nodes.run(query.min('size'));
    const sizes = matches.slice(0, limit).flatMap(({ size }) => (size === null ? [] : [size as number]));
    expect(least, told).toBe(sizes.length === 0 ? null : Math.min(...sizes) + 0);
  }

  async run(steps: number): Promise<void> {
    for (let i = 0; i < steps; i++) {
      const dice = this.random.next();
      if (dice < 0.45) await this.write();
      else if (dice < 0.55) await this.nodes.run(this.random.pick(this.members).db.checkpoint());
      else await this.ask();
    }
    const { db } = this.members[0] as TestNode;
    await this.nodes.run(db.checkpoint());
    const { findings, tables } = await this.nodes.run(db.verify({ deep: true }));
    expect(findings).toEqual([]);
    const found = tables.find(({ name }) => name === 'things')?.indexes.map(({ entries }) => entries);
    if (found === undefined) return;
    const rows = [...this.rows.values()];
    expect(found).toEqual(this.indexes.map(({ where }) => rows.filter((row) => isInside(where, row)).length));
  }
}

function bigints(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}n` : value;
}

const seeds = Array.from({ length: 12 }, (_, i) => i + 1);

describe('indexes on some rows', () => {
  it('have the results of the model, and refuse the same writes', async () => {
    let [refused, used] = [0, 0];
    for (const seed of seeds) {
      const world = new World(seed);
      await world.open();
      await world.run(120);
      refused += world.refused;
      used += world.used;
    }
    // It says nothing unless both happen often.
    expect(refused).toBeGreaterThan(20);
    expect(used).toBeGreaterThan(60);
  }, 180_000);
});
