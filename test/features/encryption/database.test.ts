/** Databases whose objects are encrypted and compressed: the objects in the store, who can open it, and who cannot. */
import { writeFile } from 'node:fs/promises';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { EncryptionKeyError, listBackups, NotEncryptedError, restoreBackup, StoreDb } from '../../../src/index.ts';
import type { StoreDbOptions } from '../../../src/index.ts';
import { FileDriver, MemoryDriver } from '../../../src/storage/index.ts';
import { run, TestFolder } from '../cli/shell.ts';
import { bare, fill, holds, keyOf, keys, objectsOf, open, prefix, schema, secret } from './envelope-store.ts';

async function contentOf(driver: MemoryDriver, options: Partial<StoreDbOptions>): Promise<unknown[]> {
  await using db = await open(driver, { ...options, role: 'replica' });
  const rows = await db.query(schema).orderBy('id', 'asc').execute();
  const photos = rows.flatMap(({ photo }) => (photo === null ? [] : [photo]));
  for (const photo of photos) expect((await db.getBlob(photo).getString()).startsWith(secret)).toBe(true);
  return rows.map(({ id, rank, text }) => ({ id, rank, text }));
}

describe('an encrypted database', () => {
  it.each(['none', 'deflate'] as const)('shows nothing of its contents, compression %s', async (compression) => {
    const driver = new MemoryDriver();
    const plain = new MemoryDriver();
    for (const [store, options] of [
      [driver, { encryption: keys(1), compression }],
      [plain, {}],
    ] as const) {
      await using db = await open(store, { ...options, history: '1h' });
      await fill(db, 300);
      await using snapshot = await db.snapshot();
      expect(await snapshot.query(schema).count()).toBe(300);
      const batch = db.batch();
      await batch.delete(schema, 'note-1');
      await batch.flush();
      await db.checkpoint();
      const { findings } = await db.verify({ deep: true });
      expect(findings).toEqual([]);
    }
    const objects = await objectsOf(driver);
    expect(objects.size).toBeGreaterThan(10);
    expect(bare(objects)).toEqual([]);
    // The same objects without encryption do show it.
    expect([...(await objectsOf(plain)).values()].some((bytes) => holds(bytes, secret))).toBe(true);
    for (const bytes of objects.values()) {
      for (const text of [secret, 'notes', 'databaseId', 'note-1']) expect(holds(bytes, text)).toBe(false);
    }
    expect(await contentOf(driver, { encryption: keys(2, 1) })).toEqual(await contentOf(plain, {}));
  });

  it('is the same to everybody who has the keys, and grows smaller by compression', async () => {
    const sizes: number[] = [];
    for (const compression of ['none', 'deflate'] as const) {
      const driver = new MemoryDriver();
      await using db = await open(driver, { encryption: keys(1), compression });
      await fill(db, 500);
      const blocks = [...(await objectsOf(driver))].filter(([name]) => !name.startsWith('blobs/'));
      sizes.push(blocks.reduce((sum, [, { length }]) => sum + length, 0));
    }
    expect(sizes[1]).toBeLessThan((sizes[0] as number) * 0.5);
  });

  it('is refused without its keys, with others, and with a wrong one of the same id', async () => {
    const driver = new MemoryDriver();
    await (await open(driver, { encryption: keys(1) })).stop();
    const wrong = { keys: { 'key-1': keyOf(9) }, current: 'key-1' };
    const others = { keys: { other: keyOf(9) }, current: 'other' };
    for (const [options, message] of [
      [{}, "no keys were given: set the option encryption, with key 'key-1'"],
      [{ compression: 'deflate' as const }, 'no keys were given'],
      [{ encryption: wrong }, "another key 'key-1' than the one that was given"],
      [{ encryption: others }, "encrypted with key 'key-1', and the keys that were given are other"],
    ] as const) {
      const error: unknown = await open(driver, options).catch((cause: unknown) => cause);
      expect(error).toBeInstanceOf(EncryptionKeyError);
      expect(error).toMatchObject({ code: 'ENCRYPTION_KEY', key: 'block0', keyId: 'key-1' });
      expect((error as Error).message).toContain(message);
      await using db = StoreDb({ dbPrefix: prefix, nodeId: 0, driver, ...options });
      expect((await db.doctor()).database).toMatchObject({ status: 'unreadable' });
    }
    expect(bare(await objectsOf(driver))).toEqual([]);
  });

  it('is not made of one that is not encrypted', async () => {
    const driver = new MemoryDriver();
    await (await open(driver)).stop();
    const error: unknown = await open(driver, { encryption: keys(1) }).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(NotEncryptedError);
    expect(error).toMatchObject({ code: 'NOT_ENCRYPTED', key: 'block0' });
    expect(bare(await objectsOf(driver))).toEqual(['block0']);
  });

  it('believes no object that is not encrypted, nor one of another database', async () => {
    const driver = new MemoryDriver();
    const other = new MemoryDriver();
    const encryption = keys(1);
    for (const [store, text] of [
      [driver, 'mine'],
      [other, 'theirs'],
    ] as const) {
      await using db = await open(store, { encryption });
      const batch = db.batch();
      await batch.insert(schema, { id: 'row', rank: 1, text, photo: null });
      await batch.flush();
    }
    const plain = new MemoryDriver();
    await using unencrypted = await open(plain);
    const batch = unencrypted.batch();
    await batch.insert(schema, { id: 'row', rank: 1, text: 'forged', photo: null });
    await batch.flush();
    const commit = [...(await objectsOf(driver)).keys()].find((name) => name.startsWith('committed/'));
    for (const [store, message] of [
      [plain, 'not encrypted'],
      [other, 'encrypted for another database'],
    ] as const) {
      const found = await store.get(`${prefix}/${commit}`);
      if (found.status !== 'found') throw new Error('there is no commit');
      await driver.put(`${prefix}/${commit}`, found.bytes, { if: 'any' });
      await using opened = await open(driver, { encryption });
      const error: unknown = await opened.get(schema, 'row').catch((cause: unknown) => cause);
      expect(error).toMatchObject({ code: 'CORRUPTION', key: commit });
      expect((error as Error).message).toContain(message);
    }
  });

  it('has objects that are larger by 128 bytes, and by 16 for each further 64 KiB, and takes one request more at most', async () => {
    const found: { requests: number[]; sizes: number[] }[] = [];
    for (const options of [{}, { encryption: keys(1) }]) {
      const driver = new MemoryDriver();
      let sent = 0;
      const onRequest = (): void => void sent++;
      await using db = await open(driver, { ...options, onRequest });
      const batch = db.batch();
      for (const [id, size] of [0, 65_536, 65_537, 500_000].entries()) {
        void batch.insert(schema, {
          id: `blob ${id}`,
          rank: id,
          text: 'text',
          photo: db.Blob(Buffer.alloc(size, 'x')),
        });
      }
      await batch.flush();
      await db.checkpoint();
      const row = await db.get(schema, 'blob 3');
      const blob = db.getBlob(row?.photo ?? '');
      const requests = [sent];
      for (const start of [200_000, 300_000, 400_000, 0]) {
        await blob.getBuffer(start, start + 10);
        requests.push(sent);
      }
      const stored = [...(await objectsOf(driver))].filter(([name]) => name.startsWith('blobs/'));
      found.push({ requests, sizes: stored.map(([, { length }]) => length).toSorted((a, b) => a - b) });
    }
    const [plain, encrypted] = found;
    expect(plain?.sizes).toEqual([0, 65_536, 65_537, 500_000]);
    expect(encrypted?.sizes).toEqual([128, 65_536 + 128, 65_537 + 144, 500_000 + 128 + 7 * 16]);
    // The first range takes one more.
    expect(encrypted?.requests).toEqual(plain?.requests.map((count, i) => count + Math.min(i, 1)));
  });

  it('gives no URLs to its blobs', async () => {
    const driver = new MemoryDriver();
    const presigning = Object.assign(driver, { presign: () => Promise.resolve('https://example.com/blob') });
    await using db = await open(presigning, { encryption: keys(1) });
    await fill(db, 60);
    const [row] = await db.query(schema).where('id', '=', 'note-50').execute();
    const url = db.getBlob(row?.photo as string).getDownloadUrl({ expiresIn: 60 });
    await expect(url).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    await expect(url).rejects.toThrow('Blobs of this database are encrypted');
    const check = (await db.doctor()).checks.find(({ name }) => name === 'presigning');
    expect(check?.status).toBe('skipped');
  });

  it('keeps no block in the clear in a cache of the user', async () => {
    const driver = new MemoryDriver();
    const cached = new Map<string, Uint8Array>();
    const cacheDriver = {
      get: (key: string) => cached.get(key),
      set: (key: string, bytes: Uint8Array) => void cached.set(key, bytes),
      delete: (key: string) => void cached.delete(key),
    };
    const options = { encryption: keys(2), cacheDriver, blockSizeBytes: 2048 };
    await using db = await open(driver, options);
    await fill(db, 300);
    await db.stop();
    await using reader = await open(driver, options);
    expect(await reader.query(schema).where('text', '=', `7 ${secret}`).count()).toBe(1);
    await reader.stop();
    expect(cached.size).toBeGreaterThan(3);
    for (const bytes of cached.values()) expect(holds(bytes, secret)).toBe(false);
    await using again = await open(driver, options);
    expect(await again.query(schema).execute()).toHaveLength(300);
    expect(again.stats().cache.driverHits).toBeGreaterThan(3);
    // What cannot be opened is read from the store.
    await again.stop();
    for (const bytes of cached.values()) {
      const place = Math.min(150, bytes.length - 1);
      bytes[place] = (bytes[place] as number) ^ 1;
    }
    // Nor does it put other blocks there, which it would find again.
    const damaged = { ...cacheDriver, set: () => undefined };
    await using later = await open(driver, { ...options, cacheDriver: damaged, nodeId: 1 });
    expect(await later.query(schema).execute()).toHaveLength(300);
    expect(later.stats().cache.driverHits).toBe(0);
  });

  it('is backed up, restored and cloned as it is: encrypted', async () => {
    const driver = new MemoryDriver();
    const encryption = keys(2);
    await using db = await open(driver, { encryption, compression: 'deflate' });
    await fill(db, 200);
    const rows = await contentOf(driver, { encryption });
    const first = await db.backup({ driver, prefix: 'backups' });
    const second = await db.backup({ driver, prefix: 'backups' });
    expect(second.copiedObjects).toBe(0);
    expect((await listBackups({ driver, prefix: 'backups' })).map(({ id }) => id)).toContain(first.id);
    await db.clone({ driver, prefix: 'clone' });
    await expect(
      restoreBackup({ from: { driver, prefix: 'backups' }, to: { driver, prefix: 'none' } }),
    ).rejects.toMatchObject({ code: 'ENCRYPTION_KEY' });
    await restoreBackup({ from: { driver, prefix: 'backups' }, to: { driver, prefix: 'restored' }, encryption });
    for (const under of ['backups', 'clone', 'restored']) {
      const objects = await objectsOf(driver, under);
      expect(objects.size).toBeGreaterThan(3);
      expect(bare(objects)).toEqual([]);
    }
    for (const dbPrefix of ['clone', 'restored']) {
      expect(await contentOf(driver, { encryption, dbPrefix })).toEqual(rows);
      await using copy = await open(driver, { encryption, dbPrefix });
      expect((await copy.verify({ deep: true })).findings).toEqual([]);
    }
    expect(await objectsOf(driver, 'none')).toEqual(new Map());
  });
});

describe('the command', () => {
  it('reads, rewrites, backs up and restores with keys from a file, and reveals nothing of them', async () => {
    await using folder = await TestFolder.make();
    const [database, backups, restored] = ['data', 'backups', 'restored'].map(
      (name) => `file:${folder.path}/${name}#p`,
    );
    const keyFile = `${folder.path}/keys.json`;
    const key = Buffer.from(keyOf(7)).toString('base64');
    const text = JSON.stringify({ keys: { k: key }, current: 'k', acceptUnencrypted: true });
    await writeFile(keyFile, text);
    const db = StoreDb({ dbPrefix: 'p', nodeId: 0, driver: new FileDriver(`${folder.path}/data`), logLevel: 'silent' });
    await db.start();
    db.registerSchema(schema);
    await fill(db, 50);
    await db.stop();
    const words = [
      ['rewrite', '--compression', 'deflate', database],
      ['cat', database],
      ['log', database],
      ['cost', database],
      ['stats', database],
      ['verify', '--deep', database],
      ['backup', database, backups],
      ['prune', backups, '--keep-last', '1', '--yes'],
      ['restore', backups, restored],
      ['query', restored, 'notes', '--limit', '1'],
    ] as string[][];
    for (const line of words) {
      const ran = await run([...line, '--keys', keyFile]);
      expect(ran.status, `${line.join(' ')}: ${ran.messages}`).toBe(0);
      expect(ran.output + ran.messages).not.toContain(key);
    }
    for (const line of words.slice(1, 7)) {
      const { status, messages } = await run(line);
      expect(status, line.join(' ')).not.toBe(0);
      expect(messages).toContain('ENCRYPTION_KEY');
    }
    await writeFile(keyFile, text.slice(1));
    const broken = await run(['stats', database as string, '--keys', keyFile]);
    expect(broken.messages).toContain('is not JSON');
    expect(broken.messages).not.toContain(key.slice(0, 8));
    expect((await run(['rewrite', database as string, '--keys', keyFile])).messages).toContain('--compression');
  });
});

describe('keys', () => {
  const good = keyOf(3);
  const asText = Buffer.from(good).toString('base64');

  it('are taken as bytes and as text, and open objects of the other form', async () => {
    const driver = new MemoryDriver();
    const forms = [good, asText, asText.replace('=', ''), Buffer.from(good).toString('hex'), Buffer.from(good)];
    for (const key of forms) await (await open(driver, { encryption: { keys: { k: key }, current: 'k' } })).stop();
  });

  it.each([
    ['no object', 'a key'],
    ['nothing', {}],
    ['no keys', { keys: {}, current: 'k' }],
    ['a list', { keys: [good], current: '0' }],
    ['only bytes', { keys: good, current: '0' }],
    ['no current key', { keys: { k: good } }],
    ['an unknown current key', { keys: { k: good }, current: 'other' }],
    ['what every object has', { keys: { k: good }, current: 'constructor' }],
    ['a key that is too short', { keys: { k: good.subarray(1) }, current: 'k' }],
    ['a text that is too long', { keys: { k: `${asText}${asText}` }, current: 'k' }],
    ['a password', { keys: { k: 'correct horse battery staple' }, current: 'k' }],
    ['no secret', { keys: { k: new Uint8Array(32) }, current: 'k' }],
    ['an empty id', { keys: { '': good }, current: '' }],
    ['a long id', { keys: { [`k${'x'.repeat(32)}`]: good }, current: `k${'x'.repeat(32)}` }],
    ['an id of other letters', { keys: { schlüssel: good }, current: 'schlüssel' }],
    ['a key as a name', { keys: { k: good }, current: 'k', [asText]: true }],
    ['more than there is', { keys: { k: good }, current: 'k', algorithm: 'rot13' }],
    ['acceptance that is no boolean', { keys: { k: good }, current: 'k', acceptUnencrypted: 1 }],
    ['a refusal of what it writes', { keys: { k: good }, current: null, acceptUnencrypted: false }],
  ])('are refused: %s', (_, encryption) => {
    const options = { dbPrefix: prefix, nodeId: 0, driver: new MemoryDriver(), encryption };
    let error: unknown;
    try {
      StoreDb(options as unknown as StoreDbOptions);
    } catch (cause) {
      error = cause;
    }
    expect(error).toMatchObject({ code: 'INVALID_OPTION' });
    expect((error as { option: string }).option).toMatch(/^encryption(?:\.|$)/);
    for (const text of ['correct horse', asText.slice(0, 20)]) expect((error as Error).message).not.toContain(text);
  });

  it('are not shown by anything that is printed', async () => {
    const hex = Buffer.from(good).toString('hex');
    const lines: unknown[] = [];
    const line = (...values: unknown[]): void => void lines.push(values);
    const logger = { debug: line, info: line, warn: line, error: line };
    const encryption = { keys: { k: asText }, current: 'k' };
    const db = await open(new MemoryDriver(), { encryption, logger, logLevel: 'debug' });
    await fill(db, 20);
    const shown = inspect([db, lines, db.stats()], { depth: 20, showHidden: true });
    const json = JSON.stringify([db, db.stats(), await db.doctor()]);
    await db.stop();
    for (const text of [asText, hex, hex.slice(0, 16), good.slice(0, 4).join(', ')]) {
      expect(shown.includes(text) || json.includes(text)).toBe(false);
    }
  });

  it('of a compression that is none, or that this runtime cannot write, are refused', () => {
    const driver = new MemoryDriver();
    for (const compression of ['gzip', 1, null, 'constructor']) {
      const options = { dbPrefix: prefix, nodeId: 0, driver, compression } as unknown as StoreDbOptions;
      expect(() => StoreDb(options)).toThrow("it must be 'none', 'deflate' or 'zstd'");
    }
  });
});

describe('a compressed database', () => {
  it('is read by holders of the key, and by nobody else', async () => {
    const driver = new MemoryDriver();
    await using db = await open(driver, { compression: 'deflate' });
    await fill(db, 300);
    const blobs = [...(await objectsOf(driver))].filter(([name]) => name.startsWith('blobs/'));
    expect(bare(new Map(blobs))).toHaveLength(blobs.length);
    expect(await contentOf(driver, { compression: 'none' })).toHaveLength(300);
    const refused = open(driver, { role: 'replica' });
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'compression' });
  });

  it('leaves a blob alone that looks like something else', async () => {
    for (const options of [
      { compression: 'none' },
      { compression: 'deflate' },
      { encryption: keys(1, null) },
    ] as const) {
      const source = new MemoryDriver();
      await (await open(source, { encryption: keys(1) })).stop();
      const found = await source.get(`${prefix}/block0`);
      const bytes = found.status === 'found' ? found.bytes : new Uint8Array(0);
      const driver = new MemoryDriver();
      await using db = await open(driver, options);
      const batch = db.batch();
      await batch.insert(schema, { id: 'odd', rank: 1, text: '', photo: db.Blob(bytes) });
      await batch.flush();
      const row = await db.get(schema, 'odd');
      expect(await db.getBlob(row?.photo as string).getBuffer()).toEqual(Buffer.from(bytes));
      expect((await db.verify({ deep: true })).findings).toEqual([]);
    }
  });
});
