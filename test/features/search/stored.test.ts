/** Indexes on texts in a database: what a search finds, and in which order, after any changes; verified, rebuilt, added and migrated. */
import { beforeAll, describe, expect, it } from 'vitest';
import { loadAll } from '../../../src/base/later.ts';
import { DenseNode, openStored } from '../../../src/cache/dense-node.ts';
import { Types } from '../../../src/format/types.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import type { SearchOptions } from '../../../src/query/conditions/search-options.ts';
import { Random } from '../../properties/model/random.ts';
import { Nodes, prefix } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';
import { searchModel } from './search-model.ts';
import type { Article } from './search-model.ts';

const articles = {
  name: 'articles',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    title: { typeId: Types.varchar },
    body: { typeId: Types.varchar },
    section: { typeId: Types.uint8 },
  },
  primaryKey: 'id',
  indexes: [{ fields: ['title', 'body'], text: { weights: { title: 3 } }, name: 'words' }, 'section'],
} as const satisfies SchemaDefinition;

const weights = [3, 1];
const vocabulary = ['red', 'wine', 'white', 'winter', 'grape', 'glass', 'cellar', 'oak', 'ref', 'read'];

async function opened(nodes: Nodes, schema: SchemaDefinition = articles): Promise<TestNode> {
  const node = nodes.make(1, { blockSizeBytes: 512 });
  node.db.registerSchema(schema);
  await nodes.run(node.db.start());
  return node;
}

function textOf(random: Random, most: number): string {
  const count = random.below(most + 1);
  // The first words come more often than the last ones.
  const words = Array.from({ length: count }, () => vocabulary[Math.min(random.below(10), random.below(10))]);
  return words.join(' ');
}

function articleOf(random: Random, id: number): Article {
  const title = random.below(8) === 0 ? null : textOf(random, 3);
  return { id, title, body: textOf(random, 12), section: random.below(4) };
}

const searches: readonly (readonly [string, SearchOptions])[] = [
  ['red', {}],
  ['red wine', {}],
  ['red wine grape', {}],
  ['red cellar oak', { match: 'any' }],
  ['red wi', { prefix: true }],
  ['w', { prefix: true }],
  ['grape "red w', { prefix: true }],
  ['"red w"', { prefix: true }],
  ['red w -oak', { prefix: true }],
  ['"red w', {}],
  ['wine -red', {}],
  ['"red wine"', {}],
  ['grape "red wine" -oak', {}],
  ['winter', { fields: ['title'] }],
  ['red wine', { fields: ['body'] }],
  ['nothing', {}],
  ['wime', { fuzzy: true }],
  ['red -"red wine"', {}],
  ['red wine', { weights: { body: 5 } }],
  ['wine cellar', { match: 'any', weights: { title: 0.5, body: 2 }, fields: ['body'] }],
];

// Time is virtual, and code is loaded in real time.
beforeAll(loadAll);

describe('an index on texts', () => {
  it('finds the rows that the model finds, in the order of their scores, after any changes', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    const random = new Random(11);
    const model = new Map<number, Article>();
    for (let round = 0; round < 18; round++) {
      const batch = node.db.batch();
      // A few changes lie on top of many, unmerged.
      const changes = round % 3 === 1 ? 3 : 12;
      for (let i = 0; i < changes; i++) {
        const id = 1 + random.below(80);
        if (random.below(4) === 0 && model.has(id)) {
          await batch.delete('articles', id);
          model.delete(id);
        } else {
          const row = articleOf(random, id);
          await batch.upsert('articles', row);
          model.set(id, row);
        }
      }
      await nodes.run(batch.flush());
      const isMerged = round % 3 === 2;
      if (isMerged) await nodes.run(node.db.checkpoint());
      for (const [text, options] of searches) {
        const query = node.db.query('articles').search(text, options);
        const expected = searchModel([...model.values()], weights, text, options);
        const found = (await nodes.run(query.execute())) as unknown as Article[];
        const ids = found.map(({ id }) => id);
        // The numbers of rows and words are exact once all is merged.
        const inOrder = (all: readonly number[]): readonly number[] => (isMerged ? all : all.toSorted(byNumber));
        expect(inOrder(ids)).toEqual(inOrder(expected.map(({ id }) => id)));
        expect(found).toEqual(ids.map((id) => model.get(id)));
        expect(await nodes.run(query.count())).toBe(expected.length);
        const top = (await nodes.run(query.limit(3).offset(1).execute())) as unknown as Article[];
        expect(top.map(({ id }) => id)).toEqual(ids.slice(1, 4));
        const inSection = await nodes.run(query.where('section', '=', 2).orderBy('id', 'desc').execute());
        const wanted = expected.filter(({ section }) => section === 2).map(({ id }) => id);
        expect((inSection as unknown as Article[]).map(({ id }) => id)).toEqual(wanted.toSorted((a, b) => b - a));
      }
      const findings = isMerged ? (await nodes.run(node.db.verify({ deep: true }))).findings : [];
      expect(findings).toEqual([]);
    }
  });
});

/** Resolves once what is under way in memory is done. */
async function settled(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve();
}

function byNumber(a: number, b: number): number {
  return a - b;
}

/** Inserts articles 1 to 60 with words of the vocabulary. */
async function fill(nodes: Nodes, node: TestNode): Promise<Article[]> {
  const random = new Random(5);
  const rows = Array.from({ length: 60 }, (_, i) => articleOf(random, i + 1));
  const batch = node.db.batch();
  for (const row of rows) await batch.insert('articles', row);
  await nodes.run(batch.flush());
  await nodes.run(node.db.checkpoint());
  return rows;
}

async function idsOf(nodes: Nodes, node: TestNode, text: string): Promise<number[]> {
  const rows = (await nodes.run(node.db.query('articles').search(text).execute())) as unknown as Article[];
  return rows.map(({ id }) => id);
}

function wantedOf(rows: readonly Article[], text: string): number[] {
  return searchModel(rows, weights, text, {}).map(({ id }) => id);
}

describe('the entries of an index on texts', () => {
  it('are in dense leaves, and those of other indexes are not', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    await fill(nodes, node);
    const areDense = async (index: string): Promise<boolean[]> => {
      const { entries } = await nodes.store.list(`${prefix}/indexes/articles/${index}/`);
      const leaves: boolean[] = [];
      for (const { key } of entries) {
        const object = await nodes.store.get(key);
        if (object.status !== 'found') continue;
        const block = openStored(key.slice(prefix.length + 1), object.bytes);
        if (block.level === 0) leaves.push(block instanceof DenseNode);
      }
      return leaves;
    };
    expect(new Set(await areDense('words'))).toEqual(new Set([true]));
    expect(await areDense('section')).not.toContain(true);
    await nodes.run(node.db.stop());
  });

  it('are rebuilt by repair(), which verify() finds to be needed, with the number of words', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    const rows = await fill(nodes, node);
    await nodes.run(node.db.stop());
    await nodes.replaceIndexes('articles', (indexes) =>
      indexes.map(({ name, root }) => ({ name, root: name === 'words' ? root && { ...root, words: 7 } : root })),
    );

    await nodes.run(node.db.start());
    const { findings } = await nodes.run(node.db.verify({ deep: true }));
    expect(findings.map(({ message }) => message)).toEqual([expect.stringContaining('said to be of 7 words')]);
    await nodes.run(node.db.repair());
    expect((await nodes.run(node.db.verify({ deep: true }))).findings).toEqual([]);
    expect(await idsOf(nodes, node, 'red wine')).toEqual(wantedOf(rows, 'red wine'));
  });

  it('are made for a table with rows, and searched meanwhile', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes, { ...articles, indexes: ['section'] });
    const rows = await fill(nodes, node);
    node.db.registerSchema(articles);
    expect(await idsOf(nodes, node, 'red wine')).toEqual(wantedOf(rows, 'red wine'));
    for (let i = 0; i < 20; i++) {
      await nodes.environment.advance(60_000);
      await nodes.run(node.db.checkpoint());
    }
    expect(await nodes.run(node.db.indexes('articles'))).toMatchObject([
      { name: 'section' },
      { name: 'words', fields: ['title', 'body'], text: { weights: { title: 3, body: 1 } }, state: 'ready' },
    ]);
    expect(await idsOf(nodes, node, 'red wine')).toEqual(wantedOf(rows, 'red wine'));
    expect((await nodes.run(node.db.verify({ deep: true }))).findings).toEqual([]);
  });

  it('are searched by instances that have not registered the index', async () => {
    const nodes = new Nodes();
    const rows = await fill(nodes, await opened(nodes));
    const wanted = wantedOf(rows, 'red wine');
    const node = nodes.make(2);
    const titles = { fields: ['title'], text: {}, name: 'titles' };
    node.db.registerSchema({ ...articles, indexes: [titles] });
    await nodes.run(node.db.start());
    const search = { index: 'words' };
    const ids = (found: readonly unknown[]): number[] => (found as readonly Article[]).map(({ id }) => id);
    expect(ids(await nodes.run(node.db.query('articles').search('red wine', search).execute()))).toEqual(wanted);
    // The one that this instance registers comes first, and is not there yet.
    const inTitles = rows.filter(({ title }) => title?.includes('wine')).length;
    expect(await nodes.run(node.db.query('articles').search('wine').count())).toBe(inTitles);
    const query = node.db.query('articles').search('red wine', search);
    const [best] = (await nodes.run(query.limit(1).execute())) as unknown as Article[];
    expect(await nodes.run(query.highlight(best as Article))).not.toEqual({});
    const snapshot = await nodes.run(node.db.snapshot());
    expect(ids(await nodes.run(snapshot.query('articles').search('red wine', search).execute()))).toEqual(wanted);
    await nodes.run(snapshot.release());
    const inside = node.db.transaction((tx) => tx.query('articles').search('red wine', search).execute());
    expect(ids(await nodes.run(inside))).toEqual(wanted);
    expect(() => node.db.query('articles').search('x', { index: 'wrods' })).toThrow("but 'titles', 'words'");
  });

  it('follow a snapshot, a transaction and an unflushed batch', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    const rows = await fill(nodes, node);
    const snapshot = await nodes.run(node.db.snapshot());
    const added = { id: 100, title: 'red wine', body: 'red wine', section: 1 };
    const batch = node.db.batch();
    await batch.insert('articles', added);
    const overlaid = await nodes.run(node.db.query('articles').search('red wine').overlay(batch).execute());
    expect((overlaid as unknown as Article[]).map(({ id }) => id)).toContain(100);
    await nodes.run(batch.flush());
    const old = await nodes.run(snapshot.query('articles').search('red wine').execute());
    expect((old as unknown as Article[]).map(({ id }) => id)).toEqual(wantedOf(rows, 'red wine'));
    await nodes.run(snapshot.release());
    const found = await nodes.run(
      node.db.transaction(async (tx) => {
        const all = await tx.query('articles').search('red wine').execute();
        await tx.delete('articles', 100);
        return all.length;
      }),
    );
    expect(found).toBe(wantedOf([...rows, added], 'red wine').length);
    expect(await idsOf(nodes, node, 'red wine')).not.toContain(100);
  });

  it('are of a newer version of the table too, before and after its rows are migrated', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes, { ...articles, indexes: ['section'] });
    const rows = await fill(nodes, node);
    const next = { ...articles, version: 2, fields: { ...articles.fields, note: { typeId: Types.varchar } } };
    node.db.registerSchema(next);
    expect(await idsOf(nodes, node, 'red wine')).toEqual(wantedOf(rows, 'red wine'));
    const added = { id: 61, title: 'red', body: 'wine', section: 1, note: 'new' };
    const batch = node.db.batch();
    await batch.insert('articles', added);
    await nodes.run(batch.flush());
    const all = [...rows, added];
    expect((await idsOf(nodes, node, 'red wine')).toSorted(byNumber)).toEqual(
      wantedOf(all, 'red wine').toSorted(byNumber),
    );
    await nodes.run(node.db.setTargetSchemaVersion('articles', 2));
    for (let i = 0; i < 20; i++) {
      await nodes.environment.advance(60_000);
      await nodes.run(node.db.checkpoint());
    }
    expect(await idsOf(nodes, node, 'red wine')).toEqual(wantedOf(all, 'red wine'));
    expect((await nodes.run(node.db.verify({ deep: true }))).findings).toEqual([]);
  });

  it('are counted word by word where a migration makes many rows ahead of a merge', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    const random = new Random(5);
    const rows = Array.from({ length: 600 }, (_, i) => articleOf(random, i + 1));
    const batch = node.db.batch();
    for (const row of rows) await batch.insert('articles', row);
    await nodes.run(batch.flush());
    await nodes.run(node.db.checkpoint());
    node.db.registerSchema({ ...articles, version: 2 });
    await nodes.run(node.db.setTargetSchemaVersion('articles', 2));
    for (let i = 0; i < 4; i++) await nodes.environment.advance(60_000);
    expect((await nodes.run(node.db.migrationStatus('articles'))).state).toBe('switched');
    expect((await nodes.run(node.db.verify({ deep: true }))).findings).toEqual([]);
    expect(await idsOf(nodes, node, 'red wine')).toEqual(wantedOf(rows, 'red wine'));
  });

  it('are made of loaded rows, and shown word by word', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    const random = new Random(9);
    const rows = Array.from({ length: 400 }, (_, i) => articleOf(random, i + 1));
    await nodes.run(node.db.load('articles', rows));
    await nodes.run(node.db.checkpoint());
    expect(await idsOf(nodes, node, 'red wine')).toEqual(wantedOf(rows, 'red wine'));
    expect((await nodes.run(node.db.verify({ deep: true }))).findings).toEqual([]);
    let block = await nodes.run(node.db.block('articles', { index: 'words' }));
    for (let level = block?.level ?? 0; level > 0; level--) {
      const { child } = block?.entries[0] ?? {};
      block = await nodes.run(node.db.block('articles', { index: 'words', name: child?.name ?? '' }));
    }
    expect(block?.entries[0]?.key).toEqual(['cellar', expect.any(Number), expect.stringMatching(/^0x[0-9a-f]+$/)]);
  });

  it('read as few entries as there are for a rare word', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    await fill(nodes, node);
    const plan = await nodes.run(node.db.query('articles').search('red read').limit(3).explain({ run: true }));
    expect(plan).toMatchObject({ access: 'search', index: 'words', order: 'access' });
    expect(plan.steps.map(({ step }) => step)).toEqual(['index', 'table', 'result']);
  });
});

describe('a search', () => {
  it('refuses what it cannot do, before it reads', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes, {
      ...articles,
      indexes: [{ fields: ['title'], text: {}, name: 'titles' }],
    });
    const query = node.db.query('articles');
    expect(() => query.search(7 as never)).toThrow('search() takes a text, not 7.');
    expect(() => query.search('x', { index: 'words' })).toThrow(
      "has no index on texts of the name 'words', but 'titles'",
    );
    expect(() => query.search('x', { fields: ['body'] })).toThrow("has the fields body. It has 'titles' (title).");
    expect(() => query.search('x', { weights: { tilte: 2 } })).toThrow(
      "`weights` has 'tilte', which is not known; did you mean `title`? Index 'titles' is on title.",
    );
    for (const wrong of [{ title: 0 }, { title: Number.NaN }, { title: '2' }, [2], 2]) {
      expect(() => query.search('x', { weights: wrong as never })).toThrow('weights, which are numbers above 0');
    }
    expect(() => query.search('x', { weights: { title: 0 } })).toThrow("is an object in which 'title' is 0;");
    expect(() => query.search('x', { fields: 'title' as never })).toThrow('it must be an array of names of fields');
    expect(() => query.search('x', { fields: [] })).toThrow('`fields` is empty');
    await expect(query.highlight({})).rejects.toThrow('highlight() takes a query with search().');
    expect(await nodes.run(query.search('').execute())).toEqual([]);
    expect(await nodes.run(query.search('-red').execute())).toEqual([]);
  });

  it('takes an index of all rows before one of some, unless one is named', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes, {
      ...articles,
      indexes: [
        { fields: ['title'], text: {}, name: 'some', where: { section: 1 } },
        { fields: ['title'], text: {}, name: 'all' },
      ],
    });
    const batch = node.db.batch();
    await batch.insert('articles', { id: 1, title: 'wine', body: '', section: 1 });
    await batch.insert('articles', { id: 2, title: 'wine', body: '', section: 2 });
    await nodes.run(batch.flush());
    const query = node.db.query('articles');
    expect(await nodes.run(query.search('wine').count())).toBe(2);
    expect(await nodes.run(query.search('wine', { index: 'some' }).count())).toBe(1);
  });

  it('finds all rows with similar words, however many there are', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    const words = new Set<string>();
    for (const letter of 'abcdefghijklmnopqrstuvwxyz')
      words.add(`t${letter}st`).add(`te${letter}t`).add(`tes${letter}`);
    const batch = node.db.batch();
    for (const [id, title] of [...words].entries()) await batch.insert('articles', { id, title, body: '', section: 1 });
    for (let id = 100; id < 400; id++) {
      await batch.insert('articles', { id, title: `n${20_260_000 + 3 * id}`, body: '', section: 2 });
    }
    await nodes.run(batch.flush());
    for (const isMerged of [false, true]) {
      if (isMerged) await nodes.run(node.db.checkpoint());
      const search = (text: string) => node.db.query('articles').search(text, { fuzzy: true });
      expect(await nodes.run(search('test').count())).toBe(words.size);
      // Words of nine letters may differ in two.
      expect(await nodes.run(search('n20260600').count())).toBeGreaterThan(64);
    }
  });

  it('finds no row whose where() another row meets, also by primary key', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    const rows = await fill(nodes, node);
    const [first] = wantedOf(rows, 'red wine');
    const byKey = (text: string): Promise<unknown[]> =>
      nodes.run(
        node.db
          .query('articles')
          .where('id', '=', first as number)
          .search(text)
          .execute(),
      );
    expect(await byKey('red wine')).toEqual([rows[(first as number) - 1]]);
    expect(await byKey('nothing')).toEqual([]);
  });

  it('is watched: each result is that of a fresh run, also where only scores change', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    await fill(nodes, node);
    const random = new Random(23);
    const best = node.db.query('articles').search('red wine').limit(3);
    const bySection = node.db.query('articles').search('oak').orderBy('section').limit(4);
    let latest: readonly unknown[] = [];
    let latestBySection: readonly unknown[] = [];
    const stops = [
      best.watch().subscribe(({ rows }) => (latest = rows)),
      bySection.watch().subscribe(({ rows }) => (latestBySection = rows)),
    ];
    for (let round = 0; round < 40; round++) {
      const batch = node.db.batch();
      await batch.upsert('articles', articleOf(random, 1 + random.below(70)));
      await nodes.run(batch.flush());
      if (round % 8 === 7) await nodes.run(node.db.checkpoint());
      await nodes.run(settled());
      expect(latest).toEqual(await nodes.run(best.execute()));
      expect(latestBySection).toEqual(await nodes.run(bySection.execute()));
    }
    for (const stop of stops) stop();
  });

  it('is watched: a row without its words changes the order of others, since long texts count less where most are short', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    const filler = (count: number): string => Array.from({ length: count }, () => 'oak').join(' ');
    const batch = node.db.batch();
    await batch.insert('articles', { id: 1, title: null, body: `wine wine ${filler(18)}`, section: 1 });
    await batch.insert('articles', { id: 2, title: null, body: `wine ${filler(2)}`, section: 1 });
    await batch.insert('articles', { id: 3, title: null, body: 'red', section: 1 });
    await nodes.run(batch.flush());
    await nodes.run(node.db.checkpoint());
    let latest: readonly unknown[] = [];
    const query = node.db.query('articles').search('wine').select('id').limit(2);
    const stop = query.watch().subscribe(({ rows }) => (latest = rows));
    await nodes.run(settled());
    expect(latest).toEqual([{ id: 2 }, { id: 1 }]);
    const later = node.db.batch();
    await later.insert('articles', { id: 4, title: null, body: filler(1000), section: 1 });
    await nodes.run(later.flush());
    await nodes.run(settled());
    expect(latest).toEqual([{ id: 1 }, { id: 2 }]);
    stop();
  });

  it('marks words and phrases in the texts of a row', async () => {
    const nodes = new Nodes();
    const node = await opened(nodes);
    const query = node.db.query('articles').search('"red wine" cas -oak', { prefix: true });
    const row = { title: 'Red, red wine', body: 'Casks of wine', section: 1 };
    const spans = await query.highlight(row);
    const { title, body } = row;
    expect((spans['title'] ?? []).map(({ start, end }) => title.slice(start, end))).toEqual(['red wine']);
    expect((spans['body'] ?? []).map(({ start, end }) => body.slice(start, end))).toEqual(['Casks']);
    const typed = await node.db.query('articles').search('wine cas', { prefix: true }).highlight(row);
    expect((typed['body'] ?? []).map(({ start, end }) => body.slice(start, end))).toEqual(['Casks', 'wine']);
  });
});
