/** `db.rewrite()`: encryption that is turned on, given another key and turned off while others work on the database. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { RewriteReport, StoreDbOptions } from '../../../src/index.ts';
import { decodeEnvelopeHeader, isEnvelope } from '../../../src/format/envelope.ts';
import { FileDriver, MemoryDriver } from '../../../src/storage/index.ts';
import type { PutBody, PutOptions, StorageDriver } from '../../../src/storage/index.ts';
import { FaultyDriver } from '../../../src/testing/index.ts';
import { bare, fill, holds, keys, objectsOf, open, prefix, schema, secret } from './envelope-store.ts';

/** Ids of the keys of all objects, and `none`. */
async function keysInUse(driver: StorageDriver): Promise<Set<string>> {
  const used = new Set<string>();
  for (const [name, bytes] of await objectsOf(driver)) {
    used.add((isEnvelope(bytes) ? decodeEnvelopeHeader(name, bytes).seal?.keyId : undefined) ?? 'none');
  }
  return used;
}

async function rewrite(driver: StorageDriver, options: Partial<StoreDbOptions>): Promise<RewriteReport> {
  await using db = await open(driver, options);
  // Until it is closed, that is.
  return await db.rewrite();
}

async function expectWhole(driver: StorageDriver, options: Partial<StoreDbOptions>, rows: number): Promise<void> {
  await using db = await open(driver, options);
  expect(await db.query(schema).count()).toBe(rows);
  expect((await db.verify({ deep: true })).findings).toEqual([]);
}

describe('db.rewrite()', () => {
  it('turns encryption on, replaces keys, compresses, and turns all of it off again', async () => {
    const driver = new MemoryDriver();
    await using plain = await open(driver, { history: '1h' });
    await fill(plain, 300);
    await using _ = await plain.snapshot();
    await plain.stop();
    const before = await objectsOf(driver);
    const steps: readonly [Partial<StoreDbOptions>, string][] = [
      [{ encryption: { ...keys(1), acceptUnencrypted: true } }, 'key-1'],
      [{ encryption: keys(2), compression: 'deflate' }, 'key-2'],
      [{ encryption: keys(3) }, 'key-3'],
      [{ encryption: keys(3, null) }, 'none'],
    ];
    for (const [options, key] of steps) {
      await using db = await open(driver, options);
      const foreseen = await db.rewrite({ dryRun: true });
      const untouched = await objectsOf(driver);
      const seen: number[] = [];
      const report = await db.rewrite({ onProgress: ({ done, total }) => seen.push(done / total) });
      expect(report.failed).toEqual([]);
      expect(report.rewritten).toBeGreaterThan(5);
      expect(report.rewritten).toBe(foreseen.rewritten);
      expect(seen).toHaveLength(report.objects);
      expect(seen.at(-1)).toBe(1);
      expect(await keysInUse(driver)).toEqual(new Set([key]));
      expect(report.keys).toEqual(key === 'none' ? {} : { [key]: report.objects });
      expect(report.unencrypted).toBe(key === 'none' ? report.objects : 0);
      expect((await db.rewrite({ dryRun: true })).rewritten).toBe(0);
      expect([...(await objectsOf(driver)).keys()].length).toBeGreaterThanOrEqual(untouched.size);
      await db.stop();
      await expectWhole(driver, options, 300);
    }
    await expectWhole(driver, {}, 300);
    const after = await objectsOf(driver);
    const kept = [...before].filter(([name]) => name !== 'block0' && after.has(name));
    expect(kept.length).toBeGreaterThan(5);
    for (const [name, bytes] of kept) expect(Buffer.compare(after.get(name) as Uint8Array, bytes), name).toBe(0);
    expect([...after.keys()].filter((name) => name.startsWith('blobs/'))).toHaveLength(6);
  });

  it('leaves nothing in a folder that could be read before, nor objects under the earlier key', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'store-db-rewrite-'));
    const filesWith = async (text: string): Promise<string[]> => {
      const found: string[] = [];
      for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
        const file = path.join(entry.parentPath, entry.name);
        if (entry.isFile() && (await readFile(file)).includes(text)) found.push(file);
      }
      return found;
    };
    try {
      const driver = new FileDriver({ path: folder, durability: 'none' });
      await using plain = await open(driver);
      await fill(plain, 300);
      await plain.stop();
      expect((await filesWith(secret)).length).toBeGreaterThan(2);
      await rewrite(driver, { encryption: { ...keys(1), acceptUnencrypted: true } });
      expect(await filesWith(secret)).toEqual([]);
      expect((await filesWith('key-1')).length).toBeGreaterThan(5);
      await rewrite(driver, { encryption: keys(2) });
      expect(await filesWith('key-1')).toEqual([]);
      await expectWhole(driver, { encryption: keys(2) }, 300);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('goes on where it was given up', async () => {
    const driver = new MemoryDriver();
    await using db = await open(driver);
    await fill(db, 300);
    await db.stop();
    const options = { encryption: { ...keys(1), acceptUnencrypted: true } };
    const giveUp = new AbortController();
    await using first = await open(driver, options);
    const aborted = first.rewrite({
      signal: giveUp.signal,
      onProgress: ({ done }) => done === 4 && giveUp.abort(new Error('enough')),
    });
    await expect(aborted).rejects.toMatchObject({ code: 'ABORTED' });
    const left = bare(await objectsOf(driver)).length;
    expect(left).toBeGreaterThan(0);
    const { objects, rewritten } = await first.rewrite();
    expect(rewritten).toBeLessThan(objects);
    expect(bare(await objectsOf(driver))).toEqual([]);
  });

  it('loses nothing while others write, merge, read and collect garbage', { timeout: 60_000 }, async () => {
    const driver = new MemoryDriver();
    await using db = await open(driver);
    await fill(db, 400);
    await db.stop();
    const moving = { encryption: { ...keys(2, 1), acceptUnencrypted: true }, blockSizeBytes: 1024 };
    await using writer = await open(driver, moving);
    await using rewriter = await open(driver, { ...moving, nodeId: 1 });
    const state = { isDone: false };
    let written = 0;
    const write = async (): Promise<void> => {
      for (; !state.isDone || written < 60; written++) {
        const batch = writer.batch();
        const photo = writer.Blob(secret.repeat(3000));
        await batch.insert(schema, { id: `more-${written}`, rank: 1, text: 'more', photo });
        if (written > 0) await batch.delete(schema, `more-${written - 1}`);
        await batch.flush();
        if (written % 3 === 0) await writer.checkpoint();
        if (written % 5 === 0) await writer.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 0 });
        expect(await writer.query(schema).where('id', '=', `more-${written}`).count()).toBe(1);
      }
    };
    const writing = write();
    try {
      for (const current of [1, 2, 1, 2]) {
        await using again = await open(driver, {
          ...moving,
          nodeId: 2,
          encryption: { ...keys(2, current), acceptUnencrypted: true },
        });
        expect((await again.rewrite()).failed).toEqual([]);
      }
    } finally {
      state.isDone = true;
    }
    await writing;
    expect((await rewriter.rewrite()).failed).toEqual([]);
    await writer.stop();
    await rewriter.stop();
    expect(await keysInUse(driver)).toEqual(new Set(['key-1']));
    await expectWhole(driver, { encryption: keys(1) }, 401);
  });

  it('brings nothing back that is deleted meanwhile, and overwrites nothing that is newer', async () => {
    const driver = new MemoryDriver();
    await using db = await open(driver);
    await fill(db, 300);
    await db.stop();
    const gone = new Set<string>();
    const newer = new Map<string, Uint8Array>();
    const put = driver.put.bind(driver);
    const racing = Object.assign(driver, {
      put: async (key: string, body: PutBody, options: PutOptions) => {
        const name = key.slice(prefix.length + 1);
        if (typeof options.if === 'object' && name.startsWith('blobs/') && !gone.has(name)) {
          await driver.delete([key]);
          gone.add(name);
        } else if (typeof options.if === 'object' && name.startsWith('data/') && !newer.has(name)) {
          const other = Uint8Array.of(1, 2, 3);
          newer.set(name, other);
          await put(key, other, { if: 'any' });
        }
        return put(key, body, options);
      },
    });
    await using rewriter = await open(racing, { encryption: { ...keys(1), acceptUnencrypted: true } });
    await rewriter.rewrite();
    const objects = await objectsOf(driver);
    expect(gone.size).toBeGreaterThan(3);
    expect(newer.size).toBeGreaterThan(0);
    for (const name of gone) expect(objects.has(name), name).toBe(false);
  });

  it('stores no damage that happened on the way', async () => {
    const driver = new MemoryDriver();
    await using db = await open(driver);
    await fill(db, 300);
    await db.stop();
    const faulty = new FaultyDriver(driver, { seed: 'damage' });
    const options = { encryption: { ...keys(1), acceptUnencrypted: true } };
    await using rewriter = await open(faulty, options);
    faulty.faults = { damaged: 0.3 };
    for (let round = 0; round < 20; round++) await rewriter.rewrite().catch(() => undefined);
    faulty.faults = {};
    expect((await rewriter.rewrite()).failed).toEqual([]);
    await rewriter.stop();
    expect(bare(await objectsOf(driver))).toEqual([]);
    await expectWhole(driver, { encryption: keys(1) }, 300);
  });

  it('leaves objects alone that it cannot open, and says so', async () => {
    const driver = new MemoryDriver();
    await using db = await open(driver, { encryption: keys(1) });
    await fill(db, 100);
    await db.stop();
    // Block 0 has the new key by then; the old one was thrown away too early.
    await using early = await open(driver, { encryption: keys(2) });
    await early.checkpoint();
    await early.stop();
    await using late = await open(driver, {
      encryption: { keys: { 'key-2': keys(2).keys['key-2'] as Uint8Array }, current: 'key-2' },
    });
    const untouched = await objectsOf(driver);
    const report = await late.rewrite();
    expect(report.failed.length).toBeGreaterThan(2);
    expect(report.failed[0]?.message).toContain("encrypted with key 'key-1', and the keys that were given are key-2");
    const after = await objectsOf(driver);
    for (const { name } of report.failed) {
      expect(Buffer.compare(after.get(name) as Uint8Array, untouched.get(name) as Uint8Array)).toBe(0);
    }
    // That is no damage, and nothing that could be repaired.
    await expect(late.verify({ deep: true })).rejects.toMatchObject({ code: 'ENCRYPTION_KEY', keyId: 'key-1' });
  });

  it('compresses objects if that pays, and leaves the rest', async () => {
    const driver = new MemoryDriver();
    await using db = await open(driver);
    await fill(db, 300);
    await db.stop();
    const { rewritten } = await rewrite(driver, { compression: 'deflate' });
    expect(rewritten).toBeGreaterThan(0);
    expect((await rewrite(driver, { compression: 'deflate' })).rewritten).toBe(0);
    await expectWhole(driver, { compression: 'none' }, 300);
    const objects = await objectsOf(driver);
    const blobs = [...objects.keys()].filter((name) => name.startsWith('blobs/'));
    expect(bare(objects)).toEqual(expect.arrayContaining(blobs));
    expect((await rewrite(driver, { compression: 'none' })).rewritten).toBeGreaterThan(0);
    expect(bare(await objectsOf(driver))).toHaveLength(objects.size);
    expect([...(await objectsOf(driver)).values()].some((bytes) => holds(bytes, secret))).toBe(true);
  });

  it('is refused where nothing says how, on a replica, and with options that are none', async () => {
    const driver = new MemoryDriver();
    await using db = await open(driver);
    await expect(db.rewrite()).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'encryption' });
    await using replica = await open(driver, { role: 'replica', compression: 'none' });
    await expect(replica.rewrite()).rejects.toMatchObject({ code: 'READ_ONLY' });
    for (const options of [{ dryRun: 1 }, { onProgress: true }, { deep: true }, { constructor: 1 }]) {
      await expect(db.rewrite(options as unknown as object)).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        option: Object.keys(options)[0],
      });
    }
  });
});
