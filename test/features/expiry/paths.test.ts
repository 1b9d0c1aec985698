/** Rows that expire, on every way to them: unique indexes, loads, transactions, replicas, migrations, exports, odd times. */
import { beforeEach, describe, expect, it } from 'vitest';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { sleep } from '../../../src/base/env.ts';
import { Types } from '../../../src/format/types.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

const minuteMs = 60_000;
const invitations = {
  name: 'invitations',
  version: 1,
  fields: {
    id: { typeId: Types.int32 },
    code: { typeId: Types.varchar },
    end: { typeId: Types.int64 },
    card: { typeId: Types.blob },
  },
  primaryKey: 'id',
  indexes: ['end', { fields: ['code'], unique: true }],
  expireAfter: { field: 'end', seconds: 0 },
} as const;

let clock: VirtualEnvironment;
let store: MemoryDriver;
let db: Database;

async function open(
  nodeId = 1,
  options: Partial<StoreDbOptions> = {},
  schema: object = invitations,
): Promise<Database> {
  const environment = clock.fork({ seed: `node ${nodeId}` });
  const driver = environment.connect(store);
  const given = { dbPrefix: 'db', nodeId, logLevel: 'silent', driver, blockSizeBytes: 1024, ...options } as const;
  const opened = createDatabase({ writeForwardInterval: 5000, ...given }, environment);
  opened.registerSchema(schema as typeof invitations);
  await clock.run(opened.start());
  return opened;
}

interface Given {
  readonly id: number;
  readonly code?: string;
  readonly minutes: number | null;
}

async function insert(on: Database, ...rows: readonly Given[]): Promise<void> {
  const batch = on.batch();
  for (const { id, code = `code ${id}`, minutes } of rows) {
    const end = minutes === null ? null : clock.now() + minutes * minuteMs;
    void batch.insert(invitations, { id, code, end, card: id === 9 ? on.Blob('card') : null });
  }
  await clock.run(batch.flush());
}

async function ids(on: Database): Promise<number[]> {
  return (await clock.run(on.query(invitations).execute())).map(({ id }) => id);
}

/** The ids of the rows that are stored, expired or not: a replica whose clock stands in 1970 shows them. */
async function storedIds(schema: object = invitations): Promise<number[]> {
  const driver = clock.fork({ seed: 'raw' }).connect(store);
  const options = { dbPrefix: 'db', nodeId: 99, logLevel: 'silent', role: 'replica' } as const;
  const raw = createDatabase({ ...options, driver }, clock.fork({ seed: 'raw', startMs: 0 }));
  raw.registerSchema(schema as typeof invitations);
  await clock.run(raw.start());
  const found = await ids(raw);
  await clock.run(raw.stop());
  return found;
}

beforeEach(async () => {
  clock = new VirtualEnvironment({ seed: 'store' });
  store = new MemoryDriver({ environment: clock });
  db = await open();
});

describe('a unique index of a table whose rows expire', () => {
  it.each(['log', 'trees'])(
    'lets a row take the values of one that has expired, which goes at once, from the %s',
    async (place) => {
      await insert(
        db,
        { id: 1, code: 'a', minutes: 1 },
        { id: 2, code: 'b', minutes: 1 },
        { id: 3, code: 'c', minutes: 9 },
      );
      if (place === 'trees') await clock.run(db.checkpoint());
      await clock.advance(2 * minuteMs);
      const { position } = db;
      await insert(db, { id: 4, code: 'a', minutes: 5 }, { id: 5, code: 'b', minutes: 5 });
      await expect(insert(db, { id: 6, code: 'c', minutes: 5 })).rejects.toMatchObject({ code: 'UNIQUE_INDEX' });
      await expect(insert(db, { id: 6, code: 'a', minutes: 5 })).rejects.toMatchObject({ code: 'UNIQUE_INDEX' });
      expect(await ids(db)).toEqual([3, 4, 5]);
      for await (const commit of db.changes({ after: position })) {
        const changes = await clock.run(commit.toArray());
        expect(changes.map(({ key, operation, ...rest }) => [key, operation, 'expired' in rest])).toEqual([
          [1, 'delete', true],
          [2, 'delete', true],
          [4, 'upsert', false],
          [5, 'upsert', false],
        ]);
        break;
      }
      await clock.run(db.checkpoint());
      expect(await clock.run(db.verify())).toMatchObject({ ok: true });
      expect(await ids(db)).toEqual([3, 4, 5]);
    },
  );
});

describe('db.load() into a table whose rows expire', () => {
  it.each(['log', 'trees'])('takes the places of rows that have expired, from the %s', async (place) => {
    await insert(db, { id: 1, minutes: 1 }, { id: 2, minutes: 9 }, { id: 9, minutes: 1 });
    if (place === 'trees') await clock.run(db.checkpoint());
    await clock.advance(2 * minuteMs);
    const row = (id: number): object => ({ id, code: `new ${id}`, end: clock.now() + minuteMs });
    await clock.run(db.load(invitations, [row(1), row(3)] as never));
    expect(await ids(db)).toEqual([1, 2, 3]);
    expect(await clock.run(db.get(invitations, 1))).toMatchObject({ code: 'new 1' });
    await expect(clock.run(db.load(invitations, [row(2)] as never))).rejects.toMatchObject({ code: 'DUPLICATE_KEY' });
    // A load deletes no blobs.
    await expect(clock.run(db.load(invitations, [row(9)] as never))).rejects.toMatchObject({ code: 'DUPLICATE_KEY' });
    await clock.run(db.checkpoint());
    expect(await clock.run(db.verify())).toMatchObject({ ok: true });
  });
});

describe('a transaction on a table whose rows expire', () => {
  it('writes rows as of its beginning too', async () => {
    await insert(db, { id: 1, minutes: 1 });
    await clock.run(
      db.transaction(async (tx) => {
        const found = await tx.get(invitations, 1);
        await sleep(clock, 2 * minuteMs);
        await tx.update(invitations, { id: 1, end: clock.now() + minuteMs, code: `${found?.code} again` });
      }),
    );
    expect(await clock.run(db.get(invitations, 1))).toMatchObject({ code: 'code 1 again' });
  });

  it('begins again if a row that it has read is deleted, and finds none then', async () => {
    await insert(db, { id: 1, minutes: 0 });
    const other = await open(2);
    let attempts = 0;
    const found = await clock.run(
      db.transaction(async (tx) => {
        attempts++;
        const row = await tx.get(invitations, 2);
        if (attempts === 1) await insertAside(other);
        await tx.upsert(invitations, { id: 3, code: 'three' });
        return row;
      }),
    );
    expect(attempts).toBe(2);
    expect(found).toMatchObject({ id: 2 });
    async function insertAside(on: Database): Promise<void> {
      const batch = on.batch();
      void batch.insert(invitations, { id: 2, code: 'code 1', end: clock.now() + minuteMs });
      await batch.flush();
    }
  });
});

describe('readers of a table whose rows expire', () => {
  it('hide rows by their own clocks, on a replica too', async () => {
    const replica = await open(2, { role: 'replica' });
    await insert(db, { id: 1, minutes: 1 }, { id: 2, minutes: 100 });
    await clock.run(replica.refresh());
    expect(await ids(replica)).toEqual([1, 2]);
    await clock.advance(2 * minuteMs);
    expect(await ids(replica)).toEqual([2]);
    expect(replica.getCached(invitations, 1)).toBeNull();
  });

  it('find no expired row to update or delete by a query', async () => {
    await insert(db, { id: 1, minutes: 1 }, { id: 2, minutes: 100 });
    await clock.advance(2 * minuteMs);
    const batch = db.batch();
    expect(await clock.run(batch.updateWhere(db.query(invitations), { code: 'x' }))).toBe(1);
    await clock.run(batch.flush());
    const other = db.batch();
    expect(await clock.run(other.deleteWhere(db.query(invitations)))).toBe(1);
    await clock.run(other.flush());
    expect(await ids(db)).toEqual([]);
  });

  it('see no row that expires while a long loop goes on: the time of its beginning counts', async () => {
    await insert(db, ...Array.from({ length: 500 }, (_, id) => ({ id: id + 10, minutes: id < 250 ? 1 : 100 })));
    await clock.run(db.checkpoint());
    const seen: number[] = [];
    await clock.run(
      (async () => {
        for await (const { id } of db.query(invitations)) {
          if (seen.push(id) === 10) await sleep(clock, 2 * minuteMs);
        }
      })(),
    );
    expect(seen).toHaveLength(500);
    expect(await clock.run(db.query(invitations).count())).toBe(250);
  });
});

describe('versions of a table, one of which has rows that expire', () => {
  const { expireAfter: _, ...lasting } = invitations;
  it.each([
    ['to', lasting, { ...invitations, version: 2 }],
    ['from', invitations, { ...lasting, version: 2 }],
  ] as const)('change the table %s one with expiry, and lose no row', async (way, before, after) => {
    await clock.run(db.stop());
    store = new MemoryDriver({ environment: clock });
    const options = { polling: 'interval', mergePolicy: { minCommits: 1 } } as const;
    db = await open(1, options, before);
    await insert(db, { id: 1, minutes: 1 }, { id: 2, minutes: 1000 }, { id: 3, minutes: null });
    await clock.advance(2 * minuteMs);
    expect(await ids(db)).toEqual(way === 'to' ? [1, 2, 3] : [2, 3]);
    await clock.run(db.stop());
    db = await open(1, options, after);
    expect(await ids(db)).toEqual(way === 'to' ? [2, 3] : [1, 2, 3]);
    await clock.advance(3 * minuteMs);
    await clock.run(db.checkpoint());
    expect(await clock.run(db.verify())).toMatchObject({ ok: true });
    await clock.run(db.setTargetSchemaVersion('invitations', 2));
    // No row is deleted while the old version is kept.
    await clock.advance(30 * minuteMs);
    expect(await storedIds(after)).toEqual([1, 2, 3]);
    await clock.run(db.finishMigration('invitations', { force: true }));
    await clock.advance(30 * minuteMs);
    expect(await storedIds(after)).toEqual(way === 'to' ? [2, 3] : [1, 2, 3]);
  });
});
