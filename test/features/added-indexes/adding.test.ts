/** Indexes that are added to a version of a table: made in the background, and used once all entries are there. */
import { describe, expect, it } from 'vitest';
import { allBooks, bookOf, booksWith, byAuthor, ofAuthor, plain, Shelf, turns } from './shelf.ts';

describe('registering a version with more indexes', () => {
  it('has them made in the background, and readable meanwhile', async () => {
    const shelf = new Shelf();
    const node = await shelf.open(1, plain);
    await shelf.write(node, 'insert', allBooks);
    await shelf.merge(node);
    node.db.registerSchema(booksWith('author', { fields: ['pages', 'title'], name: 'sizes' }));
    expect(await shelf.find(node, 'author', 7)).toEqual({ ids: ofAuthor(7), index: undefined, coming: [] });
    expect(await shelf.indexes(node)).toMatchObject([
      {
        name: 'author',
        fields: ['author'],
        unique: false,
        state: 'waiting',
        rowsDone: 0,
        rowsTotal: 400,
        declared: true,
      },
      { name: 'sizes', fields: ['pages', 'title'], state: 'waiting' },
    ]);
    await shelf.pass(4000);
    expect(await shelf.find(node, 'author', 7)).toEqual({ ids: ofAuthor(7), index: 'author', coming: [] });
    expect((await shelf.find(node, 'pages', 3)).index).toBe('sizes');
    expect(await shelf.indexes(node)).toMatchObject([
      { name: 'author', state: 'ready', rowsDone: 400, entries: 400, declared: true },
      { name: 'sizes', state: 'ready', rowsDone: 400, entries: 400, declared: true },
    ]);
    expect(await shelf.added()).toEqual([]);
    expect(await shelf.findings(node)).toEqual([]);
    await shelf.write(node, 'update', [{ id: 7, author: 8 }]);
    await shelf.merge(node);
    expect((await shelf.find(node, 'author', 7)).ids).toEqual(ofAuthor(7).slice(1));
    expect(await shelf.findings(node)).toEqual([]);
  });

  it('does it at start() too, and nodes with the old definition use them as well', async () => {
    const shelf = new Shelf();
    const old = await shelf.open(1, plain);
    await shelf.write(old, 'insert', allBooks);
    await shelf.merge(old);
    const next = await shelf.open(2, byAuthor);
    await shelf.pass(6000);
    for (const node of [old, next]) {
      expect(await shelf.find(node, 'author', 7)).toEqual({ ids: ofAuthor(7), index: 'author', coming: [] });
    }
    await shelf.run(next.db.stop());
    await shelf.write(old, 'insert', [bookOf(407)]);
    await shelf.merge(old);
    expect((await shelf.find(old, 'author', 7)).ids).toEqual([...ofAuthor(7), 407]);
    expect(await shelf.findings(old)).toEqual([]);
    const [status] = await shelf.indexes(old);
    expect(status).toMatchObject({ state: 'ready', declared: false });
    // It comes back, and takes nothing away.
    await shelf.run(old.db.stop());
    const again = await shelf.open(1, plain);
    await shelf.pass(4000);
    expect((await shelf.find(again, 'author', 7)).index).toBe('author');
  });

  it('also in a table without rows, and in one that only the log knows of', async () => {
    const shelf = new Shelf();
    const node = await shelf.open(1, plain, { blockSizeBytes: 1024 });
    await shelf.write(node, 'insert', [bookOf(1)]);
    await shelf.delete(node, [1]);
    const next = await shelf.open(2, byAuthor);
    await shelf.pass(3000);
    await shelf.merge(next);
    await shelf.pass(3000);
    await shelf.write(node, 'insert', allBooks);
    await shelf.merge(next);
    expect(await shelf.find(next, 'author', 7)).toEqual({ ids: ofAuthor(7), index: 'author', coming: [] });
    expect(await shelf.findings(next)).toEqual([]);
  });

  it('takes those on some rows, and on functions', async () => {
    const shelf = new Shelf();
    const node = await shelf.open(1, plain);
    await shelf.write(node, 'insert', allBooks);
    await shelf.merge(node);
    node.db.registerFunction('parity', ({ id }) => (id as number) % 2, 1);
    node.db.registerSchema(
      booksWith({ fields: ['author'], where: { pages: 3 }, name: 'threes' }, { function: 'parity', typeId: 5 }),
    );
    await shelf.pass(6000);
    const threes = allBooks.filter(({ pages }) => pages === 3).map(({ id }) => id);
    expect(await shelf.indexes(node)).toMatchObject([
      { name: 'threes', where: { pages: 3 }, state: 'ready', rowsDone: 400, entries: threes.length },
      { name: 'parity', function: 'parity', fields: [], state: 'ready', entries: 400 },
    ]);
    const query = node.db.query('books').where('author', '=', 7).where('pages', '=', 3);
    const expected = allBooks.filter(({ author, pages }) => author === 7 && pages === 3).map(({ id }) => id);
    expect((await shelf.run(query.execute())).map(({ id }) => id)).toEqual(expected);
    const { index, alternatives } = await shelf.run(query.explain());
    expect([index, ...alternatives.map((other) => other.index)]).toContain('threes');
    expect((await shelf.find(node, 'parity', 1)).index).toBe('parity');
    expect(await shelf.findings(node)).toEqual([]);
  });

  it('refuses an index that is another one in the table', async () => {
    const shelf = new Shelf();
    const node = await shelf.open(1, byAuthor);
    await shelf.write(node, 'insert', allBooks);
    await shelf.merge(node);
    const other = booksWith({ fields: ['pages'], name: 'author' });
    expect(() => node.db.registerSchema(other)).toThrow(/Index 'author' is another one there: give yours another name/);
    const unique = booksWith({ fields: ['author'], unique: true });
    expect(() => node.db.registerSchema(unique)).toThrow(/Index 'author' is another one there/);
    await expect(shelf.open(2, other)).rejects.toThrow(/Index 'author' is another one there/);
    expect((await shelf.indexes(node)).map(({ name }) => name)).toEqual(['author']);
  });

  it('a bookmark goes on', async () => {
    const shelf = new Shelf();
    const node = await shelf.open(1, plain);
    await shelf.write(node, 'insert', allBooks);
    await shelf.merge(node);
    const query = node.db.query('books').where('author', '=', 7);
    const { rows, next } = await shelf.run(query.page({ size: 3 }));
    node.db.registerSchema(byAuthor);
    await shelf.pass(5000);
    const after = await shelf.run(node.db.query('books').where('author', '=', 7).page({ size: 100, after: next }));
    expect([...rows, ...after.rows].map(({ id }) => id)).toEqual(ofAuthor(7));
  });
});

describe('while an index is being made', () => {
  it('a replica has nothing to do with it, and shows how far it is', async () => {
    const shelf = new Shelf();
    const node = await shelf.open(1, plain);
    await shelf.write(node, 'insert', allBooks);
    await shelf.merge(node);
    const replica = await shelf.open(3, byAuthor, { ...turns, role: 'replica' });
    await shelf.pass(5000);
    expect(await shelf.indexes(replica)).toMatchObject([{ name: 'author', state: 'waiting', declared: true }]);
    expect((await shelf.find(replica, 'author', 7)).ids).toEqual(ofAuthor(7));
    node.db.registerSchema(byAuthor);
    await shelf.pass(5000);
    expect(await shelf.indexes(replica)).toMatchObject([{ name: 'author', state: 'ready' }]);
    expect(await shelf.find(replica, 'author', 7)).toEqual({ ids: ofAuthor(7), index: 'author', coming: [] });
  });

  it('a migration of the table comes first', async () => {
    const shelf = new Shelf();
    const node = await shelf.open(1, plain);
    await shelf.write(node, 'insert', allBooks);
    await shelf.merge(node);
    const next = await shelf.open(2, { ...plain, version: 2 });
    await shelf.write(next, 'update', [{ id: 3, author: 7 }]);
    await shelf.merge(next);
    node.db.registerSchema(byAuthor);
    await shelf.pass(5000);
    expect(await shelf.indexes(node)).toMatchObject([
      {
        name: 'author',
        state: 'waiting',
        problem: 'It waits for the end of the migration of table books to version 2.',
      },
    ]);
    await shelf.run(node.db.cancelMigration('books'));
    await shelf.pass(5000);
    expect(await shelf.indexes(node)).toMatchObject([{ name: 'author', state: 'ready' }]);
    expect(await shelf.findings(node)).toEqual([]);
  });

  it('a next version of the table keeps its definition', async () => {
    const shelf = new Shelf();
    const node = await shelf.open(1, plain);
    await shelf.write(node, 'insert', allBooks);
    await shelf.merge(node);
    const two = { ...plain, version: 2 };
    const next = await shelf.open(2, two);
    await shelf.run(next.db.setTargetSchemaVersion('books', 2));
    expect(() => next.db.registerSchema({ ...byAuthor, version: 2 })).toThrow(/once no migration to it is under way/);
    await shelf.pass(5000);
    await shelf.run(node.db.stop());
    await shelf.run(next.db.finishMigration('books'));
    next.db.registerSchema({ ...byAuthor, version: 2 });
    await shelf.pass(5000);
    expect(await shelf.find(next, 'author', 7)).toEqual({ ids: ofAuthor(7), index: 'author', coming: [] });
    expect(await shelf.findings(next)).toEqual([]);
  });

  it('snapshots and earlier states show the earlier schema', async () => {
    const shelf = new Shelf();
    const node = await shelf.open(1, plain, { ...turns, history: '1d' });
    await shelf.write(node, 'insert', allBooks);
    await shelf.merge(node);
    const { generation } = await shelf.block0();
    const snapshot = await shelf.run(node.db.snapshot());
    node.db.registerSchema(byAuthor);
    await shelf.pass(5000);
    await shelf.write(node, 'update', [{ id: 7, author: 8 }]);
    await shelf.merge(node);
    const earlier = await shelf.run(node.db.at(generation));
    for (const state of [snapshot, earlier]) {
      const query = state.query('books').where('author', '=', 7);
      expect((await shelf.run(query.execute())).map(({ id }) => id)).toEqual(ofAuthor(7));
      const { access, index, alternatives } = await shelf.run(query.explain());
      expect([access, index, alternatives]).toEqual(['table', undefined, []]);
    }
    expect((await shelf.find(node, 'author', 7)).ids).toEqual(ofAuthor(7).slice(1));
    await shelf.run(snapshot.release());
    await shelf.run(earlier.release());
  });
});
