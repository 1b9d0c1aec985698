/** A migration as those see it who take no part in it: replicas, and readers of the feed of changes. */
import { describe, expect, it } from 'vitest';
import { ReadOnlyError } from '../../../src/base/errors.ts';
import { FeedReader } from '../changes/feed-reader.ts';
import { caught } from '../protocol/nodes.ts';
import { Fleet } from './fleet.ts';
import { users1, users2 } from './versions.ts';

const ann = { id: 1, name: 'Ann', age: 31, old: 'a' };
const newAnn = { id: 1, name: 'Ann', age: 31, email: null, level: 3 };

describe('a replica with the new version', () => {
  it('reads its own rows in every phase, and neither asks for a migration nor works at one', async () => {
    const fleet = new Fleet();
    const v1 = await fleet.open(1, [users1]);
    await fleet.write(v1, 'insert', [ann]);
    await fleet.run(v1.db.checkpoint());
    const replica = await fleet.open(7, [users2], { role: 'replica' });
    expect(await fleet.rows(replica)).toEqual([newAnn]);
    const { db } = replica;
    expect(await fleet.run(caught(db.setTargetSchemaVersion('users', 2)))).toBeInstanceOf(ReadOnlyError);
    expect(await fleet.run(caught(db.cancelMigration('users')))).toBeInstanceOf(ReadOnlyError);

    const v2 = await fleet.open(2, [users2]);
    await fleet.run(v2.db.setTargetSchemaVersion('users', 2));
    await fleet.run(v2.db.stop());
    replica.driver.takeLines();
    await fleet.advance(60_000);
    await fleet.run(replica.db.refresh());
    const wrote = replica.driver.takeLines().filter((line) => !line.startsWith('get'));
    expect(wrote).toEqual([]);
    expect(await fleet.run(replica.db.migrationStatus('users'))).toMatchObject({ state: 'building', rowsDone: 0 });
    expect(await fleet.rows(replica)).toEqual([newAnn]);

    const again = await fleet.open(2, [users2]);
    await fleet.advance(60_000);
    await fleet.run(v1.db.stop());
    await fleet.run(again.db.finishMigration('users'));
    await fleet.advance(60_000);
    expect(await fleet.rows(replica)).toEqual([newAnn]);
    expect(await fleet.run(again.db.migrationStatus('users'))).toMatchObject({ state: 'none', from: 2 });
    expect(replica.log.filter(({ message }) => /migration/i.test(message))).toEqual([]);
    expect(replica.log.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
  });
});

describe('the feed of changes during a migration', () => {
  it('reports each change once, in the version of the reader if the commit holds it', async () => {
    const fleet = new Fleet();
    const v1 = await fleet.open(1, [users1]);
    await fleet.write(v1, 'insert', [ann]);
    const v2 = await fleet.open(2, [users2]);
    const old = new FeedReader(v1.db.changes({ after: 0 }));
    const young = new FeedReader(v2.db.changes({ after: 0 }));
    await fleet.write(v2, 'insert', [{ id: 2, name: 'Bob', age: 32, email: 'bob@x', level: 1 }]);
    await fleet.write(v1, 'update', [{ id: 2, name: 'Bert' }]);
    await fleet.deleteRows(v2, [1]);
    await fleet.advance(20_000);
    const bob = { id: 2, name: 'Bob', age: 32, old: null };
    expect(old.told.flatMap(({ changes }) => changes)).toEqual([
      { table: 'users', version: 1, operation: 'upsert', key: 1, row: ann },
      { table: 'users', version: 1, operation: 'upsert', key: 2, row: bob },
      { table: 'users', version: 1, operation: 'upsert', key: 2, row: { ...bob, name: 'Bert' } },
      { table: 'users', version: 1, operation: 'delete', key: 1 },
    ]);
    expect(young.told.flatMap(({ changes }) => changes)).toEqual([
      { table: 'users', version: 1, operation: 'upsert', key: 1, row: ann },
      {
        table: 'users',
        version: 2,
        operation: 'upsert',
        key: 2,
        row: { id: 2, name: 'Bob', age: 32, email: 'bob@x', level: 1 },
      },
      { table: 'users', version: 1, operation: 'upsert', key: 2, row: { ...bob, name: 'Bert' } },
      { table: 'users', version: 2, operation: 'delete', key: 1 },
    ]);
  });
});
