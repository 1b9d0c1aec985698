/**
 * Random keys of several fields, rows and queries: whatever is merged, and whichever node writes, reads give what a simple model
 * gives, a flush is refused exactly where it must be, and `verify()` finds nothing.
 */
import { describe, expect, it } from 'vitest';
import { DuplicateKeyError, RowNotFoundError, UniqueIndexError } from '../../../src/base/errors.ts';
import { compareValues } from '../../../src/base/bytes.ts';
import { Types } from '../../../src/format/types.ts';
import type { Query } from '../../../src/query/query.ts';
import { nameOfIndexed } from '../../../src/schema/index-definitions.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { Nodes } from '../../features/protocol/nodes.ts';
import type { TestNode } from '../../features/protocol/nodes.ts';

type Value = string | number | bigint | boolean | Date | Uint8Array | null;
type Row = Readonly<Record<string, Value>>;

/** Few of each, so that keys come again; in the order that they have. */
const domains = {
  text: ['', '\0', 'a', 'a\0', 'a\0b', 'ab', 'b', '\u{ffff}', '\u{10000}', 'x'.repeat(300)],
  small: [0, 1, 2, 255],
  signed: [-(2 ** 31), -1, 0, 7],
  big: [-(2n ** 63n), -1n, 0n, 9007199254740993n],
  real: [Number.NEGATIVE_INFINITY, -1.5, 0, 1e300],
  flag: [false, true],
  at: [new Date(-1), new Date(0), new Date(86_400_000)],
  bytes: [Buffer.from([]), Buffer.from([0]), Buffer.from([0, 255]), Buffer.from([1])],
  uuid: ['00000000-0000-4000-8000-000000000000', 'ffffffff-0000-4000-8000-000000000000'],
} satisfies Record<string, readonly Value[]>;
type Field = keyof typeof domains;
const names = Object.keys(domains) as Field[];

const fields = {
  text: { typeId: Types.varchar },
  small: { typeId: Types.uint8 },
  signed: { typeId: Types.int32 },
  big: { typeId: Types.int64 },
  real: { typeId: Types.float64 },
  flag: { typeId: Types.boolean },
  at: { typeId: Types.timestamp },
  bytes: { typeId: Types.bytes },
  uuid: { typeId: Types.uuid },
  note: { typeId: Types.uint16 },
} as const;

function compare(a: Value, b: Value): number {
  return compareValues(a, b);
}

interface Asked {
  readonly field: Field;
  readonly operator: '=' | '!=' | '<' | '<=' | '>' | '>=' | 'IN' | 'BETWEEN';
  readonly value: Value | readonly Value[];
}

function holds({ field, operator, value }: Asked, row: Row): boolean {
  const own = row[field] as Value;
  if (operator === 'IN') return (value as Value[]).some((one) => compare(one, own) === 0);
  if (operator === 'BETWEEN') {
    const [low, high] = value as [Value, Value];
    return own !== null && compare(own, low) >= 0 && compare(own, high) <= 0;
  }
  const order = compare(own, value as Value);
  if (operator === '=') return order === 0;
  if (operator === '!=') return order !== 0;
  if (own === null) return false;
  if (operator === '<') return order < 0;
  if (operator === '<=') return order <= 0;
  return operator === '>' ? order > 0 : order >= 0;
}

interface Between {
  readonly on: readonly Field[];
  readonly operator: '<' | '<=' | '>' | '>=';
  readonly values: readonly Value[];
}

/** The first field that differs decides; null does for nothing. */
function isBetween({ on, operator, values }: Between, row: Row): boolean {
  for (const [i, field] of on.entries()) {
    const own = row[field] as Value;
    if (own === null || values[i] === null) return false;
    const order = compare(own, values[i] as Value);
    if (order !== 0) return order > 0 === operator.startsWith('>');
  }
  return operator.endsWith('=');
}

function told(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}n` : value;
}

class World {
  readonly random: SeededRandom;
  readonly nodes: Nodes;
  readonly key: readonly Field[];
  readonly others: readonly Field[];
  readonly schema: SchemaDefinition;
  rows: Row[] = [];
  members: TestNode[] = [];
  /** How often each happened. */
  readonly seen = new Map<string, number>();
  #note = 0;

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
    this.nodes = new Nodes(seed);
    const { random } = this;
    const shuffled = random.shuffled(names);
    this.key = shuffled.slice(0, random.integer(2, 4));
    this.others = shuffled.slice(this.key.length);
    const [a, b, c] = this.others as [Field, Field, Field];
    const indexes = [
      a,
      { fields: [b, this.key[1] as Field], name: 'with key' },
      { fields: [b, c], unique: random.chance(0.5), name: 'two' },
    ].slice(0, random.integer(0, 3));
    this.schema = { name: 'things', version: 1, fields, primaryKey: this.key, indexes };
  }

  saw(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }

  value(field: Field): Value {
    return this.random.pick<Value>(domains[field]);
  }

  keyOf(row: Row): Value[] {
    return this.key.map((name) => row[name] as Value);
  }

  compareKeys(a: Row, b: Row): number {
    for (const name of this.key) {
      const order = compare(a[name] as Value, b[name] as Value);
      if (order !== 0) return order;
    }
    return 0;
  }

  row(): Row {
    const row: Record<string, Value> = { note: this.#note++ % 65_536 };
    for (const name of names) {
      const isNull = !this.key.includes(name) && this.random.chance(0.2);
      row[name] = isNull ? null : this.value(name);
    }
    // As it is stored, and read.
    return Object.fromEntries(Object.keys(fields).map((name) => [name, row[name] as Value]));
  }

  async open(): Promise<void> {
    for (const nodeId of [1, 2]) await this.start(nodeId);
  }

  async start(nodeId: number): Promise<void> {
    const node = this.nodes.make(nodeId, { blockSizeBytes: 512 });
    node.db.registerSchema(this.schema);
    await this.nodes.run(node.db.start());
    this.members.push(node);
  }

  /** Whether two of the rows agree in an index that wants none that do. */
  agrees(rows: readonly Row[]): boolean {
    return (this.schema.indexes ?? []).some((index) => {
      if (typeof index !== 'object' || !('fields' in index) || index.unique !== true) return false;
      const on = index.fields.map(nameOfIndexed);
      const whole = rows.filter((row) => on.every((name) => row[name] !== null));
      return whole.some((row, i) =>
        whole.slice(0, i).some((other) => on.every((name) => compare(row[name] as Value, other[name] as Value) === 0)),
      );
    });
  }

  async write(): Promise<void> {
    const { random } = this;
    const { db } = random.pick(this.members);
    await this.nodes.run(db.refresh());
    const batch = db.batch();
    let after = [...this.rows];
    let expected: 'done' | 'duplicate' | 'missing' | 'unique' = 'done';
    const without = (row: Row): Row[] => after.filter((other) => this.compareKeys(other, row) !== 0);
    for (let i = random.integer(1, 12); i > 0 && expected === 'done'; i--) {
      const made = this.row();
      const [known] = random.shuffled(after);
      const row = known !== undefined && random.chance(0.5) ? { ...made, ...this.keyFields(known) } : made;
      const old = after.find((other) => this.compareKeys(other, row) === 0);
      // A flush that is refused changes nothing: most are to be taken.
      const mayFail = random.chance(0.1);
      const dice = random.next();
      if (dice < 0.2) {
        void batch.delete('things', this.keyOf(row));
        after = without(row);
      } else if (dice < 0.35 && (old !== undefined || mayFail)) {
        const [name] = random.shuffled(this.others) as [Field];
        void batch.update('things', { ...this.keyFields(row), [name]: row[name] });
        if (old === undefined) expected = 'missing';
        else after = [...without(row), { ...old, [name]: row[name] as Value }];
      } else if (dice < 0.5 && old !== undefined && (old['note'] as number) < 60_000) {
        void batch.increment('things', this.keyOf(row), { note: 3 });
        after = [...without(row), { ...old, note: (old['note'] as number) + 3 }];
      } else if (dice < 0.75 && (old === undefined || mayFail)) {
        void batch.insert('things', row);
        if (old !== undefined) expected = 'duplicate';
        else after = [...after, row];
      } else {
        void batch.upsert('things', row);
        after = [...without(row), row];
      }
    }
    if (expected === 'done' && this.agrees(after)) expected = 'unique';
    let error: unknown;
    await this.nodes.run(batch.flush().catch((caught: unknown) => (error = caught)));
    const found =
      error === undefined
        ? 'done'
        : error instanceof DuplicateKeyError
          ? 'duplicate'
          : error instanceof RowNotFoundError
            ? 'missing'
            : error instanceof UniqueIndexError
              ? 'unique'
              : (error as Error).message;
    expect(found).toBe(expected);
    this.saw(found);
    if (error === undefined) this.rows = after;
  }

  keyFields(row: Row): Row {
    return Object.fromEntries(this.key.map((name) => [name, row[name] as Value]));
  }

  asked(): Asked {
    const { random } = this;
    const field = random.chance(0.75) ? random.pick(this.key.slice(0, random.integer(1, 3))) : random.pick(names);
    const operator = random.pick(['=', '=', '=', '!=', '<', '<=', '>', '>=', 'IN', 'BETWEEN'] as const);
    if (operator === 'IN') {
      return { field, operator, value: Array.from({ length: random.integer(0, 3) }, () => this.value(field)) };
    }
    if (operator === 'BETWEEN') return { field, operator, value: [this.value(field), this.value(field)] };
    return { field, operator, value: this.value(field) };
  }

  /** Tuples of the first fields of the key, or of some others, mostly of rows that there are. */
  tuples(): { readonly on: readonly Field[]; readonly values: readonly (readonly Value[])[] } {
    const { random } = this;
    const first = this.key.slice(0, random.integer(1, this.key.length));
    const on = random.chance(0.7) ? random.shuffled(first) : random.shuffled(names).slice(0, 2);
    const values = Array.from({ length: random.pick([0, 1, 2, 5, 80]) }, () => {
      const row = this.rows.length > 0 && random.chance(0.6) ? random.pick(this.rows) : this.row();
      return on.map((name) => row[name] as Value);
    });
    return { on, values };
  }

  /** Several fields of the key from one of them on, of an index, or any. */
  between(): Between {
    const { random } = this;
    const from = random.integer(0, 1);
    const index = (this.schema.indexes ?? []).flatMap((each) =>
      typeof each === 'object' && 'fields' in each ? [each.fields as readonly Field[]] : [],
    );
    const order = random.pick([this.key.slice(from), this.key.slice(from), random.shuffled(names), ...index]);
    const on = order.slice(0, random.integer(Math.min(2, order.length), Math.min(4, order.length)));
    const row = this.rows.length > 0 && random.chance(0.7) ? random.pick(this.rows) : this.row();
    return { on, operator: random.pick(['<', '<=', '>', '>='] as const), values: on.map((name) => row[name] as Value) };
  }

  async ask(): Promise<void> {
    const { random } = this;
    const all = Array.from({ length: random.integer(0, 3) }, () => this.asked());
    const any = random.chance(0.2) ? [[this.asked(), this.asked()], [this.asked()], [this.asked()]] : [];
    const tuples = random.chance(0.4) ? this.tuples() : undefined;
    const betweens = Array.from({ length: random.pick([0, 0, 1, 1, 2]) }, () => this.between());
    const { db } = random.pick(this.members);
    await this.nodes.run(db.refresh());
    let query: Query<Record<string, unknown>> = db.query('things');
    for (const { on, operator, values } of betweens) query = query.where(on as string[], operator, values);
    for (const { field, operator, value } of all) query = query.where(field, operator, value);
    if (any.length > 0) {
      query = query.where(({ is, and, or }) =>
        or(...any.map((each) => and(...each.map(({ field, operator, value }) => is(field, operator, value))))),
      );
    }
    if (tuples !== undefined) query = query.where(tuples.on as string[], 'IN', tuples.values as never);
    const along = random.chance(0.6) ? this.key.slice(random.integer(0, 1)) : random.shuffled(names);
    const flip = random.chance(0.5);
    const orders = along
      .slice(0, random.integer(0, along.length))
      .map((name) => [name, flip !== random.chance(0.15) ? 'desc' : 'asc'] as const);
    for (const [name, direction] of orders) query = query.orderBy(name, direction);
    const matches = this.rows
      .filter(
        (row) =>
          all.every((one) => holds(one, row)) &&
          betweens.every((one) => isBetween(one, row)) &&
          (any.length === 0 || any.some((each) => each.every((one) => holds(one, row)))) &&
          (tuples === undefined ||
            tuples.values.some((tuple) =>
              tuple.every((value, i) => compare(value, row[tuples.on[i] as Field] as Value) === 0),
            )),
      )
      .toSorted((a, b) => {
        for (const [name, direction] of orders) {
          const order = compare(a[name] as Value, b[name] as Value);
          if (order !== 0) return direction === 'desc' ? -order : order;
        }
        return this.compareKeys(a, b);
      });
    await this.expectAll(query, matches, [
      this.schema.primaryKey,
      this.schema.indexes,
      all,
      any,
      tuples,
      betweens,
      orders,
    ]);
  }

  async expectAll(asked: Query<Record<string, unknown>>, matches: readonly Row[], what: unknown[]): Promise<void> {
    const { random } = this;
    const plan = await this.nodes.run(asked.explain());
    this.saw(`${plan.access}${plan.order === 'access' ? '' : ' sorted'}`);
    const text = JSON.stringify([...what, plan], told);
    const dice = random.next();
    if (dice < 0.3) {
      const paged: unknown[] = [];
      for (let after: string | undefined, size = random.integer(1, 9); ; ) {
        const page = await this.nodes.run(asked.page({ size, after }));
        paged.push(...page.rows);
        after = page.next;
        if (after === undefined) break;
      }
      expect(paged, text).toEqual(matches);
      this.saw('pages');
      return;
    }
    const limit = random.chance(0.3) ? random.integer(0, 5) : undefined;
    const query = limit === undefined ? asked : asked.limit(limit);
    const expected = matches.slice(0, limit);
    expect(await this.nodes.run(query.execute()), text).toEqual(expected);
    expect(await this.nodes.run(query.count()), text).toBe(expected.length);
    const keys = query.select(...this.key);
    this.saw((await this.nodes.run(keys.explain())).access);
    expect(await this.nodes.run(keys.execute()), text).toEqual(expected.map((row) => this.keyFields(row)));
    const name = random.pick(this.key);
    const values = expected.map((row) => row[name] as Value).toSorted(compare);
    expect(await this.nodes.run(query.min(name)), text).toEqual(values[0] ?? null);
    expect(await this.nodes.run(query.max(name)), text).toEqual(values.at(-1) ?? null);
  }

  async look(): Promise<void> {
    const { db } = this.random.pick(this.members);
    await this.nodes.run(db.refresh());
    const known = this.rows.length > 0 && this.random.chance(0.7) ? this.random.pick(this.rows) : this.row();
    const expected = this.rows.find((row) => this.compareKeys(row, known) === 0);
    expect(await this.nodes.run(db.get('things', this.keyOf(known)))).toEqual(expected);
    let query: Query<Record<string, unknown>> = db.query('things');
    for (const name of this.random.shuffled(this.key)) query = query.where(name, '=', known[name]);
    expect(await this.nodes.run(query.execute())).toEqual(expected === undefined ? [] : [expected]);
  }

  async run(steps: number): Promise<void> {
    for (let i = 0; i < steps; i++) {
      const dice = this.random.next();
      if (dice < 0.35) await this.write();
      else if (dice < 0.45) await this.nodes.run(this.random.pick(this.members).db.checkpoint());
      else if (dice < 0.48) {
        const [gone] = this.members.splice(this.random.integer(0, 1), 1) as [TestNode];
        await this.nodes.run(gone.db.stop());
        await this.start(this.members[0] === undefined ? 1 : 3 + i);
      } else if (dice < 0.6) await this.look();
      else await this.ask();
    }
  }
}

describe('random keys of several fields', () => {
  it('are written and read as the model has it', async () => {
    const seen = new Map<string, number>();
    for (let seed = 1; seed <= 12; seed++) {
      const world = new World(seed);
      await world.open();
      await world.run(60);
      const [{ db }] = world.members as [TestNode];
      await world.nodes.run(db.checkpoint());
      await world.nodes.run(db.gc());
      const verified = await world.nodes.run(db.verify({ deep: true }));
      expect(verified.findings, `seed ${seed}`).toEqual([]);
      for (const [what, count] of world.seen) seen.set(what, (seen.get(what) ?? 0) + count);
    }
    // Enough of each has happened for the test to say something.
    for (const what of [
      'done',
      'duplicate',
      'missing',
      'unique',
      'pages',
      'keys',
      'table',
      'index',
      'nothing',
      'table sorted',
    ]) {
      expect(seen.get(what) ?? 0, what).toBeGreaterThan(1);
    }
  }, 60_000);
});
