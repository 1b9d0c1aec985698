/** Earlier states that are kept on request: each exactly as it was, for as long as was asked for, and no longer. */
import { describe, expect, it } from 'vitest';
import type { Database, StoreDbOptions } from '../../../src/index.ts';
import { Types } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { createDatabase, VirtualEnvironment } from '../../../src/testing/index.ts';

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar }, file: { typeId: Types.blob } },
  primaryKey: 'id',
  indexes: ['text'],
} as const;

const hourMs = 3_600_000;

class World {
  readonly environment: VirtualEnvironment = new VirtualEnvironment({ seed: 1 });
  readonly driver: MemoryDriver = new MemoryDriver({ environment: this.environment });

  async open(options: Partial<StoreDbOptions> = {}): Promise<Database> {
    const given = { dbPrefix: 'db', nodeId: 0, driver: this.driver, logLevel: 'silent', ...options } as const;
    const db = createDatabase({ writeForwardInterval: 86_400_000, blockSizeBytes: 512, ...given }, this.environment);
    db.registerSchema(notes);
    await this.run(db.start());
    return db;
  }

  run<T>(call: Promise<T>): Promise<T> {
    return this.environment.run(call);
  }

  /** Replaces all rows, and merges. */
  async write(db: Database, text: string): Promise<void> {
    const batch = db.batch();
    for (let id = 0; id < 60; id++) void batch.upsert(notes, { id, text: `${text} ${id}`, file: null });
    await this.run(batch.flush());
    await this.run(db.checkpoint());
  }

  async textAt(db: Database, state: number | Date): Promise<string | undefined> {
    const snapshot = await this.run(db.at(state));
    const row = await this.run(snapshot.get(notes, 7));
    const all = await this.run(
      snapshot
        .query(notes)
        .where('text', '=', row?.text ?? '')
        .execute(),
    );
    expect(all.map(({ id }) => id)).toEqual(row === undefined ? [] : [7]);
    await this.run(snapshot.release());
    return row?.text?.replace(' 7', '');
  }

  async names(folder: string): Promise<string[]> {
    return (await this.driver.list(`db/${folder}`)).entries.map(({ key }) => key);
  }
}

describe('history', () => {
  it('gives every state of its window, by generation and by time, after any run of gc', async () => {
    const world = new World();
    const db = await world.open({ history: '1d' });
    const known: { readonly generation: number; readonly at: Date; readonly text: string }[] = [];
    for (let i = 0; i < 20; i++) {
      await world.write(db, `text ${i}`);
      const generation = db.stats().log?.generation ?? -1;
      await world.environment.advance(hourMs / 2);
      known.push({ generation, at: new Date(world.environment.now()), text: `text ${i}` });
      await world.environment.advance(hourMs / 2);
      if (i % 5 === 4) await world.run(db.gc({ loopGraceMs: 0, logRetentionMs: 0 }));
    }
    for (const { generation, at, text } of known) {
      expect(await world.textAt(db, generation)).toBe(text);
      expect(await world.textAt(db, at)).toBe(text);
    }
    expect((await world.run(db.verify())).findings).toEqual([]);
    await world.run(db.stop());
  });

  it('is shown by replicas too, which write nothing for it', async () => {
    const world = new World();
    const db = await world.open({ history: '5h' });
    const known: { readonly generation: number; readonly at: Date }[] = [];
    for (let i = 0; i < 4; i++) {
      await world.write(db, `text ${i}`);
      known.push({ generation: db.stats().log?.generation ?? -1, at: new Date(world.environment.now()) });
      await world.environment.advance(hourMs);
    }
    const replica = await world.open({ role: 'replica' });
    for (const [i, { generation, at }] of known.entries()) {
      expect(await world.textAt(replica, generation)).toBe(`text ${i}`);
      expect(await world.textAt(replica, at)).toBe(`text ${i}`);
    }
    const first = await world.run(replica.at(1));
    expect([first.generation, (await world.run(first.get(notes, 7)))?.text]).toEqual([1, 'text 0 7']);
    await world.environment.advance(12 * hourMs);
    for (let i = 4; i < 8; i++) await world.write(db, `text ${i}`);
    // It is not abandoned, however long it lasts, until its blocks are collected.
    expect((await world.run(first.get(notes, 7)))?.text).toBe('text 0 7');
    const garbage = await world.run(replica.gc({ dryRun: true, loopGraceMs: 0 }));
    expect(garbage.garbage.length).toBeGreaterThan(0);
    await world.run(db.gc({ loopGraceMs: 0 }));
    // Blocks may still be in memory: another replica has none.
    const other = await world.open({ role: 'replica' });
    await expect(world.run(other.at(1))).rejects.toMatchObject({ code: 'SNAPSHOT_EXPIRED' });
    await expect(world.run(first.query(notes).execute())).rejects.toMatchObject({ code: 'SNAPSHOT_EXPIRED' });
    const { put, putLost, delete: deletes } = replica.stats().requests;
    expect([put, putLost, deletes]).toEqual([0, 0, 0]);
    for (const each of [other, replica, db]) await world.run(each.stop());
  });

  it('ends with its window', async () => {
    const world = new World();
    const db = await world.open({ history: '5h' });
    const times: Date[] = [];
    for (let i = 0; i < 12; i++) {
      await world.write(db, `text ${i}`);
      times.push(new Date(world.environment.now() + hourMs / 2));
      await world.environment.advance(hourMs);
    }
    await world.run(db.gc({ loopGraceMs: 0 }));
    // Of the states that were in force within the last five hours, all.
    for (const i of [7, 8, 9, 10, 11]) expect(await world.textAt(db, times[i] as Date)).toBe(`text ${i}`);
    for (const i of [0, 3, 5]) {
      await expect(world.run(db.at(times[i] as Date))).rejects.toMatchObject({ code: 'SNAPSHOT_EXPIRED' });
      await expect(world.run(db.at(i + 1))).rejects.toMatchObject({ code: 'SNAPSHOT_EXPIRED' });
    }
    expect((await world.names('history/')).length).toBeLessThan(7);
    await world.run(db.stop());
  });

  it('is over for a state that a late write of its object brings back', async () => {
    const world = new World();
    const db = await world.open({ history: '1h' });
    // So many definitions are an object of their own.
    for (let i = 0; i < 40; i++) db.registerSchema({ ...notes, name: `notes${i}` });
    for (let i = 0; i < 4; i++) {
      const batch = db.batch();
      for (let table = 0; table < 40; table++) void batch.upsert(`notes${table}`, { id: i, text: 'a', file: null });
      await world.run(batch.flush());
      await world.write(db, `text ${i}`);
    }
    const [name = ''] = (await world.names('history/')).slice(1);
    const put = await world.run(world.driver.get(name));
    const bytes = put.status === 'found' ? put.bytes : new Uint8Array();
    expect((await world.names('data/_5fcatalogue')).length).toBeGreaterThan(1);
    await world.environment.advance(3 * hourMs);
    await world.write(db, 'later');
    await world.run(db.gc({ loopGraceMs: 0 }));
    expect(await world.names('history/')).not.toContain(name);
    await world.run(world.driver.put(name, bytes, { if: 'any' }));
    const generation = Number.parseInt(name.split('/').at(-1) ?? '', 10);
    await expect(world.run(db.at(generation))).rejects.toMatchObject({ code: 'SNAPSHOT_EXPIRED' });
    await world.run(db.stop());
  });

  it('is a setting of the database that every node follows, and that stays', async () => {
    const world = new World();
    const first = await world.open({ history: '1d' });
    const second = await world.open({ nodeId: 1 });
    await world.write(second, 'by another node');
    const { generation } = second.stats().log ?? { generation: -1 };
    await world.write(second, 'later');
    await world.run(first.stop());
    const third = await world.open({ nodeId: 2 });
    await world.write(third, 'last');
    await world.run(third.gc({ loopGraceMs: 0 }));
    expect(await world.textAt(third, generation)).toBe('by another node');
    expect(await world.textAt(third, generation + 1)).toBe('later');
    await world.run(third.stop());
    const fourth = await world.open({ history: 'off' });
    await world.run(fourth.gc({ loopGraceMs: 0 }));
    await expect(world.run(fourth.at(generation))).rejects.toMatchObject({ code: 'SNAPSHOT_EXPIRED' });
    expect(await world.names('history/')).toEqual([]);
    await world.run(fourth.stop());
    await world.run(second.stop());
  });

  it('keeps the blobs that its states show, and no longer', async () => {
    const world = new World();
    const db = await world.open({ history: '5h' });
    const batch = db.batch();
    void batch.insert(notes, { id: 1, text: 'with a file', file: db.Blob('the bytes') });
    await world.run(batch.flush());
    await world.run(db.checkpoint());
    const { generation } = db.stats().log ?? { generation: -1 };
    await world.environment.advance(hourMs);
    void batch.delete(notes, 1);
    await world.run(batch.flush());
    await world.run(db.checkpoint());
    await world.run(db.gc({ loopGraceMs: 0 }));
    const snapshot = await world.run(db.at(generation));
    const row = await world.run(snapshot.get(notes, 1));
    expect(await world.run(snapshot.getBlob(row?.file ?? '').getString())).toBe('the bytes');
    await world.run(snapshot.release());
    await world.environment.advance(6 * hourMs);
    await world.write(db, 'later');
    // The first run moves the window, after which nothing shows the blob.
    await world.run(db.gc({ loopGraceMs: 0 }));
    await world.run(db.checkpoint());
    await world.run(db.gc({ loopGraceMs: 0 }));
    expect(await world.names('blobs/')).toEqual([]);
    await world.run(db.stop());
  });

  it('costs one put a merge, and none while it is off', async () => {
    const world = new World();
    const db = await world.open();
    await world.write(db, 'without');
    const before = db.stats().requests.put;
    await world.write(db, 'without, again');
    const without = db.stats().requests.put - before;
    await world.run(db.stop());
    const kept = await world.open({ history: '1d' });
    const start = kept.stats().requests.put;
    await world.write(kept, 'with, the second time');
    expect(kept.stats().requests.put - start).toBe(without + 1);
    await world.run(kept.stop());
  });

  it('that lacks a state stops garbage from being collected', async () => {
    const world = new World();
    const db = await world.open({ history: '1d' });
    for (let i = 0; i < 4; i++) await world.write(db, `text ${i}`);
    const names = await world.names('history/');
    await world.driver.delete([names[1] as string]);
    const all = await world.names('');
    await expect(world.run(db.gc({ loopGraceMs: 0, logRetentionMs: 0 }))).rejects.toMatchObject({ code: 'CORRUPTION' });
    expect(await world.names('')).toEqual(all);
    await world.run(db.stop());
  });

  it('can be read although an index was dropped, and another one was added by its name', async () => {
    const world = new World();
    const db = await world.open({ history: '1d', writeForwardInterval: 1000 });
    await world.write(db, 'old');
    const snapshot = await world.run(db.snapshot());
    const { generation } = snapshot;
    db.registerSchema({ ...notes, indexes: [] });
    await world.run(db.dropIndex('notes', 'text'));
    db.registerSchema({ ...notes, indexes: [{ fields: ['id', 'text'], name: 'text' }] });
    await world.write(db, 'new');
    for (let i = 0; i < 20; i++) {
      await world.environment.advance(60_000);
      await world.run(db.checkpoint());
    }
    expect(await world.run(db.indexes('notes'))).toMatchObject([{ fields: ['id', 'text'], state: 'ready' }]);
    const earlier = await world.run(db.at(generation));
    for (const state of [snapshot, earlier]) {
      expect(await world.run(state.get(notes, 7))).toMatchObject({ text: 'old 7' });
      const found = state.query(notes).where('text', '=', 'old 8');
      expect(await world.run(found.execute())).toMatchObject([{ id: 8 }]);
      expect(await world.run(state.query(notes).count())).toBe(60);
    }
    expect(await world.run(db.query(notes).where('text', '=', 'new 8').count())).toBe(1);
    await world.run(db.stop());
  });

  it('refuses states that make no sense', async () => {
    const world = new World();
    const db = await world.open();
    for (const state of [-1, 1.5, Number.NaN, new Date(Number.NaN), '2026-01-01'] as number[]) {
      await expect(world.run(db.at(state))).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    }
    await expect(world.run(db.at(99))).rejects.toMatchObject({ code: 'SNAPSHOT_EXPIRED' });
    await expect(world.run(db.at(new Date(0)))).rejects.toMatchObject({ code: 'SNAPSHOT_EXPIRED' });
    await world.run(db.stop());
    await expect(world.open({ history: '7 days' })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
  });
});
