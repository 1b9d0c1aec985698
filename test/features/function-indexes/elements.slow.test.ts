/** Indexes on functions with an entry for each element of the list that they return. */
import { describe, expect, it } from 'vitest';
import { InvalidSchemaError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { toStoredSchema } from '../../../src/schema/schema.ts';
import { toDefinition } from '../../../src/schema/stored-definition.ts';
import { Random } from '../../properties/model/random.ts';
import type { TestNode } from '../protocol/nodes.ts';
import { Sites, sites } from './sites.ts';
import type { Row } from './sites.ts';

const words = { ...sites, indexes: ['hits', { function: 'words', typeId: Types.json, each: true }] } as const;
const options = { blockSizeBytes: 1024, writeForwardInterval: 1000 };
const long = 'long '.repeat(300);

/** The words of a URL; of some rows what is no list of words. */
function wordsOf({ url, hits }: Row): unknown {
  switch (hits) {
    case 0:
      return null;
    case 1:
      return 'www';
    case 2:
      return { 0: 'www', length: 1 };
    case 3:
      return [null, { www: 'www' }, ['www'], Number.NaN, 5n, undefined, 'www', 'www', 7, true, -0, '7'];
    case 4:
      return [`${long}a`, `${long}b`];
    default:
      return (url as string).split(/[./]/);
  }
}

const elements: readonly unknown[] = ['www', 'site3', '13', 7, '7', true, 0, 'none', `${long}a`, 'org'];
const few = elements.slice(0, 3);

function siteOf(id: number): Row {
  return { id, url: `www.site${id % 20}.org/${id}`, hits: id % 20 };
}

const all = Array.from({ length: 400 }, (_, id) => siteOf(id));

function idsWith(rows: Iterable<Row>, matches: (list: readonly unknown[]) => boolean): number[] {
  const found = [...rows].filter((row) => {
    const list = wordsOf(row);
    return matches(Array.isArray(list) ? list : []);
  });
  return found.map(({ id }) => id as number).toSorted((a, b) => a - b);
}

async function open(nodes: Sites, nodeId: number, version?: number, schema: SchemaDefinition = words) {
  const node = nodes.make(nodeId, options);
  node.db.registerSchema(schema);
  if (version !== undefined) node.db.registerFunction('words', wordsOf, version);
  await nodes.run(node.db.start());
  return node;
}

async function opened(): Promise<{ nodes: Sites; node: TestNode }> {
  const nodes = new Sites();
  const node = await open(nodes, 1, 1);
  await nodes.write(node, 'insert', all);
  await nodes.merge(node);
  return { nodes, node };
}

async function ids(nodes: Sites, { db }: TestNode, operator: 'HAS' | 'HAS ANY' | 'HAS ALL', value: unknown) {
  await nodes.run(db.refresh());
  const query = db.query('sites').where('words', operator, value as string);
  const rows = await nodes.run(query.execute());
  expect(await nodes.run(query.count())).toBe(rows.length);
  return rows.map(({ id }) => id as number);
}

/** Whether a query for an element goes by the index, or could. */
async function isIndexed(nodes: Sites, { db }: TestNode, element = 'site7'): Promise<boolean> {
  const { index, alternatives } = await nodes.run(db.query('sites').where('words', 'HAS', element).explain());
  return [index, ...alternatives.map((other) => other.index)].includes('words');
}

/** Compares all that can be asked with the rows of a model. */
async function check(nodes: Sites, node: TestNode, rows: readonly Row[], some = elements): Promise<void> {
  for (const element of some) {
    const other = elements[(elements.indexOf(element) * 3 + 1) % elements.length];
    expect(await ids(nodes, node, 'HAS', element)).toEqual(idsWith(rows, (list) => list.includes(element)));
    expect(await ids(nodes, node, 'HAS ANY', [element, other])).toEqual(
      idsWith(rows, (list) => list.includes(element) || list.includes(other)),
    );
    expect(await ids(nodes, node, 'HAS ALL', [element, other])).toEqual(
      idsWith(rows, (list) => list.includes(element) && list.includes(other)),
    );
  }
}

describe('an index on the elements that a function returns', () => {
  it('finds the rows of each element once, for any result of the function', async () => {
    const { nodes, node } = await opened();
    expect(await isIndexed(nodes, node)).toBe(true);
    expect(await nodes.run(node.db.query('sites').where('words', 'HAS', 'site7').explain())).toMatchObject({
      access: 'index',
      index: 'words',
      filters: [],
    });
    await check(nodes, node, all);
    const ordered = node.db.query('sites').where('words', 'HAS', 'org').orderBy('hits', 'desc').limit(3).offset(1);
    expect((await nodes.run(ordered.execute())).map(({ id }) => id)).toEqual([39, 59, 79]);
    const negated = node.db.query('sites').where(({ is, not }) => not(is('words', 'HAS', 'org')));
    expect(await nodes.run(negated.count())).toBe(100);
    const both = node.db.query('sites').where('words', 'HAS', 'site7').where('hits', '=', 7);
    expect(await nodes.run(both.count())).toBe(20);
    // The whole result is another condition: the index has no entry for it.
    const whole = node.db.query('sites').where('words', '=', 'www');
    expect(await nodes.run(whole.count())).toBe(20);
    expect(await nodes.run(whole.explain())).toMatchObject({ access: 'table', alternatives: [] });
    expect(await nodes.findings(node)).toEqual([]);
  });

  it('follows changes of every kind, merged or not, by any instance', async () => {
    const nodes = new Sites();
    const node = await open(nodes, 1, 1);
    const other = await open(nodes, 2);
    const random = new Random(11);
    const model = new Map<number, Row>();
    for (let round = 0; round < 7; round++) {
      const writer = round % 4 === 3 ? other : node;
      const batch = writer.db.batch();
      for (let i = 0; i < 40; i++) {
        const id = random.below(120);
        if (random.below(4) === 0) {
          void batch.delete('sites', id);
          model.delete(id);
        } else {
          const row = { ...siteOf(random.below(400)), id };
          void batch.upsert('sites', row);
          model.set(id, row);
        }
      }
      await nodes.run(batch.flush());
      await check(nodes, node, [...model.values()], few);
      const draft = node.db.batch();
      void draft.upsert('sites', { id: 500, url: 'www.draft.org', hits: 9 });
      const overlaid = node.db.query('sites').where('words', 'HAS', 'draft').overlay(draft);
      expect((await nodes.run(overlaid.execute())).map(({ id }) => id)).toEqual([500]);
      draft.clear();
      await nodes.merge(round % 3 === 0 ? other : node);
      await nodes.pass(4000);
      expect(await isIndexed(nodes, node)).toBe(true);
      await check(nodes, node, [...model.values()], few);
      expect(await nodes.findings(node)).toEqual([]);
    }
  });

  it('belongs to the reads of a transaction', async () => {
    const { nodes, node } = await opened();
    const other = await open(nodes, 2, 1);
    let attempts = 0;
    const counted = await nodes.run(
      node.db.transaction(async (tx) => {
        attempts++;
        const count = await tx.query('sites').where('words', 'HAS', 'site7').count();
        if (attempts === 1) await nodes.write(other, 'upsert', [{ id: 900, url: 'www.site7.org', hits: 7 }]);
        await tx.upsert('sites', { id: 901, url: 'count', hits: count });
        return count;
      }),
    );
    expect([attempts, counted]).toEqual([2, 21]);
  });

  it('is not used where the function fails, and counts those rows', async () => {
    const { nodes, node } = await opened();
    const strict = (row: Row): unknown => {
      if (row['id'] === 5) throw new Error('no');
      return wordsOf(row);
    };
    node.db.registerFunction('words', strict, 2);
    await nodes.pass(4000);
    expect(await nodes.run(node.db.indexes('sites'))).toMatchObject([
      { name: 'hits' },
      { name: 'words', state: 'failed', each: true, problem: 'Function words fails on 1 rows.' },
    ]);
    await expect(nodes.run(node.db.query('sites').where('words', 'HAS', 'org').execute())).rejects.toThrow(
      /'words' threw/,
    );
    expect(await nodes.findings(node)).toEqual([]);
    await nodes.delete(node, [5]);
    await nodes.merge(node);
    await nodes.pass(4000);
    expect(await isIndexed(nodes, node)).toBe(true);
    expect(await nodes.findings(node)).toEqual([]);
  });

  it('is verified and rebuilt', async () => {
    const { nodes, node } = await opened();
    const entries = (await nodes.indexVersions())[0]?.root?.count as number;
    expect(entries).toBeGreaterThan(1000);
    // Changed without a new version: one row has other elements, and another more of them.
    const changed = (row: Row): unknown => {
      return row['id'] === 7 ? ['other'] : row['id'] === 8 ? [...(wordsOf(row) as unknown[]), 'more'] : wordsOf(row);
    };
    node.db.registerFunction('words', changed, 1);
    const findings = (await nodes.findings(node)).join('\n');
    expect(findings).toMatch(/is not one that its function makes of the row/);
    expect(findings).toMatch(
      new RegExp(`has ${entries} entries, and the lists of its function ${entries - 2} elements`),
    );
    expect(await nodes.findings(await open(nodes, 2))).toEqual([]);
    const repaired = await nodes.run(node.db.repair());
    expect(repaired.repaired).toEqual([{ table: 'sites', index: 'words', entries: entries - 2 }]);
    expect(await ids(nodes, node, 'HAS', 'other')).toEqual([7]);
    expect(await ids(nodes, node, 'HAS', 'more')).toEqual([8]);
    expect(await nodes.findings(node)).toEqual([]);
  });

  it('is added to a table with rows, and is of the rows of a newer version too', async () => {
    const nodes = new Sites();
    const plain = await open(nodes, 1, 1, { ...words, indexes: ['hits'] });
    await nodes.write(plain, 'insert', all);
    await nodes.merge(plain);
    plain.db.registerSchema(words);
    for (let i = 0; i < 8; i++) {
      await nodes.pass(4000);
      await nodes.merge(plain);
    }
    expect(await isIndexed(nodes, plain)).toBe(true);
    const [, index] = await nodes.run(plain.db.indexes('sites'));
    expect(index).toMatchObject({ name: 'words', function: 'words', each: true, state: 'ready', rowsDone: 400 });
    await check(nodes, plain, all, few);
    const fields = { ...words.fields, more: { typeId: Types.varchar } } as const;
    const next = await open(nodes, 2, 1, { ...words, fields, version: 2 });
    await check(nodes, next, all, few);
    await nodes.run(next.db.setTargetSchemaVersion('sites', 2));
    for (let i = 0; i < 10; i++) await nodes.pass(4000);
    await nodes.run(plain.db.stop());
    await nodes.run(next.db.finishMigration('sites'));
    await nodes.pass(8000);
    expect(await isIndexed(nodes, next)).toBe(true);
    await check(nodes, next, all, few);
    expect(await nodes.findings(next)).toEqual([]);
  });

  it('is stored in a form that older releases refuse, and is the definition again', async () => {
    const { nodes } = await opened();
    const block0 = await nodes.block0();
    expect(block0.format).toBe(12);
    const stored = block0.tables.find(({ name }) => name === 'sites')?.versions[0]?.schema;
    expect(stored?.functionIndexes).toEqual([{ name: 'words', function: 'words', typeId: Types.json, each: true }]);
    expect(stored && toStoredSchema(toDefinition(stored))).toEqual(stored);
  });

  it.each([
    [{ typeId: Types.json }, /cannot be of typeId json: .*, or with `each: true` json lists/],
    [{ typeId: Types.varchar, each: true }, /cannot be of typeId varchar: with `each`, .* typeId is Types.json/],
    [{ typeId: Types.json, each: 'yes' }, /`each` of the index on function 'words' must be true or false, not 'yes'/],
    [{ typeId: Types.json, each: true, unique: true }, /unique/],
  ])('is refused as %j', (given, message) => {
    const index = { function: 'words', ...given } as never;
    expect(() => toStoredSchema({ ...words, indexes: [index] })).toThrow(InvalidSchemaError);
    expect(() => toStoredSchema({ ...words, indexes: [index] })).toThrow(message);
  });
});
