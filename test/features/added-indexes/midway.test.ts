/** An index that has entries of some rows: no query uses it, and it is complete in the end, after any event. */
import { beforeEach, describe, expect, it } from 'vitest';
import { isEnvelope } from '../../../src/format/envelope.ts';
import { keys } from '../encryption/envelope-store.ts';
import type { TestNode } from '../protocol/nodes.ts';
import { prefix } from '../protocol/nodes.ts';
import { allBooks, bookOf, byAuthor, ofAuthor, plain, Shelf, turns } from './shelf.ts';
import { Stepper } from './stepper.ts';

let shelf: Shelf;
let node: TestNode;
let stepper: Stepper;

/** Half of 400 rows have their entries. */
beforeEach(async () => {
  shelf = new Shelf();
  node = await shelf.open(1, plain, { blockSizeBytes: 512 });
  stepper = new Stepper(shelf);
  await stepper.open();
  await shelf.write(node, 'insert', allBooks);
  await shelf.merge(node);
  expect(await stepper.step(byAuthor, { rows: 200 })).toMatchObject({ rows: 200, begun: ['author'], ready: [] });
});

/** Takes the steps that are left. */
async function finish(): Promise<void> {
  while ((await stepper.step(byAuthor, { rows: 60 })) !== undefined);
}

describe('an index that is half made', () => {
  it('is reported, and is not used', async () => {
    expect(await shelf.block0()).toMatchObject({ format: 7 });
    expect(await shelf.find(node, 'author', 7)).toEqual({ ids: ofAuthor(7), index: undefined, coming: ['author'] });
    expect((await shelf.find(node, 'pages', 3)).coming).toEqual([]);
    expect(await shelf.indexes(node)).toEqual([
      {
        name: 'author',
        fields: ['author'],
        unique: false,
        state: 'building',
        rowsDone: 200,
        rowsTotal: 400,
        entries: 200,
        declared: false,
      },
    ]);
    expect(await shelf.findings(node)).toEqual([]);
    await finish();
    expect(await shelf.block0()).toMatchObject({ format: 1 });
    expect((await shelf.find(node, 'author', 7)).index).toBe('author');
  });

  it('follows the rows that have entries, whichever instance merges them, and no others', async () => {
    // On both sides of where it is: rows that move, go and come, and one that has the entry that it had before.
    await shelf.write(
      node,
      'update',
      [7, 387].map((id) => ({ id, author: 3 })),
    );
    await shelf.write(node, 'update', [{ id: 27, pages: 9 }]);
    await shelf.delete(node, [47, 367]);
    await shelf.write(node, 'insert', [bookOf(-13), bookOf(407)]);
    await shelf.merge(node);
    expect(await shelf.indexes(node)).toMatchObject([{ entries: 200 }]);
    expect(await shelf.findings(node)).toEqual([]);
    await finish();
    const expected = ofAuthor(7).filter((id) => ![7, 387, 47, 367].includes(id));
    expect(await shelf.find(node, 'author', 7)).toMatchObject({ ids: [...expected, 407], index: 'author' });
    expect((await shelf.find(node, 'author', -13)).ids).toEqual([-13]);
    expect(await shelf.findings(node)).toEqual([]);
  });

  it('gets entries of many new rows at once only up to the row that the chunks have reached', async () => {
    const many = (from: number) => Array.from({ length: 500 }, (_, i) => bookOf(from + i));
    await shelf.write(node, 'insert', many(1000));
    await shelf.merge(node);
    expect(await shelf.indexes(node)).toMatchObject([{ entries: 200 }]);
    expect(await shelf.findings(node)).toEqual([]);
    await shelf.write(node, 'insert', many(-1000));
    await shelf.merge(node);
    expect(await shelf.indexes(node)).toMatchObject([{ entries: 700 }]);
    expect(await shelf.findings(node)).toEqual([]);
    await finish();
    expect((await shelf.find(node, 'author', 7)).ids).toEqual([
      ...ofAuthor(7),
      ...ofAuthor(7, 500).map((id) => id + 1000),
    ]);
    expect(await shelf.findings(node)).toEqual([]);
  });

  it('loses a chunk to a merge that comes first, or with its process', async () => {
    const merged = async (): Promise<void> => {
      await node.db.transaction((tx) => tx.upsert('books', { ...bookOf(399), author: 7 }));
      await node.db.checkpoint();
    };
    expect(await stepper.step(byAuthor, { rows: 60 }, merged)).toBe('lost');
    await stepper.step(byAuthor, { rows: 60, crashes: true });
    expect(await shelf.added()).toMatchObject([{ rows: 200 }]);
    await finish();
    expect((await shelf.find(node, 'author', 7)).ids).toEqual([...ofAuthor(7), 399]);
    expect(await shelf.findings(node)).toEqual([]);
  });

  it('is kept by gc, and by a copy, which goes on with it', async () => {
    await shelf.run(node.db.gc({ loopGraceMs: 0 }));
    expect(await shelf.findings(node)).toEqual([]);
    const copy = new Shelf();
    await shelf.run(node.db.clone({ driver: copy.store, prefix }));
    await finish();
    const other = await copy.open(5, plain, turns);
    expect(await copy.indexes(other)).toMatchObject([{ state: 'building', rowsDone: 200 }]);
    // Nobody has registered it there: what there is to know of it is stored.
    await copy.pass(5000);
    expect(await copy.find(other, 'author', 7)).toEqual({ ids: ofAuthor(7), index: 'author', coming: [] });
    expect(await copy.findings(other)).toEqual([]);
  });

  it('is rewritten with everything else where encryption is turned on, and goes on', async () => {
    await shelf.run(node.db.stop());
    await shelf.run(stepper.db.stop());
    const other = await shelf.open(5, plain, { ...turns, encryption: { ...keys(1), acceptUnencrypted: true } });
    const before = (await shelf.indexes(other))[0]?.rowsDone;
    expect(before).toBe(200);
    expect((await shelf.run(other.db.rewrite())).failed).toEqual([]);
    expect((await shelf.run(other.db.rewrite({ dryRun: true }))).unencrypted).toBe(0);
    await shelf.pass(5000);
    expect(await shelf.find(other, 'author', 7)).toEqual({ ids: ofAuthor(7), index: 'author', coming: [] });
    expect(await shelf.findings(other)).toEqual([]);
    const blocks = (await shelf.keys()).filter((key) => key.startsWith('indexes/books/author/'));
    for (const key of blocks) {
      const object = await shelf.store.get(`${prefix}/${key}`);
      expect(object.status === 'found' && isEnvelope(object.bytes)).toBe(true);
    }
    expect(blocks.length).toBeGreaterThan(1);
  });

  it('is found to be damaged, and begun again by repair()', async () => {
    const block = (await shelf.keys()).find((key) => key.startsWith('indexes/books/author/'));
    await shelf.store.delete([`${prefix}/${block}`]);
    const again = await shelf.open(2, plain, { blockSizeBytes: 512 });
    const { ok, findings } = await shelf.run(again.db.verify({ deep: true }));
    expect(ok).toBe(false);
    expect(findings).toMatchObject([{ table: 'books', index: 'author' }]);
    const { repaired } = await shelf.run(again.db.repair());
    expect(repaired).toEqual([{ table: 'books', index: 'author', entries: 0 }]);
    expect(await shelf.added()).toMatchObject([{ rows: 0, built: '', root: null }]);
    expect(await shelf.findings(again)).toEqual([]);
    await shelf.write(again, 'insert', [bookOf(-13), bookOf(413)]);
    await shelf.merge(again);
    expect(await shelf.added()).toMatchObject([{ rows: 0, built: '', root: null }]);
    expect(await shelf.findings(again)).toEqual([]);
    const last = new Stepper(shelf);
    await last.open();
    while ((await last.step(byAuthor, { rows: 60 })) !== undefined);
    expect((await shelf.find(again, 'author', 7)).index).toBe('author');
    expect(await shelf.findings(again)).toEqual([]);
  });

  it('is found to hold an entry too few', async () => {
    await shelf.replaceBlock0(({ tables, generation }) => ({
      generation: generation + 1,
      tables: tables.map((table) => ({
        ...table,
        versions: table.versions.map((version) => ({
          ...version,
          ...(version.added && { added: version.added.map((index) => ({ ...index, built: 'gAAAyQ==' })) }),
        })),
      })),
    }));
    await shelf.run(node.db.refresh());
    expect(await shelf.findings(node)).toEqual([
      expect.stringMatching(/has 200 entries, and the table \d+ rows as far as it/),
    ]);
  });
});
