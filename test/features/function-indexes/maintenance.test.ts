/** Maintenance of indexes on functions: verify(), repair(), and interrupted work in the background. */
import { describe, expect, it } from 'vitest';
import { sleep } from '../../../src/base/env.ts';
import { InvalidSchemaError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import type { StoredIndexVersion } from '../../../src/format/stored-table.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { domain, siteOf, Sites, sites } from './sites.ts';
import type { Row } from './sites.ts';

const all = Array.from({ length: 400 }, (_, id) => siteOf(id));
const ofSite = (site: number): number[] => Array.from({ length: 20 }, (_, i) => site + i * 20);
const options = { blockSizeBytes: 1024, writeForwardInterval: 1000 };

async function opened() {
  const nodes = new Sites();
  const node = await nodes.open(1, 1, options);
  await nodes.write(node, 'insert', all);
  await nodes.merge(node);
  return { nodes, node };
}

/** Changes the index versions behind everybody's back. */
async function forge(nodes: Sites, change: (indexVersion: StoredIndexVersion) => StoredIndexVersion): Promise<void> {
  await nodes.replaceBlock0(({ tables, generation }) => ({
    generation: generation + 1,
    tables: tables.map((table) => ({
      ...table,
      versions: table.versions.map((version) => ({
        ...version,
        ...(version.editions && { editions: version.editions.map(change) }),
      })),
    })),
  }));
}

describe('verify() and repair()', () => {
  it('find entries that the function does not make, and rebuild the index', async () => {
    const { nodes, node } = await opened();
    // Not pure, or changed without a new version.
    const changed = (row: Row): unknown => (row['id'] === 7 ? 'other' : domain(row));
    node.db.registerFunction('domain', changed, 1);
    expect(await nodes.find(node, 'other')).toEqual({ ids: [], index: 'domain' });
    expect(await nodes.findings(node)).toEqual([
      expect.stringMatching(/^Index entry \d+ is not the one that its function makes of the row$/),
    ]);
    const without = await nodes.open(2, undefined, options);
    expect(await nodes.findings(without)).toEqual([]);
    const dry = await nodes.run(node.db.repair({ dryRun: true }));
    const repaired = [{ table: 'sites', index: 'domain', entries: 400 }];
    expect(dry).toEqual({ ok: false, repaired, unrepairable: [] });
    expect(await nodes.run(node.db.repair())).toEqual({ ok: true, repaired, unrepairable: [] });
    expect(await nodes.find(node, 'other')).toEqual({ ids: [7], index: 'domain' });
    expect(await nodes.find(node, 'www.site7.org')).toEqual({ ids: ofSite(7).slice(1), index: 'domain' });
    expect(await nodes.findings(node)).toEqual([]);
  });

  it('find a base that is not the one, entries that are missing, and failures that are miscounted', async () => {
    const { nodes, node } = await opened();
    await nodes.run(node.db.stop());
    const [sound] = await nodes.indexVersions();
    const without = await nodes.open(2, undefined, options);
    await nodes.write(without, 'update', [{ id: 7, url: 'moved' }]);
    await nodes.delete(without, [8]);
    await nodes.merge(without);
    await nodes.run(without.db.stop());
    const { versions } = (await nodes.block0()).tables.find(({ name }) => name === 'sites') ?? {};
    const base = versions?.[0]?.root ?? null;
    const forged: readonly (readonly [Partial<StoredIndexVersion>, RegExp])[] = [
      [{ base }, /names a row that does not exist/],
      [{ failed: 2 }, /has 0 entries of rows on which its function failed, and is said to have 2/],
      [{ root: null }, /has 0 entries, and its table 400 rows/],
      [{ built: '' }, /is of a row whose turn has not come/],
    ];
    for (const [change, finding] of forged) {
      await forge(nodes, (indexVersion) => ({ ...indexVersion, ...sound, ...change }));
      const reader = await nodes.open(3, 1, { role: 'replica' });
      expect((await nodes.findings(reader)).join('\n')).toMatch(finding);
      await nodes.run(reader.db.stop());
    }
    // A node that cannot make it gives it up to those that can.
    const other = await nodes.open(2, undefined, options);
    const repaired = [{ table: 'sites', index: 'domain', entries: 0 }];
    expect(await nodes.run(other.db.repair())).toEqual({ ok: true, repaired, unrepairable: [] });
    expect(await nodes.indexVersions()).toEqual([]);
    const again = await nodes.open(1, 1, options);
    await nodes.pass(4000);
    expect(await nodes.find(again, 'moved')).toEqual({ ids: [7], index: 'domain' });
    expect(await nodes.findings(again)).toEqual([]);
  });

  it('report each index version, of kept states too', async () => {
    const { nodes, node } = await opened();
    const snapshot = await nodes.run(node.db.snapshot());
    const next = await nodes.open(2, 2, options);
    await nodes.pass(4000);
    const { tables, keptStates, ok } = await nodes.run(next.db.verify({ deep: true }));
    expect([ok, keptStates]).toEqual([true, 1]);
    expect(tables.find(({ name }) => name === 'sites')?.indexes).toEqual([
      { name: 'hits', entries: 400 },
      { name: 'domain', entries: 400, functionVersion: 1 },
      { name: 'domain', entries: 400, functionVersion: 2 },
    ]);
    await nodes.run(snapshot.release());
  });
});

describe('making an index version in the background', () => {
  it('goes on where a process died, past rows written meanwhile', async () => {
    const nodes = new Sites();
    const writer = await nodes.open(1, undefined, options);
    const many = Array.from({ length: 3000 }, (_, id) => siteOf(id));
    await nodes.write(writer, 'insert', many);
    await nodes.merge(writer);
    const dying = await nodes.open(2, 1, options);
    // Requests take a while, so that it gets no further than some chunks.
    dying.driver.onAll(async (pass) => {
      await sleep(nodes.environment, 40);
      return pass();
    });
    for (let i = 0; (await nodes.indexVersions())[0]?.built === undefined && i < 200; i++) await nodes.pass(50);
    const [started] = await nodes.indexVersions();
    expect(started?.built).toMatch(/./);
    // As if it died: none of its requests arrives any more.
    dying.driver.onAll(() => Promise.race([]));
    await nodes.write(writer, 'update', [
      { id: 3, url: 'moved/early' },
      { id: 2990, url: 'moved/late' },
    ]);
    await nodes.delete(writer, [4, 2991]);
    await nodes.merge(writer);
    expect((await nodes.indexVersions())[0]).toMatchObject({ built: started?.built });
    expect(await nodes.findings(writer)).toEqual([]);
    let calls = 0;
    const next = nodes.make(3, options);
    next.db.registerSchema(sites);
    next.db.registerFunction('domain', (row) => (calls++, domain(row)), 1);
    await nodes.run(next.db.start());
    await nodes.pass(30_000);
    expect(await nodes.find(next, 'moved')).toEqual({ ids: [3, 2990], index: 'domain' });
    expect(await nodes.findings(next)).toEqual([]);
    const [done] = await nodes.indexVersions();
    expect([done?.built, done?.root?.count]).toEqual([null, 2998]);
    expect(calls).toBeGreaterThan(0);
  });

  it('keeps up with writes under load', async () => {
    const nodes = new Sites();
    const old = await nodes.open(1, 1, options);
    await nodes.write(
      old,
      'insert',
      Array.from({ length: 3000 }, (_, id) => siteOf(id)),
    );
    await nodes.merge(old);
    const next = await nodes.open(2, 2, options);
    for (let round = 0; round < 20; round++) {
      await nodes.write(round % 2 === 0 ? old : next, 'update', [{ id: round * 7, url: `www.moved.org/${round}` }]);
      await nodes.pass(250);
      expect((await nodes.find(next, 'moved.org')).ids).toHaveLength(round + 1);
      expect((await nodes.find(old, 'www.moved.org')).ids).toHaveLength(round + 1);
    }
    await nodes.merge(old);
    await nodes.pass(4000);
    expect((await nodes.find(next, 'moved.org')).index).toBe('domain');
    expect((await nodes.find(old, 'www.moved.org')).index).toBe('domain');
    expect(await nodes.findings(next)).toEqual([]);
  });

  it('says when it is complete, and names the rows on which the function fails', async () => {
    const { nodes, node } = await opened();
    const strict = ({ id }: Row): unknown => {
      if ((id as number) % 100 === 3) throw new Error('no');
      return id;
    };
    node.db.registerFunction('domain', strict, 3);
    await nodes.pass(3000);
    const lines = node.log.filter(({ details }) => details['index'] === 'domain' && details['version'] === 3);
    expect(lines.map(({ level, message }) => `${level}: ${message}`)).toEqual([
      'info: Index domain of table sites has all entries of version 3 of function domain',
      expect.stringMatching(/^warn: Index domain of table sites is not used: .* fails on 4 rows\./),
    ]);
  });
});

describe('a migration of the table', () => {
  const sites2: SchemaDefinition = {
    ...sites,
    version: 2,
    fields: { ...sites.fields, owner: { typeId: Types.varchar, default: 'nobody' } },
    indexes: ['hits', { function: 'domain', typeId: Types.varchar }, { function: 'owned', typeId: Types.varchar }],
  };
  const plain: SchemaDefinition = { ...sites2, version: 3, indexes: ['hits'] };

  it('keeps the old version by its index, and brings the new one up with its own', async () => {
    const nodes = new Sites();
    const v1 = await nodes.open(1, 1, options);
    await nodes.write(v1, 'insert', all);
    await nodes.merge(v1);
    const v2 = await nodes.open(2, 1, options, sites2);
    v2.db.registerFunction('owned', ({ owner }) => `by ${String(owner)}`, 1);
    expect((await nodes.find(v2, 'www.site7.org')).ids).toEqual(ofSite(7));
    await nodes.write(v2, 'update', [{ id: 7, owner: 'me' }]);
    await nodes.merge(v2);
    await nodes.run(v2.db.setTargetSchemaVersion('sites', 2));
    for (let second = 0; second < 12; second++) {
      await nodes.pass(500);
      expect((await nodes.find(v2, 'www.site7.org')).ids).toEqual(ofSite(7));
      expect((await nodes.find(v1, 'www.site7.org')).ids).toEqual(ofSite(7));
      expect(await nodes.findings(v2)).toEqual([]);
    }
    await nodes.run(v1.db.stop());
    await nodes.run(v2.db.finishMigration('sites'));
    expect(await nodes.run(v2.db.migrationStatus('sites'))).toMatchObject({ state: 'none' });
    expect(await nodes.find(v2, 'www.site7.org')).toEqual({ ids: ofSite(7), index: 'domain' });
    const mine = v2.db.query('sites').where('owned', '=', 'by me');
    expect((await nodes.run(mine.execute())).map(({ id }) => id)).toEqual([7]);
    expect(await nodes.run(mine.explain())).toMatchObject({ index: 'owned' });
    expect(await nodes.findings(v2)).toEqual([]);
    // A version without the indexes gives them up.
    const v3 = await nodes.open(3, 1, options, plain);
    await nodes.run(v3.db.setTargetSchemaVersion('sites', 3));
    await nodes.pass(3000);
    await nodes.run(v2.db.stop());
    await nodes.run(v3.db.finishMigration('sites'));
    await nodes.pass(20_000);
    expect((await nodes.block0()).format).toBe(1);
    await nodes.run(v3.db.gc({ loopGraceMs: 0 }));
    expect((await nodes.keys()).filter((key) => /domain|owned/.test(key))).toEqual([]);
    expect((await nodes.find(v3, 'www.site7.org')).ids).toEqual(ofSite(7));
    expect(await nodes.findings(v3)).toEqual([]);
  });
});

describe('a schema with an index on a function', () => {
  const define = (index: unknown) => (): void => {
    const schema = { ...sites, indexes: [index] } as unknown as SchemaDefinition;
    new Sites().make(1).db.registerSchema(schema);
  };

  it.each([
    [{ function: '', typeId: Types.varchar }, 'gives its name'],
    [{ function: 7, typeId: Types.varchar }, 'gives its name'],
    [{ function: 'f' }, 'cannot be of typeId undefined'],
    [{ function: 'f', typeId: Types.timestamp }, 'cannot be of typeId timestamp'],
    [{ function: 'f', typeId: Types.bytes }, 'cannot be of typeId bytes'],
    [{ function: 'f', typeId: Types.json }, 'cannot be of typeId json'],
    [{ function: 'f', typeId: Types.varchar, unique: true }, 'Property `unique` of an index on a function'],
    [{ function: 'f', typeId: Types.varchar, fields: ['url'] }, 'Property `fields` of an index on a function'],
    [{ function: 'f', typeId: Types.varchar, name: '' }, 'name of an index'],
    [{ function: 'f'.repeat(200), typeId: Types.varchar }, 'name of an index'],
  ])('refuses %j', (index, message) => {
    expect(define(index)).toThrow(InvalidSchemaError);
    expect(define(index)).toThrow(message);
  });

  it('refuses two indexes of one name, and another definition of the same version', () => {
    const { db } = new Sites().make(1);
    const on = { function: 'url', typeId: Types.varchar } as const;
    const twice = { ...sites, indexes: ['url', on] } as const;
    expect(() => db.registerSchema(twice)).toThrow("two of the name 'url'");
    db.registerSchema(sites);
    expect(() => db.registerSchema({ ...sites, fields: { ...sites.fields, hits: { typeId: Types.uint8 } } })).toThrow(
      InvalidSchemaError,
    );
    const other = { function: 'domain', typeId: Types.uuid } as const;
    expect(() => db.registerSchema({ ...sites, indexes: ['hits', other] })).toThrow(InvalidSchemaError);
    db.registerSchema({ ...sites, indexes: [{ name: 'domain', typeId: Types.varchar, function: 'domain' }, 'hits'] });
  });
});
