/** Two versions side by side: the later write of a field counts, in both views, null included. */
import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { Random } from '../../properties/model/random.ts';
import { users1, users2, Versions } from './versions.ts';
import type { Row } from './versions.ts';

describe('a field that is narrower in the old version', () => {
  it.each([
    ['not merged', []],
    ['merged once', [1]],
    ['merged each time', [0, 1, 2]],
  ] as const)('is null in both once the old one has written a value and then null (%s)', async (_, merges) => {
    const versions = new Versions();
    const options = { polling: 'onDemand', writeForwardInterval: 1000 } as const;
    const one = await versions.open(1, [users1], options);
    await versions.write(one, 'insert', [{ id: 1, age: 7 }]);
    const two = await versions.open(2, [users1, users2], options);
    const merge = async (at: number): Promise<void> => {
      if ((merges as readonly number[]).includes(at)) await versions.merge(two);
    };
    await versions.write(two, 'update', [{ id: 1, age: 35_789, email: 'kept' }]);
    await merge(0);
    expect(await versions.row(one, 1)).toMatchObject({ age: null });
    await versions.write(one, 'update', [{ id: 1, age: 5 }]);
    await merge(1);
    expect(await versions.row(two, 1)).toMatchObject({ age: 5 });
    await versions.write(one, 'update', [{ id: 1, age: null }]);
    await merge(2);
    expect(await versions.row(two, 1)).toMatchObject({ age: null, email: 'kept' });
    await versions.merge(two);
    expect(await versions.row(two, 1)).toMatchObject({ age: null, email: 'kept' });
    await versions.run(two.db.setTargetSchemaVersion('users', 2));
    await versions.environment.advance(30_000);
    expect(await versions.run(two.db.migrationStatus('users'))).toMatchObject({ state: 'switched' });
    expect(await versions.row(two, 1)).toMatchObject({ age: null, email: 'kept' });
    expect(await versions.findings(two)).toEqual([]);
  });
});

/** A field of the table, what either version calls it, and what the old one can hold of a value. */
interface Shared {
  readonly old: string | undefined;
  readonly next: string | undefined;
  readonly values: { readonly old: readonly unknown[]; readonly next: readonly unknown[] };
  readonly shownOld: (value: unknown) => unknown;
  /** What the new one sees of a value of the old one. Default: the same. */
  readonly shownNew?: (value: unknown) => unknown;
  /** What it is where neither has written it. */
  readonly empty: unknown;
}

const fields1 = {
  id: { typeId: Types.int32 },
  narrowed: { typeId: Types.uint8 },
  whole: { typeId: Types.int16 },
  written: { typeId: Types.int32 },
  text: { typeId: Types.varchar },
  dropped: { typeId: Types.varchar },
  before: { typeId: Types.varchar },
};
const fields2 = {
  id: { typeId: Types.int32 },
  narrowed: { typeId: Types.int32 },
  whole: { typeId: Types.float64 },
  written: { typeId: Types.varchar },
  text: { typeId: Types.varchar },
  after: { typeId: Types.varchar },
  added: { typeId: Types.varchar },
  defaulted: { typeId: Types.uint8, default: 3 },
};
const same = (value: unknown): unknown => value;
const shownAsText = (value: unknown): unknown => (typeof value === 'number' ? `${value}` : value);
const texts = [null, '', 'a', 'a text that does not fit into a row'];
const narrow: Shared = {
  old: 'narrowed',
  next: 'narrowed',
  values: { old: [null, 0, 5], next: [null, 0, 5, 300, 35_789] },
  shownOld: (value) => (typeof value === 'number' && value > 255 ? null : value),
  empty: null,
};
const shared: readonly Shared[] = [
  narrow,
  {
    old: 'whole',
    next: 'whole',
    values: { old: [null, 0, -7], next: [null, 0, -7, 1.5, 1e300] },
    shownOld: (value) => (typeof value === 'number' && (!Number.isInteger(value) || value > 32_767) ? null : value),
    empty: null,
  },
  {
    old: 'written',
    next: 'written',
    values: { old: [null, 0, 12], next: [null, '0', '12', '012', 'a dozen, as it is said'] },
    shownOld: (value) => (value === '0' || value === '12' ? Number(value) : null),
    shownNew: shownAsText,
    empty: null,
  },
  { old: 'text', next: 'text', values: { old: texts, next: texts }, shownOld: same, empty: null },
  { old: 'dropped', next: undefined, values: { old: texts, next: [] }, shownOld: same, empty: null },
  { old: undefined, next: 'added', values: { old: [], next: texts }, shownOld: same, empty: null },
  { old: undefined, next: 'defaulted', values: { old: [], next: [null, 3, 8] }, shownOld: same, empty: 3 },
];
const renamed: Shared = {
  old: 'before',
  next: 'after',
  values: { old: texts, next: texts },
  shownOld: same,
  empty: null,
};

interface Kind {
  readonly name: string;
  readonly old: SchemaDefinition;
  readonly next: SchemaDefinition;
  readonly shared: readonly Shared[];
}

function schema(version: number, fields: SchemaDefinition['fields'], migrate?: (row: Row) => Row): SchemaDefinition {
  const indexes = ['narrowed', 'text'];
  return { name: 'users', version, fields, primaryKey: 'id', indexes, ...(migrate && { migrate }) };
}

const { before: _, ...unrenamed1 } = fields1;
const { after: __, ...unrenamed2 } = fields2;
const kinds: readonly Kind[] = [
  { name: 'narrowed, dropped and defaulted', old: schema(1, unrenamed1), next: schema(2, unrenamed2), shared },
  {
    name: 'renamed by functions',
    old: schema(1, fields1, (row) => ({ before: row['after'] })),
    next: schema(2, fields2, ({ before, dropped: ___, written, ...row }) => {
      return { ...row, after: before, written: shownAsText(written) };
    }),
    shared: [...shared, renamed],
  },
];

/** What each field was last written as, by whichever version. */
class LastWritten {
  readonly #shared: readonly Shared[];
  readonly #rows = new Map<number, Map<Shared, unknown>>();

  constructor(fields: readonly Shared[]) {
    this.#shared = fields;
  }

  has(id: number): boolean {
    return this.#rows.has(id);
  }

  delete(id: number): void {
    this.#rows.delete(id);
  }

  /** What a version sees of a row. */
  row(version: 1 | 2, id: number): Row | undefined {
    const values = this.#rows.get(id);
    if (values === undefined) return undefined;
    const shown = this.#shared.flatMap((field) => {
      const name = version === 1 ? field.old : field.next;
      if (name === undefined) return [];
      const value = values.get(field);
      return [[name, version === 1 ? field.shownOld(value) : value]];
    });
    return { id, ...(Object.fromEntries(shown) as Row) };
  }

  rows(version: 1 | 2): Row[] {
    const ids = [...this.#rows.keys()].toSorted((a, b) => a - b);
    return ids.map((id) => this.row(version, id) as Row);
  }

  /** Writes some fields. To write what one sees is to write nothing. */
  write(version: 1 | 2, id: number, document: Row): void {
    const values = this.#rows.get(id) ?? new Map(this.#shared.map((field) => [field, field.empty]));
    for (const field of this.#shared) {
      const name = version === 1 ? field.old : field.next;
      if (name === undefined || !(name in document)) continue;
      const seen = version === 1 ? field.shownOld(values.get(field)) : values.get(field);
      const value = document[name];
      if (value !== seen) values.set(field, version === 1 ? (field.shownNew ?? same)(value) : value);
    }
    this.#rows.set(id, values);
  }
}

describe.each(kinds)('the later write wins, $name', ({ old, next, shared: fields }) => {
  const seeds = Array.from({ length: 6 }, (_seed, i) => i + 1);
  it.each(seeds)('in histories at random (seed %i)', async (seed) => {
    const random = new Random(seed);
    const versions = new Versions(seed);
    const options = { polling: 'onDemand', blockSizeBytes: 512, writeForwardInterval: 1000 } as const;
    const nodes = [
      { version: 1, node: await versions.open(1, [old], options) },
      { version: 2, node: await versions.open(2, [old, next], options) },
    ] as const;
    const model = new LastWritten(fields);
    const check = async (): Promise<void> => {
      for (const { version, node } of nodes)
        expect(await versions.rows(node), `version ${version}`).toEqual(model.rows(version));
    };
    // The table is made by the old version.
    await versions.write(nodes[0].node, 'insert', [{ id: 0 }]);
    model.write(1, 0, {});
    for (let step = 0; step < 90; step++) {
      const { version, node } = random.pick(nodes);
      const id = random.below(5);
      const choice = random.below(20);
      if (choice === 0) {
        await versions.delete(node, [id]);
        model.delete(id);
      } else if (choice < 14) {
        const document: Row = {};
        for (const field of fields) {
          const name = version === 1 ? field.old : field.next;
          if (name === undefined || !random.chance(0.4)) continue;
          document[name] = random.pick(version === 1 ? field.values.old : field.values.next);
        }
        await versions.write(node, model.has(id) ? 'update' : 'insert', [{ id, ...document }]);
        model.write(version, id, document);
      } else if (choice < 17) await versions.merge(node);
      else if (choice === 17 && random.chance(0.5)) {
        await versions.run(nodes[1].node.db.setTargetSchemaVersion('users', 2));
        await versions.environment.advance(random.between(0, 3) * 1000);
      } else await check();
    }
    await check();
    for (const { node } of nodes) expect(await versions.findings(node)).toEqual([]);
    await versions.merge(nodes[0].node);
    await check();
  });
});
