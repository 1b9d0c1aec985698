/** Indexes on paths into json in a database: kept up to date, verified, rebuilt, added, migrated, loaded, watched and published. */
import { describe, expect, it, vi } from 'vitest';
import { UniqueIndexError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import { toDefinition } from '../../../src/schema/stored-definition.ts';
import { toStoredSchema } from '../../../src/schema/schema.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { Random } from '../../properties/model/random.ts';
import { Nodes } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';
import { openDatabase } from '../values/open-database.ts';

const people = {
  name: 'folk',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, country: { typeId: Types.varchar }, address: { typeId: Types.json } },
  primaryKey: 'id',
  indexes: [
    { fields: [{ path: 'address.city', typeId: Types.varchar }] },
    {
      fields: ['country', { path: 'address.zip', typeId: Types.float64 }],
      where: { country: { not: null } },
      name: 'x',
    },
    { fields: [{ path: 'address.key', typeId: Types.varchar }], unique: true },
  ],
} as const satisfies SchemaDefinition;

async function opened(nodes: Nodes, schema: SchemaDefinition = people, nodeId = 1): Promise<TestNode> {
  const node = nodes.make(nodeId, { blockSizeBytes: 512 });
  node.db.registerSchema(schema);
  await nodes.run(node.db.start());
  return node;
}

function personOf(id: number): Record<string, unknown> {
  return { id, country: id % 3 === 0 ? null : 'DE', address: { city: `c${id % 10}`, zip: id % 7, key: `k${id}` } };
}

/** Inserts people 1 to 90 in ten cities. */
async function fill(nodes: Nodes, node: TestNode): Promise<void> {
  const batch = node.db.batch();
  for (let id = 1; id <= 90; id++) await batch.insert('folk', personOf(id));
  await nodes.run(batch.flush());
  await nodes.run(node.db.checkpoint());
}

function ids(node: TestNode, city: string): Promise<unknown[]> {
  return node.db.query('folk').where('address.city', '=', city).select('id').execute();
}

function inCity(city: number): { readonly id: number }[] {
  return Array.from({ length: 90 }, (_, i) => ({ id: i + 1 })).filter(({ id }) => id % 10 === city);
}

async function passTime(nodes: Nodes, node: TestNode): Promise<void> {
  for (let i = 0; i < 30; i++) {
    await nodes.environment.advance(60_000);
    await nodes.run(node.db.checkpoint());
  }
}

describe('an index on a path', () => {
  it('has the entries that the rows imply, after any changes', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    const random = new Random(7);
    const model = new Map<number, unknown>();
    const cities = ['a', 'b', 1, true, null, undefined, { a: 1 }];
    for (let round = 0; round < 24; round++) {
      const batch = node.db.batch();
      for (let i = 0; i < 8; i++) {
        const id = 1 + random.below(30);
        if (random.below(4) === 0 && model.has(id)) {
          await batch.delete('folk', id);
          model.delete(id);
        } else {
          const city = cities[random.below(cities.length)];
          const address = random.below(6) === 0 ? city : { city, zip: random.below(5), key: `${round} ${i}` };
          await batch.upsert('folk', { id, country: id % 2 === 0 ? null : 'DE', address: address ?? null });
          model.set(id, (address as { city?: unknown } | null | undefined)?.city);
        }
      }
      await nodes.run(batch.flush());
      if (round % 3 === 0) await nodes.run(node.db.checkpoint());
      for (const city of ['a', 'b', 1, true, null] as const) {
        const found = await nodes.run(node.db.query('folk').where('address.city', '=', city).select('id').execute());
        const expected = [...model].filter(([, value]) => (value ?? null) === city).map(([id]) => ({ id }));
        expect(found).toEqual(expected.toSorted((x, y) => x.id - y.id));
      }
      const isChecked = round % 6 === 0;
      expect(isChecked ? (await nodes.run(node.db.verify({ deep: true }))).findings : []).toEqual([]);
    }
  });

  it('is unique where it says so, for values of its type', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    const insert = async (id: number, key: unknown): Promise<void> => {
      const batch = node.db.batch();
      await batch.insert('folk', { id, country: null, address: { key } });
      await nodes.run(batch.flush());
    };
    await insert(1, 'one');
    await expect(insert(2, 'one')).rejects.toThrow(UniqueIndexError);
    for (const [i, key] of [1, 1, null, undefined, {}, {}].entries()) await insert(10 + i, key);
    await nodes.run(node.db.checkpoint());
    await expect(insert(3, 'one')).rejects.toThrow(UniqueIndexError);
    await insert(3, 'One');
  });

  it('is rebuilt by repair(), which verify() finds to be needed', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    await fill(nodes, node);
    await nodes.run(node.db.stop());
    await nodes.shiftIndexes('folk');

    const other = await opened(nodes, people, 2);
    const { findings } = await nodes.run(other.db.verify({ deep: true }));
    expect(findings.map(({ index }) => index)).toEqual(expect.arrayContaining(['address.city', 'x']));
    const repaired = await nodes.run(other.db.repair());
    expect(repaired.repaired).toEqual(expect.arrayContaining([{ table: 'folk', index: 'address.city', entries: 90 }]));
    expect((await nodes.run(other.db.verify({ deep: true }))).findings).toEqual([]);
    expect(await nodes.run(ids(other, 'c4'))).toEqual(inCity(4));
  });

  it('is added to a table that has rows', async () => {
    const nodes = new Nodes();
    const { indexes, ...plain } = people;
    const node = await opened(nodes, plain);
    await fill(nodes, node);
    node.db.registerSchema({ ...plain, indexes: [indexes[0]] });
    await passTime(nodes, node);
    expect(await nodes.run(ids(node, 'c4'))).toEqual(inCity(4));
    expect(await nodes.run(node.db.query('folk').where('address.city', '=', 'c4').explain())).toMatchObject({
      index: 'address.city',
    });
    expect(await nodes.run(node.db.indexes('folk'))).toMatchObject([
      { name: 'address.city', fields: ['address.city'], state: 'ready', rowsDone: 90, entries: 90 },
    ]);
    expect((await nodes.run(node.db.verify({ deep: true }))).findings).toEqual([]);
  });

  it('is of the rows of a newer version too, also where its field has another name', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    await fill(nodes, node);
    await nodes.run(node.db.stop());
    const { address, ...fields } = people.fields;
    const next = await opened(
      nodes,
      {
        ...people,
        version: 2,
        fields: { ...fields, place: address },
        renames: { place: 'address' },
        indexes: [{ fields: [{ path: 'place.city', typeId: Types.varchar }], name: 'address.city' }],
      },
      2,
    );
    const byPlace = (): Promise<unknown[]> =>
      nodes.run(next.db.query('folk').where('place.city', '=', 'c4').select('id').execute());
    expect(await byPlace()).toEqual(inCity(4));
    await nodes.run(next.db.setTargetSchemaVersion('folk', 2));
    await passTime(nodes, next);
    expect(await byPlace()).toEqual(inCity(4));
    expect((await nodes.run(next.db.verify({ deep: true }))).findings).toEqual([]);
  });

  it('goes with its field', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    await fill(nodes, node);
    await nodes.run(node.db.stop());
    const { address: _, ...fields } = people.fields;
    const next = await opened(nodes, { ...people, version: 2, fields, indexes: ['country'] }, 2);
    expect(() => next.db.query('folk').where('address.city', '=', 'c4')).toThrow("no field 'address.city'");
    await nodes.run(next.db.setTargetSchemaVersion('folk', 2));
    await passTime(nodes, next);
    expect(await nodes.run(next.db.query('folk').where('country', '=', 'DE').count())).toBe(60);
    expect((await nodes.run(next.db.verify({ deep: true }))).findings).toEqual([]);
  });

  it('is read with another type after a migration, and not before', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    await fill(nodes, node);
    const batch = node.db.batch();
    await batch.insert('folk', { ...personOf(91), address: { city: 4 } });
    await nodes.run(batch.flush());
    await nodes.run(node.db.checkpoint());
    await nodes.run(node.db.stop());
    const indexes = [{ fields: [{ path: 'address.city', typeId: Types.float64 }] }];
    const next = await opened(nodes, { ...people, version: 2, indexes }, 2);
    const found = (): Promise<unknown[]> =>
      nodes.run(next.db.query('folk').where('address.city', '=', 4).select('id').execute());
    expect(await found()).toEqual([{ id: 91 }]);
    await nodes.run(next.db.setTargetSchemaVersion('folk', 2));
    await passTime(nodes, next);
    expect(await found()).toEqual([{ id: 91 }]);
    expect((await nodes.run(next.db.verify({ deep: true }))).findings).toEqual([]);
  });

  it('is built by a load, and stays as it was in a snapshot', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    const rows = Array.from({ length: 500 }, (_, i) => personOf(i + 1));
    await nodes.run(node.db.load('folk', rows));
    await nodes.run(node.db.checkpoint());
    expect(await nodes.run(ids(node, 'c7'))).toHaveLength(50);
    expect((await nodes.run(node.db.verify({ deep: true }))).findings).toEqual([]);
    const snapshot = await nodes.run(node.db.snapshot());
    const batch = node.db.batch();
    await batch.update('folk', { id: 7, address: {} });
    await nodes.run(batch.flush());
    await nodes.run(node.db.checkpoint());
    expect(await nodes.run(snapshot.query('folk').where('address.city', '=', 'c7').count())).toBe(50);
    expect(await nodes.run(ids(node, 'c7'))).toHaveLength(49);
    await nodes.run(snapshot.release());
  });

  it('is watched by what its queries find, order and select', async () => {
    const db = await openDatabase([people]);
    const all = db.query('folk');
    const queries = [
      all.where('address.city', '=', 'a').select('id', 'address.zip'),
      all.orderBy('address.zip', 'desc').limit(3),
      all.where('address.zip', '>', 1).orderBy('address.city').select('address.city').limit(4),
    ];
    const results: (readonly unknown[])[] = [];
    const stops = queries.map((query, i) => query.watch().subscribe(({ rows }) => void (results[i] = rows)));
    const random = new Random(3);
    for (let round = 0; round < 25; round++) {
      const batch = db.batch();
      for (let i = 0; i < 2; i++) {
        const address = { city: ['a', 'b', 1][random.below(3)], zip: random.below(4) };
        await batch.upsert('folk', { id: random.below(12), country: 'DE', address });
      }
      await batch.flush();
      const expected = await Promise.all(queries.map((query) => query.execute()));
      await vi.waitFor(() => {
        expect(results).toEqual(expected);
      });
    }
    for (const stop of stops) stop();
  });

  it('makes transactions conflict that read what others change', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    await fill(nodes, node);
    let attempts = 0;
    const counted = nodes.run(
      node.db.transaction(async (tx) => {
        attempts++;
        const count = await tx.query('folk').where('address.city', '=', 'c4').count();
        if (attempts === 1) {
          const batch = node.db.batch();
          await batch.update('folk', { id: 1, address: { city: 'c4', key: 'k1' } });
          await batch.flush();
        }
        await tx.update('folk', { id: 2, country: `${count}` });
      }),
    );
    await counted;
    expect(attempts).toBe(2);
    expect(await nodes.run(node.db.get('folk', 2))).toMatchObject({ country: '10' });
  });

  it('is stored in a form that older releases refuse, and is the definition again', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    await fill(nodes, node);
    const block0 = await nodes.block0();
    expect(block0.format).toBe(14);
    const stored = block0.tables.find(({ name }) => name === 'folk')?.versions[0]?.schema;
    expect(stored?.indexes[0]).toEqual({
      name: 'address.city',
      fields: ['address.city'],
      paths: [{ path: 'address.city', typeId: Types.varchar }],
    });
    expect(stored && toStoredSchema(toDefinition(stored))).toEqual(stored);
    await nodes.run(node.db.stop());
  });
});
