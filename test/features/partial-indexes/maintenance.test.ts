/** Maintenance of indexes on some rows: verify(), repair(), kept states, and reports. */
import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import { describeIndexes } from '../../../src/cli/values/schema-text.ts';
import { storedDefinitions } from '../../../src/catalog/registry.ts';
import { View, ViewContext } from '../../../src/view/view.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { BlockCache } from '../../../src/cache/block-cache.ts';
import { BlockReader } from '../../../src/tree/block-source.ts';
import { Nodes, prefix } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';

const users = {
  name: 'users',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    email: { typeId: Types.varchar },
    deletedAt: { typeId: Types.timestamp },
    kind: { typeId: Types.varchar },
    shard: { typeId: Types.uint64 },
  },
  primaryKey: 'id',
  indexes: [
    { fields: ['email'], unique: true, where: { deletedAt: null }, name: 'active' },
    { fields: ['email'], where: { kind: ['a', 'b'], shard: { not: null } } },
  ],
} as const satisfies SchemaDefinition;

/** Of 100 rows every fifth is deleted; kinds are a, b, c and null in turn. */
const rows = Array.from({ length: 100 }, (_, id) => ({
  id,
  email: `user ${id}`,
  deletedAt: id % 5 === 0 ? new Date(id) : null,
  kind: ['a', 'b', 'c', null][id % 4] as string | null,
  shard: id % 2 === 0 ? 7n : null,
}));

async function opened(): Promise<{ nodes: Nodes; node: TestNode }> {
  const nodes = new Nodes();
  const node = nodes.make(1, { blockSizeBytes: 512 });
  node.db.registerSchema(users);
  await nodes.run(node.db.start());
  const batch = node.db.batch();
  for (const row of rows) void batch.insert(users, row);
  await nodes.run(batch.flush());
  await nodes.run(node.db.checkpoint());
  return { nodes, node };
}

/** Takes the entries of the first index away. */
async function forge(nodes: Nodes): Promise<void> {
  await nodes.replaceBlock0(({ tables, generation }) => ({
    generation: generation + 1,
    tables: tables.map((table) => ({
      ...table,
      versions: table.versions.map((version) => {
        const [first, ...others] = version.indexes;
        if (table.name !== 'users' || first === undefined) return version;
        return { ...version, indexes: [{ ...first, root: null }, ...others] };
      }),
    })),
  }));
}

describe('verify() and repair()', () => {
  it('count the rows for which the condition holds', async () => {
    const { nodes, node } = await opened();
    const { ok, tables } = await nodes.run(node.db.verify({ deep: true }));
    expect(ok).toBe(true);
    const inSecond = rows.filter(({ kind, shard }) => (kind === 'a' || kind === 'b') && shard !== null).length;
    expect(tables.find(({ name }) => name === 'users')?.indexes).toEqual([
      { name: 'active', entries: 80 },
      { name: 'email', entries: inSecond },
    ]);
  });

  it('find missing entries, and rebuild the index with the entries that belong in it', async () => {
    const { nodes, node } = await opened();
    await nodes.run(node.db.stop());
    await forge(nodes);
    const other = nodes.make(2);
    other.db.registerSchema(users);
    await nodes.run(other.db.start());
    const { findings } = await nodes.run(other.db.verify());
    expect(findings.map(({ message }) => message)).toEqual([
      'The index has 0 entries, and the table 80 rows for which deletedAt = null',
    ]);
    const repaired = [{ table: 'users', index: 'active', entries: 80 }];
    expect(await nodes.run(other.db.repair({ dryRun: true }))).toMatchObject({ ok: false, repaired });
    expect(await nodes.run(other.db.repair())).toEqual({ ok: true, repaired, unrepairable: [] });
    expect((await nodes.run(other.db.verify({ deep: true }))).findings).toEqual([]);
    const found = other.db.query(users).where('email', '=', 'user 7').where('deletedAt', '=', null);
    expect(await nodes.run(found.explain())).toMatchObject({ access: 'index', index: 'active' });
    expect(await nodes.run(found.execute())).toMatchObject([{ id: 7 }]);
  });

  it('find an entry of a row for which the condition does not hold', async () => {
    const { nodes, node } = await opened();
    await nodes.run(node.db.stop());
    // As if what merged had known of no condition: the schema said nothing of one.
    const all = nodes.make(2);
    await nodes.replaceBlock0(({ tables, generation }) => ({
      generation: generation + 1,
      tables: tables.map((table) => ({
        ...table,
        versions: table.versions.map((version) => ({
          ...version,
          schema: {
            ...version.schema,
            indexes: version.schema.indexes.map((index) =>
              index.name === 'active' ? { ...index, where: [{ field: 'kind', values: ['a'] }] } : index,
            ),
          },
        })),
      })),
    }));
    await nodes.run(all.db.start());
    const messages = (await nodes.run(all.db.verify())).findings.map(({ message }) => message);
    expect(messages.join('\n')).toContain("is of a row that has none: the index is of those for which kind = 'a'");
    expect(messages.join('\n')).toContain("The index has 80 entries, and the table 25 rows for which kind = 'a'");
    await nodes.run(all.db.repair());
    expect((await nodes.run(all.db.verify())).findings).toEqual([]);
  });

  it('take a kept state for whole', async () => {
    const { nodes, node } = await opened();
    const snapshot = await nodes.run(node.db.snapshot());
    const batch = node.db.batch();
    void batch.update(users, { id: 1, deletedAt: new Date(5) });
    await nodes.run(batch.flush());
    await nodes.run(node.db.checkpoint());
    const { ok, keptStates, findings } = await nodes.run(node.db.verify({ deep: true }));
    expect([ok, keptStates, findings]).toEqual([true, 1, []]);
    const inSnapshot = snapshot.query(users).where('deletedAt', '=', null);
    expect(await nodes.run(inSnapshot.count())).toBe(80);
    expect(await nodes.run(node.db.query(users).where('deletedAt', '=', null).count())).toBe(79);
    await nodes.run(snapshot.release());
  });
});

describe('the stored form of a condition', () => {
  it('is the definition again, and text for people', async () => {
    const { nodes } = await opened();
    const block0 = await nodes.block0();
    expect(block0.format).toBe(6);
    const stored = block0.tables.find(({ name }) => name === 'users')?.versions[0]?.schema.indexes;
    expect(stored?.[1]?.where).toEqual([
      { field: 'kind', values: ['a', 'b'] },
      { field: 'shard', values: 'not null' },
    ]);
    const reader = new BlockReader(nodes.store, prefix, new BlockCache(1e6));
    const [definition] = storedDefinitions(View.ofBlock0(new ViewContext(reader), block0));
    expect(definition).toEqual(users);
    // Tools register what is stored.
    const tool = nodes.make(3);
    tool.db.registerSchema(definition as SchemaDefinition);
    await nodes.run(tool.db.start());
    expect(describeIndexes(users)).toBe(
      "active (unique where deletedAt = null), email (where kind IN ('a', 'b') and shard != null)",
    );
  });
});
