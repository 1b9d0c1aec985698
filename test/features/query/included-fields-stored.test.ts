/** Indexes with included fields in a database: kept up to date, unique, verified, added, migrated, and cheap from a cold store. */
import { describe, expect, it } from 'vitest';
import { InvalidSchemaError, UniqueIndexError } from '../../../src/base/errors.ts';
import { toDefinition } from '../../../src/schema/stored-definition.ts';
import { toStoredSchema } from '../../../src/schema/schema.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { Types } from '../../../src/format/types.ts';
import { caught, Nodes } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';

const products = {
  name: 'products',
  version: 1,
  fields: {
    shop: { typeId: Types.uint8 },
    code: { typeId: Types.varchar },
    country: { typeId: Types.varchar },
    name: { typeId: Types.varchar },
    price: { typeId: Types.float64 },
    size: { typeId: Types.uint8 },
    notes: { typeId: Types.varchar },
  },
  primaryKey: ['shop', 'code'],
  indexes: [
    { fields: ['country'], include: ['name', 'price', 'size'], name: 'shown' },
    { fields: ['name', 'country'], include: ['price'], unique: true, where: { country: { not: null } } },
  ],
} as const satisfies SchemaDefinition;

/** Rows of some KB, so that each of them stands in a leaf of its own. */
function product(i: number): Record<string, unknown> {
  const [country, name] = [`country ${i % 4}`, `name ${i}`];
  return {
    shop: i % 3,
    code: `c${i}`,
    country,
    name,
    price: i === 4 ? -0 : i / 4,
    size: i % 256,
    notes: `${i} `.repeat(600),
  };
}

async function opened(nodes: Nodes, count = 120): Promise<TestNode> {
  const node = nodes.make(1, { blockSizeBytes: 4096 });
  node.db.registerSchema(products);
  await nodes.run(node.db.start());
  const batch = node.db.batch();
  for (let i = 0; i < count; i++) await batch.insert('products', product(i));
  await nodes.run(batch.flush());
  await nodes.run(node.db.checkpoint());
  return node;
}

function pricesIn(node: TestNode, country: string): Promise<unknown[]> {
  const query = node.db.query('products').where('country', '=', country).select('name', 'price');
  return query.execute();
}

describe('an index with included fields', () => {
  it('follows a change of those fields alone, and is found right', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes, 28);
    const batch = node.db.batch();
    await batch.update('products', { shop: 1, code: 'c4', price: 9.5 });
    await batch.update('products', { shop: 2, code: 'c8', notes: 'other' });
    await batch.delete('products', [0, 'c12']);
    await nodes.run(batch.flush());
    const expected = [16, 20, 24].map((i) => ({ name: `name ${i}`, price: i / 4 }));
    for (const merged of [false, true]) {
      if (merged) await nodes.run(node.db.checkpoint());
      const found = (await nodes.run(pricesIn(node, 'country 0'))) as { readonly name: string }[];
      expect(found).toHaveLength(6);
      expect(found.find(({ name }) => name === 'name 4')).toEqual({ name: 'name 4', price: 9.5 });
      expect(found.find(({ name }) => name === 'name 8')).toEqual({ name: 'name 8', price: 2 });
      expect(found).toEqual(expect.arrayContaining(expected));
      expect((await nodes.run(node.db.verify({ deep: true }))).findings).toEqual([]);
    }
  });

  it('keeps the sign of -0', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    const found = (await nodes.run(pricesIn(node, 'country 0'))) as { readonly price: number }[];
    expect(found.map(({ price }) => Object.is(price, -0)).filter(Boolean)).toHaveLength(1);
    const explained = node.db.query('products').where('country', '=', 'country 0').select('name', 'price').explain();
    expect(await nodes.run(explained)).toMatchObject({ index: 'shown', indexOnly: true });
  });

  it('is unique by the fields that it is on, with any included ones', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    const batch = node.db.batch();
    await batch.insert('products', { ...product(500), name: 'name 7', country: 'country 3', price: 77 });
    const error = (await nodes.run(caught(batch.flush()))) as UniqueIndexError;
    expect(error).toBeInstanceOf(UniqueIndexError);
    expect(error).toMatchObject({ index: 'name,country', primaryKey: [2, 'c500'], otherKey: [1, 'c7'] });
  });

  it('answers a page from a cold store in two requests, where rows would take one each', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    await nodes.run(node.db.stop());
    const cold = async (names: readonly string[]): Promise<number> => {
      const other = nodes.make(1, { blockSizeBytes: 4096 });
      other.db.registerSchema(products);
      await nodes.run(other.db.start());
      other.driver.takeLines();
      const query = other.db
        .query('products')
        .where('country', '=', 'country 2')
        .select(...names);
      expect(await nodes.run(query.execute())).toHaveLength(30);
      const gets = other.driver.takeLines().filter((line) => line.startsWith('get data/'));
      await nodes.run(other.db.stop());
      return gets.length;
    };
    expect(await cold(['name', 'price', 'code'])).toBeLessThanOrEqual(2);
    expect(await cold(['name', 'notes'])).toBeGreaterThan(10);
  });

  it('is added to a table that has rows, and refused under the name of another one', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    const added = { fields: ['shop'], include: ['price', 'name'], name: 'by shop' } as const;
    node.db.registerSchema({ ...products, indexes: [...products.indexes, added] });
    await nodes.run(node.db.checkpoint());
    for (let i = 0; i < 20; i++) {
      await nodes.environment.advance(60_000);
      await nodes.run(node.db.checkpoint());
    }
    const query = node.db.query('products').where('shop', '=', 1).select('name', 'price');
    expect(await nodes.run(query.explain())).toMatchObject({ index: 'by shop', indexOnly: true });
    expect(await nodes.run(query.execute())).toHaveLength(40);
    expect((await nodes.run(node.db.verify({ deep: true }))).findings).toEqual([]);
    const other = { ...added, include: ['price'] };
    const definition = { ...products, indexes: [...products.indexes, other] };
    expect(() => node.db.registerSchema(definition)).toThrow(/Index 'by shop' is another one there/);
  });

  it('is not used for a version in which an included field is another one', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    await nodes.run(node.db.stop());
    const next = nodes.make(2, { blockSizeBytes: 4096 });
    const fields = { ...products.fields, size: { typeId: Types.uint16 } };
    next.db.registerSchema({ ...products, version: 2, fields });
    await nodes.run(next.db.start());
    const query = next.db.query('products').where('country', '=', 'country 1').select('name', 'size');
    expect(await nodes.run(query.execute())).toContainEqual({ name: 'name 5', size: 5 });
    expect(await nodes.run(query.explain())).not.toHaveProperty('index', 'shown');
    const kept = next.db.query('products').where('name', '=', 'name 5').where('country', '=', 'country 1');
    expect(await nodes.run(kept.select('price').explain())).toMatchObject({ access: 'index', index: 'name,country' });
    await nodes.run(next.db.stop());
  });

  it('is stored in a form that older releases refuse, and is the definition again', async () => {
    const nodes = new Nodes();
    await opened(nodes);
    const block0 = await nodes.block0();
    expect(block0.format).toBe(12);
    const stored = block0.tables.find(({ name }) => name === 'products')?.versions[0]?.schema;
    expect(stored?.indexes[0]).toEqual({ name: 'shown', fields: ['country'], include: ['name', 'price', 'size'] });
    expect(stored && toStoredSchema(toDefinition(stored))).toEqual(stored);
  });
});

describe('the definition of included fields', () => {
  const withIndex =
    (index: object): (() => unknown) =>
    () =>
      toStoredSchema({ ...products, fields: { ...products.fields, more: { typeId: Types.json } }, indexes: [index] });

  it.each([
    [
      { fields: ['name'], include: [] },
      /`include` of the index 'name' must be an array of names of fields, not an empty one/,
    ],
    [{ fields: ['name'], include: 'price' }, /must be an array of names of fields, not 'price'/],
    [{ fields: ['name'], include: ['prize'] }, /'prize' is not a field of table 'products': did you mean price\?/],
    [{ fields: ['name'], include: ['more'] }, /Field 'more' is of type json, which cannot be/],
    [{ fields: ['name'], include: ['name'] }, /names the field 'name', which it holds anyway/],
    [{ fields: ['name'], include: ['code'] }, /names the field 'code', which it holds anyway/],
    [{ fields: ['name'], include: ['price', 'price'] }, /names the field 'price', which it has there twice/],
    [{ fields: ['name'], includes: ['price'] }, /Property `includes` of an index .* did you mean `include`\?/],
  ])('%j is refused', (index, message) => {
    expect(withIndex(index)).toThrow(InvalidSchemaError);
    expect(withIndex(index)).toThrow(message);
  });

  it('takes 16 fields in all', () => {
    const many = Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`f${i}`, { typeId: Types.uint8 }]));
    const names = Object.keys(many);
    const define = (include: readonly string[]): unknown =>
      toStoredSchema({
        name: 't',
        version: 1,
        fields: { id: { typeId: Types.uint8 }, ...many },
        primaryKey: 'id',
        indexes: [{ fields: ['f0'], include }],
      });
    expect(() => define(names.slice(1, 16))).not.toThrow();
    expect(() => define(names.slice(1, 17))).toThrow(/is on 1 fields and includes 16: it takes up to 16 in all/);
  });
});
