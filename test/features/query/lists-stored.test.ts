/** Indexes on the elements of lists in a database: kept up to date, verified, rebuilt, added, migrated, loaded and published. */
import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import { toDefinition } from '../../../src/schema/stored-definition.ts';
import { toStoredSchema } from '../../../src/schema/schema.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { Random } from '../../properties/model/random.ts';
import { Nodes } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';

const posts = {
  name: 'posts',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, author: { typeId: Types.uint8 }, tags: { typeId: Types.json } },
  primaryKey: 'id',
  indexes: [
    { fields: ['tags'], each: true },
    { fields: ['author', 'tags'], each: true, where: { author: { not: null } }, name: 'x' },
  ],
} as const satisfies SchemaDefinition;

async function opened(nodes: Nodes, schema: SchemaDefinition = posts): Promise<TestNode> {
  const node = nodes.make(1, { blockSizeBytes: 512 });
  node.db.registerSchema(schema);
  await nodes.run(node.db.start());
  return node;
}

/** Inserts posts 1 to 90, whose tags are two of ten. */
async function fill(nodes: Nodes, node: TestNode): Promise<void> {
  const batch = node.db.batch();
  for (let id = 1; id <= 90; id++) {
    await batch.insert('posts', { id, author: id % 3, tags: [`t${id % 10}`, `t${(id + 1) % 10}`, 'all'] });
  }
  await nodes.run(batch.flush());
  await nodes.run(node.db.checkpoint());
}

function ids(node: TestNode, tag: string): Promise<unknown[]> {
  return node.db.query('posts').where('tags', 'HAS', tag).select('id').execute();
}

function withTag(tag: number): { readonly id: number }[] {
  const all = Array.from({ length: 90 }, (_, i) => ({ id: i + 1 }));
  return all.filter(({ id }) => id % 10 === tag || (id + 1) % 10 === tag);
}

describe('an index on the elements of lists', () => {
  it('has the entries that the rows imply, after any changes', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    const random = new Random(7);
    const model = new Map<number, unknown[]>();
    const elements = ['a', 'b', 'c', 1, 2, true, null, ['a']];
    for (let round = 0; round < 24; round++) {
      const batch = node.db.batch();
      for (let i = 0; i < 8; i++) {
        const id = 1 + random.below(30);
        const tags = Array.from({ length: random.below(5) }, () => elements[random.below(elements.length)]);
        if (random.below(4) === 0 && model.has(id)) {
          await batch.delete('posts', id);
          model.delete(id);
        } else {
          await batch.upsert('posts', { id, author: id % 2 === 0 ? null : 3, tags });
          model.set(id, tags);
        }
      }
      await nodes.run(batch.flush());
      if (round % 3 === 0) await nodes.run(node.db.checkpoint());
      for (const element of ['a', 'c', 2, true] as const) {
        const found = await nodes.run(node.db.query('posts').where('tags', 'HAS', element).select('id').execute());
        const expected = [...model].filter(([, tags]) => tags.includes(element)).map(([id]) => ({ id }));
        expect(found).toEqual(expected.toSorted((x, y) => x.id - y.id));
      }
      const isChecked = round % 6 === 0;
      expect(isChecked ? (await nodes.run(node.db.verify({ deep: true }))).findings : []).toEqual([]);
    }
  });

  it('is rebuilt by repair(), which verify() finds to be needed', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    await fill(nodes, node);
    await nodes.run(node.db.stop());
    await nodes.shiftIndexes('posts');

    const other = nodes.make(2, { blockSizeBytes: 512 });
    other.db.registerSchema(posts);
    await nodes.run(other.db.start());
    const { findings } = await nodes.run(other.db.verify({ deep: true }));
    expect(findings.map(({ index }) => index)).toEqual(expect.arrayContaining(['tags', 'x']));
    const repaired = await nodes.run(other.db.repair());
    expect(repaired.repaired).toEqual(expect.arrayContaining([{ table: 'posts', index: 'tags', entries: 270 }]));
    expect((await nodes.run(other.db.verify({ deep: true }))).findings).toEqual([]);
    expect(await nodes.run(ids(other, 't4'))).toEqual(withTag(4));
  });

  it('is added to a table that has rows', async () => {
    const nodes = new Nodes();
    const { indexes: _, ...plain } = posts;
    const node = await opened(nodes, plain);
    await fill(nodes, node);
    node.db.registerSchema({ ...plain, indexes: [{ fields: ['tags'], each: true }] });
    for (let i = 0; i < 20; i++) {
      await nodes.environment.advance(60_000);
      await nodes.run(node.db.checkpoint());
    }
    expect(await nodes.run(ids(node, 't4'))).toEqual(withTag(4));
    expect(await nodes.run(node.db.indexes('posts'))).toMatchObject([
      { name: 'tags', fields: ['tags'], each: true, state: 'ready', rowsDone: 90, entries: 270 },
    ]);
    expect((await nodes.run(node.db.verify({ deep: true }))).findings).toEqual([]);
  });

  it('is of the rows of a newer version too', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    await fill(nodes, node);
    await nodes.run(node.db.stop());
    const next = nodes.make(2, { blockSizeBytes: 512 });
    const migrate = ({ tags, ...row }: Record<string, unknown>): Record<string, unknown> => {
      return { ...row, tags: (tags as string[]).map((tag) => tag.toUpperCase()) };
    };
    next.db.registerSchema({ ...posts, version: 2, migrate });
    await nodes.run(next.db.start());
    expect(await nodes.run(ids(next, 'T4'))).toEqual(withTag(4));
    expect(await nodes.run(ids(next, 't4'))).toEqual([]);
    await nodes.run(next.db.setTargetSchemaVersion('posts', 2));
    for (let i = 0; i < 30; i++) {
      await nodes.environment.advance(60_000);
      await nodes.run(next.db.checkpoint());
    }
    expect(await nodes.run(ids(next, 'T4'))).toEqual(withTag(4));
    expect((await nodes.run(next.db.verify({ deep: true }))).findings).toEqual([]);
  });

  it('is built by a load, and stays as it was in a snapshot', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    const rows = Array.from({ length: 500 }, (_, id) => ({ id, author: 1, tags: [`t${id % 50}`, id] }));
    await nodes.run(node.db.load('posts', rows));
    await nodes.run(node.db.checkpoint());
    expect(await nodes.run(ids(node, 't7'))).toHaveLength(10);
    expect((await nodes.run(node.db.verify({ deep: true }))).findings).toEqual([]);
    const snapshot = await nodes.run(node.db.snapshot());
    const batch = node.db.batch();
    await batch.update('posts', { id: 7, tags: [] });
    await nodes.run(batch.flush());
    await nodes.run(node.db.checkpoint());
    expect(await nodes.run(snapshot.query('posts').where('tags', 'HAS', 't7').count())).toBe(10);
    expect(await nodes.run(ids(node, 't7'))).toHaveLength(9);
    // Nor is the earlier state taken for damaged, which has more entries than rows.
    expect((await nodes.run(node.db.verify())).findings).toEqual([]);
    await nodes.run(snapshot.release());
  });

  it('is stored in a form that older releases refuse, and is the definition again', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    await fill(nodes, node);
    const block0 = await nodes.block0();
    expect(block0.format).toBe(12);
    const stored = block0.tables.find(({ name }) => name === 'posts')?.versions[0]?.schema;
    expect(stored?.indexes[0]).toEqual({ name: 'tags', fields: ['tags'], each: true });
    expect(stored && toStoredSchema(toDefinition(stored))).toEqual(stored);
    await nodes.run(node.db.stop());
  });
});
