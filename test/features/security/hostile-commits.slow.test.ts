/**
 * Commits that somebody made who may write to the store: small objects that say that there is much to do. They are refused, or
 * applied in about the time that an honest one of their size takes, and the event loop gets its turns meanwhile.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { describe, expect, it, onTestFinished } from 'vitest';
import { encodeUtf8 } from '../../../src/base/bytes.ts';
import { realEnvironment, sleep } from '../../../src/base/env.ts';
import { BlockKind, blockHeaderBytes, sealBlock } from '../../../src/format/block.ts';
import { decodeBlock0 } from '../../../src/format/block0.ts';
import { commitBlockName, decodeCommit } from '../../../src/format/commit.ts';
import { commitName } from '../../../src/format/object-names.ts';
import { padTo4 } from '../../../src/format/node.ts';
import { rowStride } from '../../../src/format/row-layout.ts';
import type { StoredSchema } from '../../../src/format/stored-schema.ts';
import { StoreDb, StoreDbError, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/index.ts';

const schema = {
  name: 't',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
} as const;
const stored: StoredSchema = {
  name: 't',
  version: 1,
  fields: [
    { name: 'id', typeId: Types.uint32 },
    { name: 'text', typeId: Types.varchar },
  ],
  primaryKey: ['id'],
  indexes: [],
};

interface Leaf {
  readonly count: number;
  readonly heap?: Uint8Array;
  readonly prefix?: number;
  readonly schema?: StoredSchema;
}

/** A leaf of rows whose texts are all of the heap. */
function leafOf({ count, heap = new Uint8Array(0), prefix = 0, schema: of = stored }: Leaf): Uint8Array {
  const stride = rowStride(of.fields);
  const suffixBytes = 5 * count;
  const rowsAt = blockHeaderBytes + 24 + padTo4(prefix) + padTo4(suffixBytes);
  const bytes = new Uint8Array(rowsAt + padTo4(count * stride) + heap.length);
  const view = new DataView(bytes.buffer);
  view.setUint16(blockHeaderBytes + 2, prefix, true);
  view.setUint32(blockHeaderBytes + 4, count, true);
  view.setUint32(blockHeaderBytes + 8, suffixBytes, true);
  view.setUint32(blockHeaderBytes + 12, stride, true);
  view.setUint32(blockHeaderBytes + 16, heap.length, true);
  view.setUint32(blockHeaderBytes + 20, of.version, true);
  const keysAt = blockHeaderBytes + 24 + padTo4(prefix);
  for (let i = 0; i < count; i++) {
    bytes[keysAt + i * 5] = 1;
    view.setUint32(keysAt + i * 5 + 1, i, false);
    const row = rowsAt + i * stride;
    view.setUint32(row + 1, i, true);
    if (heap.length > 12) view.setUint32(row + 5, heap.length, true);
  }
  bytes.set(heap, rowsAt + padTo4(count * stride));
  sealBlock(commitBlockName(of.name), BlockKind.table, bytes);
  return bytes;
}

interface Change {
  readonly schema: unknown;
  readonly offset: number;
  readonly length: number;
}

class Victim {
  readonly db: Database;
  readonly #driver: MemoryDriver;
  readonly #databaseId: string;
  readonly slot: number;

  constructor(db: Database, driver: MemoryDriver, databaseId: string, slot: number) {
    this.db = db;
    this.#driver = driver;
    this.#databaseId = databaseId;
    this.slot = slot;
  }

  commit(members: readonly (readonly Change[])[], blocks: readonly Uint8Array[]): Uint8Array {
    const header = encodeUtf8(
      JSON.stringify({
        databaseId: this.#databaseId,
        commitId: 'hostile',
        nodeId: 1,
        atMs: 0,
        members: members.map((changes) => ({ changes })),
      }),
    );
    const blocksAt = blockHeaderBytes + 4 + padTo4(header.length);
    const bytes = new Uint8Array(blocksAt + blocks.reduce((sum, { length }) => sum + padTo4(length), 0));
    new DataView(bytes.buffer).setUint32(blockHeaderBytes, header.length, true);
    bytes.set(header, blockHeaderBytes + 4);
    let at = blocksAt;
    for (const block of blocks) {
      bytes.set(block, at);
      at += padTo4(block.length);
    }
    sealBlock(commitName(this.slot), BlockKind.commit, bytes);
    return bytes;
  }

  put(bytes: Uint8Array): Promise<unknown> {
    return this.#driver.put(`app/${commitName(this.slot)}`, bytes, { if: 'absent' });
  }
}

async function victim(): Promise<Victim> {
  const driver = new MemoryDriver();
  const db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver, logLevel: 'silent', writeForwardInterval: 60_000 });
  db.registerSchema(schema);
  await db.start();
  onTestFinished(() => db.stop());
  const batch = db.batch();
  void batch.insert('t', { id: 1, text: 'first' });
  await batch.flush();
  await db.checkpoint();
  const found = await driver.get('app/block0');
  if (found.status !== 'found') throw new Error('no Block 0');
  const { databaseId, appliedSeq } = decodeBlock0(found.bytes);
  return new Victim(db, driver, databaseId, appliedSeq + 1);
}

/** Blocks one after the other, a member for each. */
function inMembers(blocks: readonly Uint8Array[], schemaOf: (i: number) => unknown): Change[][] {
  let offset = 0;
  return blocks.map((block, i) => {
    const change = { schema: schemaOf(i), offset, length: block.length };
    offset += padTo4(block.length);
    return [change];
  });
}

type Attack = (victim: Victim) => Uint8Array;

const refused: Record<string, Attack> = {
  'thousands of members with one and the same block': (of) => {
    const block = leafOf({ count: 15_000 });
    const change = { schema: stored, offset: 0, length: block.length };
    return of.commit(
      Array.from({ length: 2500 }, () => [change]),
      [block],
    );
  },
  'blocks that overlap': (of) => {
    const blocks = [leafOf({ count: 10 }), leafOf({ count: 10 })];
    const [first, second] = inMembers(blocks, () => stored) as [Change[], Change[]];
    return of.commit([second, first], blocks);
  },
  'bytes that belong to no block': (of) => {
    const blocks = [leafOf({ count: 10 }), leafOf({ count: 10 })];
    return of.commit(inMembers(blocks, () => stored).slice(0, 1), blocks);
  },
  'rows that all point to one long text': (of) => {
    const block = leafOf({ count: 20_000, heap: new Uint8Array(300_000).fill(0x61) });
    return of.commit([[{ schema: stored, offset: 0, length: block.length }]], [block]);
  },
  'keys that are all of one long beginning': (of) => {
    const block = leafOf({ count: 20_000, prefix: 60_000 });
    return of.commit([[{ schema: stored, offset: 0, length: block.length }]], [block]);
  },
  'an index that names one field again and again': (of) => {
    const fields = Array.from({ length: 50_000 }, () => 'id');
    const wide = { ...stored, name: 'wide', indexes: [{ name: 'i', fields }] };
    const block = leafOf({ count: 20_000, schema: { ...stored, name: 'wide' } });
    return of.commit([[{ schema: wide, offset: 0, length: block.length }]], [block]);
  },
  'a schema of too many fields': (of) => {
    const more = Array.from({ length: 5000 }, (_, i) => ({ name: `f${i}`, typeId: Types.uint8 }));
    const wide = { ...stored, name: 'wide', fields: [...stored.fields, ...more] };
    const block = leafOf({ count: 20, schema: wide });
    return of.commit([[{ schema: wide, offset: 0, length: block.length }]], [block]);
  },
};

const applied: Record<string, Attack> = {
  'thousands of members with a row each': (of) => {
    const blocks = Array.from({ length: 5000 }, () => leafOf({ count: 1 }));
    return of.commit(
      inMembers(blocks, () => stored),
      blocks,
    );
  },
  'thousands of members with many rows each': (of) => {
    const blocks = Array.from({ length: 1000 }, () => leafOf({ count: 40 }));
    return of.commit(
      inMembers(blocks, () => stored),
      blocks,
    );
  },
  'thousands of tables': (of) => {
    const blocks = Array.from({ length: 3000 }, (_, i) => leafOf({ count: 1, schema: { ...stored, name: `t${i}` } }));
    return of.commit(
      inMembers(blocks, (i) => ({ ...stored, name: `t${i}` })),
      blocks,
    );
  },
  'thousands of versions of a table in one member': (of) => {
    const blocks = Array.from({ length: 3000 }, (_, i) => leafOf({ count: 1, schema: { ...stored, version: i + 1 } }));
    return of.commit([inMembers(blocks, (i) => ({ ...stored, version: i + 1 })).flat()], blocks);
  },
};

/** Runs it, and tells how long it took, and how long at most the event loop was held. */
async function measured(work: () => Promise<unknown>): Promise<{ tookMs: number; heldMs: number }> {
  const delays = monitorEventLoopDelay({ resolution: 5 });
  delays.enable();
  await sleep(realEnvironment, 20);
  const startedMs = performance.now();
  await work();
  const tookMs = performance.now() - startedMs;
  await sleep(realEnvironment, 20);
  delays.disable();
  return { tookMs, heldMs: delays.max / 1e6 };
}

describe('a hostile commit', () => {
  it.each(Object.entries(refused))('with %s is refused, in no time', { timeout: 300_000 }, async (_, attack) => {
    const of = await victim();
    const bytes = attack(of);
    expect(bytes.length).toBeLessThan(1_500_000);
    await of.put(bytes);
    let error: unknown;
    const { tookMs, heldMs } = await measured(() => of.db.refresh().catch((thrown: unknown) => (error = thrown)));
    expect(error).toMatchObject({ code: 'CORRUPTION' });
    expect(tookMs).toBeLessThan(2000);
    expect(heldMs).toBeLessThan(2000);
    await expect(of.db.query('t').execute()).resolves.toEqual([{ id: 1, text: 'first' }]);
  });

  it.each(Object.entries(applied))('with %s takes no longer than its size', { timeout: 300_000 }, async (_, attack) => {
    const of = await victim();
    const bytes = attack(of);
    expect(bytes.length).toBeLessThan(1_500_000);
    expect(decodeCommit(of.slot, bytes).members.length).toBeGreaterThan(0);
    await of.put(bytes);
    const work = async (): Promise<void> => {
      await of.db.refresh();
      await of.db.query('t').execute();
      await of.db.checkpoint();
    };
    const { tookMs, heldMs } = await measured(() =>
      // Refused is as good.
      work().catch((error: unknown) => {
        if (!(error instanceof StoreDbError)) throw error;
      }),
    );
    expect(tookMs).toBeLessThan(5000);
    // A tenth of it, or so, where nothing else runs.
    expect(heldMs).toBeLessThan(3000);
  });
});
