/** Unique indexes that are added: they hold from some commit on, for all nodes, or they fail. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { AddedIndex } from '../../../src/schema/table-shape.ts';
import { checkingOf } from '../../../src/catalog/checked-indexes.ts';
import { UniqueIndexError } from '../../../src/base/errors.ts';
import type { TestNode } from '../protocol/nodes.ts';
import { allBooks, bookOf, booksWith, byAuthor, plain, Shelf } from './shelf.ts';
import { Stepper } from './stepper.ts';

const byTitle = booksWith({ fields: ['title'], unique: true });

describe('a unique index', () => {
  it('is added in the background, and holds for all nodes then', async () => {
    const shelf = new Shelf();
    const old = await shelf.open(1, plain);
    await shelf.write(old, 'insert', allBooks);
    await shelf.merge(old);
    const next = await shelf.open(2, byTitle);
    expect(await shelf.indexes(next)).toMatchObject([
      { name: 'title', unique: true, state: 'waiting', declared: true },
    ]);
    await shelf.pass(8000);
    expect(await shelf.indexes(next)).toMatchObject([{ name: 'title', unique: true, state: 'ready', entries: 400 }]);
    expect(next.log.map(({ message }) => message)).toContain(
      'Unique index title of table books is complete, and holds from now on',
    );
    for (const node of [old, next]) {
      const batch = node.db.batch();
      void batch.insert('books', { ...bookOf(500), title: 'Book 7' });
      expect(await shelf.failure(batch.flush())).toMatchObject({ code: 'UNIQUE_INDEX', index: 'title', otherKey: 7 });
      expect((await shelf.find(node, 'title', 'Book 7')).index).toBe('title');
      expect(await shelf.findings(node)).toEqual([]);
    }
  });

  it('fails if rows have equal values, and names them; once they are corrected, it is begun again', async () => {
    const shelf = new Shelf();
    const node = await shelf.open(1, plain);
    await shelf.write(node, 'insert', allBooks);
    await shelf.write(node, 'upsert', [{ ...bookOf(333), title: 'Book 7' }]);
    await shelf.merge(node);
    node.db.registerSchema(byTitle);
    await shelf.pass(5000);
    const problem = "The rows with primary keys 7 and 333 both have 'Book 7' there.";
    expect(await shelf.indexes(node)).toMatchObject([{ name: 'title', state: 'failed', entries: 0, problem }]);
    expect(node.log.filter(({ level }) => level === 'warn').map(({ message }) => message)).toContain(
      `Unique index title cannot be added to table books. ${problem} Correct the rows, and call dropIndex(): then the index is built again.`,
    );
    const { status, reasons } = node.db.health();
    expect(status).toBe('degraded');
    expect(reasons.map(({ code, value }) => [code, value])).toEqual([['index-failed', 1]]);
    expect(reasons[0]?.message).toContain('title of table books');
    // It binds nobody, and nobody uses it.
    await shelf.write(node, 'insert', [{ ...bookOf(500), title: 'Book 8' }]);
    await shelf.merge(node);
    await shelf.pass(5000);
    expect(await shelf.indexes(node)).toMatchObject([{ state: 'failed', problem }]);
    expect(await shelf.find(node, 'title', 'Book 8')).toEqual({ ids: [8, 500], index: undefined, coming: [] });
    expect(await shelf.findings(node)).toEqual([]);
    await shelf.delete(node, [333, 500]);
    await shelf.run(node.db.dropIndex('books', 'title'));
    await shelf.pass(8000);
    expect(await shelf.indexes(node)).toMatchObject([{ state: 'ready', entries: 399 }]);
    expect(node.db.health()).toMatchObject({ status: 'ok', values: { 'index-failed': 0 } });
    expect(await shelf.findings(node)).toEqual([]);
  });
});

describe('step by step', () => {
  let shelf: Shelf;
  let node: TestNode;
  let stepper: Stepper;

  beforeEach(async () => {
    shelf = new Shelf();
    node = await shelf.open(1, plain, { blockSizeBytes: 512 });
    stepper = new Stepper(shelf);
    await stepper.open();
    await shelf.write(node, 'insert', allBooks);
    await shelf.merge(node);
    await shelf.quiet();
    while ((await stepper.step(byTitle, { rows: 200 })) !== undefined);
  });

  const step = (meanwhile?: () => Promise<void>) => shelf.run(stepper.uniqueStep(meanwhile));
  const state = async () => (await shelf.indexes(node)).map((index) => index.state);
  const again = { ...bookOf(500), title: 'Book 7' };

  it('binds nobody before the commit that says so, and everybody after it, also who has not seen it', async () => {
    expect(await state()).toEqual(['building']);
    await shelf.write(node, 'insert', [again]);
    await shelf.delete(node, [500]);
    const lagging = await shelf.open(100, plain, { blockSizeBytes: 512 });
    expect(await step()).toMatchObject({ rows: 0 });
    expect(await shelf.added()).toMatchObject([{ built: null }]);
    // Its view is from before the commit, so its put loses the slot.
    const batch = lagging.db.batch();
    void batch.insert('books', again);
    expect(await shelf.failure(batch.flush())).toBeInstanceOf(UniqueIndexError);
    // It may do all else.
    batch.clear();
    await shelf.write(lagging, 'update', [{ id: 7, title: 'Book 7b' }]);
    await shelf.write(lagging, 'insert', [again]);
    while ((await step()) !== undefined);
    expect(await state()).toEqual(['ready']);
    await expect(shelf.write(node, 'upsert', [{ ...again, id: 501 }])).rejects.toBeInstanceOf(UniqueIndexError);
    await shelf.merge(node);
    expect(await shelf.findings(node)).toEqual([]);
  });

  it('counts rows that agree in a commit right before it', async () => {
    // What the step looks through has nothing of it.
    await shelf.write(node, 'insert', [again]);
    expect(await step()).toMatchObject({ rows: 0 });
    await step();
    expect(await state()).toEqual(['failed']);
    expect(await shelf.findings(node)).toEqual([]);
  });

  it('does not hold because of a commit that is not merged yet', async () => {
    const { engine } = stepper.instance;
    await shelf.write(node, 'insert', [again]);
    await shelf.run(stepper.db.refresh());
    const added = engine?.view.table('books')?.added[0] as AddedIndex;
    // As if the process had died right after it.
    const signal = new AbortController().signal;
    const commit = { signal, sizeBytes: 1, prepare: async () => ({ changes: [checkingOf('books', added)] }) };
    await shelf.run(engine?.append(commit) ?? Promise.resolve());
    expect(await step()).toMatchObject({ rows: 0 });
    expect(await state()).toEqual(['building']);
    await step();
    expect(await state()).toEqual(['failed']);
    expect(await shelf.findings(node)).toEqual([]);
  });

  it('lets no rows come that agree while it is being stored that none do', async () => {
    await step();
    const failures: unknown[] = [];
    const meanwhile = async (): Promise<void> => {
      const batch = node.db.batch();
      void batch.insert('books', again);
      await batch.flush().catch((error: unknown) => failures.push(error));
    };
    await step(meanwhile);
    expect(failures).toEqual([expect.any(UniqueIndexError)]);
    expect(await state()).toEqual(['ready']);
    await shelf.merge(node);
    expect(await shelf.findings(node)).toEqual([]);
  });

  it('is not failed for rows that are put right in the log', async () => {
    await shelf.write(node, 'insert', [again]);
    await shelf.merge(node);
    await shelf.write(node, 'update', [{ id: 7, title: 'Book 7b' }]);
    expect(await step()).toMatchObject({ rows: 0 });
    expect(await state()).toEqual(['building']);
    while ((await step()) !== undefined);
    expect(await state()).toEqual(['ready']);
  });

  it('a commit for an index that was dropped says nothing of one that is added again', async () => {
    await step();
    await shelf.run(node.db.dropIndex('books', 'title'));
    await shelf.write(node, 'insert', [again]);
    await shelf.merge(node);
    while ((await stepper.step(byTitle, { rows: 200 })) !== undefined);
    await shelf.run(node.db.refresh());
    await shelf.write(node, 'insert', [{ ...again, id: 501 }]);
    await shelf.delete(node, [501, 500]);
    while ((await step()) !== undefined);
    expect(await state()).toEqual(['ready']);
  });

  it('goes with the version that a migration retires, and binds the version that comes up while it lasts', async () => {
    await step();
    const next = await shelf.open(2, { ...plain, version: 2 }, { blockSizeBytes: 512 });
    const batch = next.db.batch();
    void batch.insert('books', again);
    expect(await shelf.failure(batch.flush())).toBeInstanceOf(UniqueIndexError);
    batch.clear();
    await shelf.write(next, 'update', [{ id: 7, pages: 1 }]);
    await shelf.merge(next);
    expect(await state()).toEqual(['building']);
    expect(await shelf.findings(next)).toEqual([]);
  });
});

describe('dropIndex()', () => {
  it('drops an index that the definition has no more, of every kind', async () => {
    const shelf = new Shelf();
    const all = booksWith('author', { fields: ['title'], unique: true }, { function: 'parity', typeId: 5 });
    const node = await shelf.open(1, all, { blockSizeBytes: 512 });
    node.db.registerFunction('parity', ({ id }) => (id as number) % 2, 1);
    await shelf.write(node, 'insert', allBooks);
    await shelf.merge(node);
    await expect(shelf.run(node.db.dropIndex('books', 'author'))).rejects.toThrow(
      /is in the definition of table 'books' that is registered here, so it would be added again/,
    );
    node.db.registerSchema(plain);
    expect((await shelf.indexes(node)).map(({ name, state, declared }) => [name, state, declared])).toEqual([
      ['author', 'ready', false],
      ['title', 'ready', false],
      ['parity', 'ready', false],
    ]);
    for (const name of ['author', 'title', 'parity']) await shelf.run(node.db.dropIndex('books', name));
    expect(await shelf.indexes(node)).toEqual([]);
    expect(await shelf.block0()).toMatchObject({ format: 1 });
    await shelf.write(node, 'insert', [{ ...bookOf(500), title: 'Book 7' }]);
    await shelf.merge(node);
    expect((await shelf.find(node, 'title', 'Book 7')).ids).toEqual([7, 500]);
    expect((await shelf.keys()).some((key) => key.startsWith('indexes/books/'))).toBe(true);
    await shelf.run(node.db.gc({ loopGraceMs: 0 }));
    expect((await shelf.keys()).some((key) => key.startsWith('indexes/books/'))).toBe(false);
    expect(await shelf.findings(node)).toEqual([]);
  });

  it('is kept from states that were there before', async () => {
    const shelf = new Shelf();
    const node = await shelf.open(1, byAuthor, { blockSizeBytes: 512 });
    await shelf.write(node, 'insert', allBooks);
    const snapshot = await shelf.run(node.db.snapshot());
    node.db.registerSchema(plain);
    await shelf.run(node.db.dropIndex('books', 'author'));
    await shelf.run(node.db.gc({ loopGraceMs: 0 }));
    const query = snapshot.query('books').where('author', '=', 7);
    expect((await shelf.run(query.execute())).length).toBe(20);
    expect((await shelf.run(query.explain())).index).toBe('author');
    await shelf.run(snapshot.release());
  });

  it('refuses an unknown index, and a table that is migrated', async () => {
    const shelf = new Shelf();
    const node = await shelf.open(1, byAuthor, { blockSizeBytes: 512 });
    await expect(shelf.run(node.db.dropIndex('books', 'author'))).rejects.toThrow(/There is no table 'books'/);
    await shelf.write(node, 'insert', allBooks);
    await shelf.merge(node);
    await expect(shelf.run(node.db.dropIndex('books', 'auther'))).rejects.toThrow(
      /no index 'auther': did you mean author/,
    );
    await expect(shelf.run(node.db.dropIndex('_blobs', 'author'))).rejects.toThrow(/There is no table '_blobs'/);
    await expect(shelf.run(node.db.dropIndex('books', 7 as never))).rejects.toThrow(/given by its name, not by 7/);
    const next = await shelf.open(2, { ...plain, version: 2 }, { blockSizeBytes: 512 });
    await shelf.write(next, 'update', [{ id: 7, pages: 1 }]);
    await shelf.merge(next);
    await expect(shelf.run(next.db.dropIndex('books', 'author'))).rejects.toMatchObject({ code: 'MIGRATION_ACTIVE' });
    const replica = await shelf.open(3, plain, { role: 'replica' });
    await expect(shelf.run(replica.db.dropIndex('books', 'author'))).rejects.toMatchObject({ code: 'READ_ONLY' });
  });

  it('is undone by a process whose definition has the index', async () => {
    const shelf = new Shelf();
    const node = await shelf.open(1, byAuthor);
    await shelf.write(node, 'insert', allBooks);
    await shelf.merge(node);
    const other = await shelf.open(2, plain);
    await shelf.run(other.db.dropIndex('books', 'author'));
    expect(await shelf.indexes(other)).toEqual([]);
    await shelf.pass(8000);
    expect(await shelf.indexes(other)).toMatchObject([{ name: 'author', state: 'ready', declared: false }]);
    expect(await shelf.findings(node)).toEqual([]);
  });
});
