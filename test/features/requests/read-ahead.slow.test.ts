/**
 * Long work reads the blocks that it will need next while it works: on a store that takes 30 ms for a request, a thousand blocks that are read
 * one after the other take half a minute. Each case counts the reads, and how often the store is waited for.
 */
import { setTimeout } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { Database } from '../../../src/api/database.ts';
import { realEnvironment } from '../../../src/base/env.ts';
import { Instance } from '../../../src/instance/instance.ts';
import { checkOptions } from '../../../src/instance/options.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { Types } from '../../../src/format/types.ts';
import type { GetOptions, GetResult, PutBody, PutOptions, PutResult } from '../../../src/storage/contract/driver.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { WrappedDriver } from '../../../src/storage/wrap/wrapped-driver.ts';

const people = {
  name: 'people',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, name: { typeId: Types.varchar }, city: { typeId: Types.varchar } },
  primaryKey: 'id',
} as const;
const indexed = { ...people, indexes: [{ name: 'city', fields: ['city'] }] } as const;
const rows = 20_000;
/** Larger commits are staged in objects of their own. */
const stagedBytes = 100_000;

/** Whether an object is Block 0 or a commit. */
function isLook(key: string): boolean {
  return /\/(?:block0$|committed\/)/.test(key);
}

/** A store that takes a moment for each read of a block. */
class SlowReads extends WrappedDriver {
  /** How long a write of a block takes, in milliseconds. */
  writeMs = 0;
  /** Reads of blocks. */
  reads = 0;
  #underWay = 0;
  /** The most reads that were under way at the same time. */
  most = 0;
  /** Reads that began while no other was under way: that many times the store is waited for. */
  waits = 0;

  /** The most blocks of the table that were read, and not written again. */
  mostAhead = 0;
  #ofTable = 0;
  #written = 0;

  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    if (!isLook(key) && this.writeMs > 0) await setTimeout(this.writeMs);
    this.mostAhead = Math.max(this.mostAhead, this.#ofTable - ++this.#written);
    return super.put(key, body, options);
  }

  override async get(key: string, options?: GetOptions): Promise<GetResult> {
    if (isLook(key)) return super.get(key, options);
    this.reads++;
    if (!key.includes('/staged/')) this.#ofTable++;
    if (this.#underWay++ === 0) this.waits++;
    this.most = Math.max(this.most, this.#underWay);
    try {
      await setTimeout(1);
      return await super.get(key, options);
    } finally {
      this.#underWay--;
    }
  }
}

let store: MemoryDriver;
let opened: Database[];

beforeEach(() => {
  store = new MemoryDriver();
  opened = [];
  return async () => {
    for (const db of opened) await db.stop();
  };
});

/** An instance that has nothing in memory at first, and its reads. */
interface Opened {
  readonly db: Database;
  readonly seen: SlowReads;
}

async function open(
  nodeId: number,
  schema: object = people,
  more: Partial<StoreDbOptions> = {},
  maxCommitBytes = stagedBytes,
): Promise<Opened> {
  const seen = new SlowReads(store);
  const options = { dbPrefix: 'db', nodeId, logLevel: 'silent', polling: 'onDemand', blockSizeBytes: 2048 } as const;
  const mergePolicy = { minCommits: 2000, maxWaitMs: 86_400_000 };
  const given = checkOptions({ ...options, driver: seen, mergePolicy, ...more }, () => undefined);
  const db = new Database(new Instance(given, realEnvironment, maxCommitBytes));
  db.registerSchema(schema as typeof people);
  opened.push(db);
  await db.start();
  return { db, seen };
}

function* made(step = 1): Generator<{ id: number; name: string; city: string }> {
  for (let id = 0; id < rows; id += step) yield { id, name: `name ${id}`.padEnd(40), city: `c${(id * 7919) % 997}` };
}

async function blocksOf(db: Database): Promise<number> {
  const [table] = (await db.verify()).tables;
  return (table as { readonly blocks: number }).blocks;
}

describe('the blocks that are needed next are read ahead', () => {
  it('by a merge of a load', async () => {
    const { db } = await open(0);
    await db.load(people, made());
    const { db: other, seen } = await open(1);
    await other.checkpoint();
    const { waits, reads } = seen;
    expect(waits).toBeLessThan(reads / 5);
    expect(reads).toBeLessThan(1.1 * (await blocksOf(db)));
  });

  it.each([
    ['staged', stagedBytes, {}, 0.2],
    [
      'staged, in little memory, where there is less room to read ahead',
      stagedBytes,
      { maxMemoryBytes: 1024 * 1024 },
      0.7,
    ],
    ['in the commit itself', 8 * 1024 * 1024, {}, 0.2],
  ] as const)('by a merge of many changes all over a table, %s', async (_, maxCommitBytes, options, share) => {
    const { db } = await open(0, people, {}, maxCommitBytes);
    await db.load(people, made());
    await db.checkpoint();
    const batch = db.batch();
    for (const { id } of made(5)) void batch.update(people, { id, name: `changed ${id}`.padEnd(40) });
    await batch.flush();
    const { db: other, seen } = await open(1, people, options);
    seen.writeMs = 10;
    await other.checkpoint();
    const { waits, reads, mostAhead } = seen;
    expect(waits).toBeLessThan(share * reads);
    // 16 that wait for the writer, 16 that are being written, and the inner ones.
    expect(mostAhead).toBeLessThan(60);
    // Those of the table once, and the changed fifth of its rows.
    expect(reads).toBeLessThan(1.4 * (await blocksOf(db)));
  });

  it('by the work that adds an index', async () => {
    const { db } = await open(0);
    await db.load(people, made());
    await db.checkpoint();
    await db.stop();
    const { db: other, seen } = await open(1, indexed, { polling: 'interval', writeForwardInterval: 20 });
    await expect.poll(async () => (await other.indexes('people'))[0]?.state).toBe('ready');
    // How many rows it takes at once depends on the time, and each part begins with a read.
    expect(seen.most).toBeGreaterThan(4);
  });

  it('by db.changes() of a large commit', async () => {
    const { db } = await open(0);
    await db.load(people, made());
    const { db: other, seen } = await open(1);
    let count = 0;
    for await (const commit of other.changes({ after: 0 })) {
      for await (const { operation } of commit) if (operation === 'upsert') count++;
      break;
    }
    expect(count).toBe(rows);
    expect(seen.waits).toBeLessThan(seen.reads / 5);
  });

  it('by db.verify()', async () => {
    const { db } = await open(0, indexed);
    await db.load(indexed, made());
    await db.checkpoint();
    const { db: other, seen } = await open(1, indexed);
    const blocks = await blocksOf(other);
    expect(seen.waits).toBeLessThan(seen.reads / 5);
    expect(seen.reads).toBeLessThan(1.1 * blocks);
  });
});
