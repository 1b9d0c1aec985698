/** A disk that is full: gc() frees it, and nothing that was acknowledged is lost. */
import { execFileSync } from 'node:child_process';
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { realEnvironment } from '../../../src/base/env.ts';
import { StorageError, StoreDb, Types } from '../../../src/index.ts';
import type { Database, StoreDbOptions } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import type { AppendableFile } from '../../../src/storage/file/file-system.ts';
import { NodeFileSystem } from '../../../src/storage/file/node-file-system.ts';

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
} as const;

const diskBytes = 1_200_000;
const rows = 150;

/** Bytes on the disk: a file counts once, however many names it has. */
function usedBytes(folder: string): number {
  const files = new Map<number, number>();
  for (const name of readdirSync(folder, { recursive: true }) as string[]) {
    const stats = lstatSync(path.join(folder, name), { throwIfNoEntry: false });
    if (stats?.isFile() === true) files.set(stats.ino, stats.size);
  }
  let used = 0;
  for (const size of files.values()) used += size;
  return used;
}

/** A small disk: what does not fit fails as the system has it. */
class SmallDisk extends NodeFileSystem {
  readonly #root: string;

  constructor(root: string) {
    super(realEnvironment);
    this.#root = root;
  }

  override async openToAppend(name: string): Promise<AppendableFile | undefined> {
    const file = await super.openToAppend(name);
    if (file === undefined) return undefined;
    return {
      status: () => file.status(),
      read: (into, position) => file.read(into, position),
      sync: () => file.sync(),
      close: () => file.close(),
      append: async (bytes) => {
        if (usedBytes(this.#root) + bytes.length > diskBytes) {
          throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
        }
        await file.append(bytes);
      },
    };
  }

  override async create(...args: Parameters<NodeFileSystem['create']>): ReturnType<NodeFileSystem['create']> {
    const file = await super.create(...args);
    if (file === undefined) return undefined;
    return {
      write: async (bytes) => {
        if (usedBytes(this.#root) + bytes.length > diskBytes) {
          throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
        }
        await file.write(bytes);
      },
      sync: () => file.sync(),
      close: () => file.close(),
    };
  }
}

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'store-db-full-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function open(driver: FileDriver, options: Partial<StoreDbOptions> = {}): Database {
  const db = StoreDb({
    dbPrefix: 'db',
    nodeId: 0,
    driver,
    logLevel: 'silent',
    writeForwardInterval: 60_000,
    blockSizeBytes: 4096,
    ...options,
  });
  db.registerSchema(notes);
  return db;
}

/** What is acknowledged, by id. */
type Written = Map<number, string>;

async function write(db: Database, written: Written, round: number): Promise<void> {
  const batch = db.batch();
  const texts = new Map(Array.from({ length: rows }, (_, id) => [id, `${'x'.repeat(200)} ${round} ${id}`]));
  for (const [id, text] of texts) void batch.upsert(notes, { id, text });
  await batch.flush();
  for (const [id, text] of texts) written.set(id, text);
}

/** Writes and merges until there is no room for any more. */
async function fill(db: Database, written: Written): Promise<void> {
  for (let round = 0; round < 500; round++) {
    try {
      await write(db, written, round);
      await db.checkpoint();
    } catch (error) {
      if (!(error instanceof StorageError) || error.reason !== 'full') throw error;
      return;
    }
  }
  throw new Error('The disk is not full yet');
}

async function expectAll(db: Database, written: Written): Promise<void> {
  const found = await db.query(notes).execute();
  expect(new Map(found.map(({ id, text }) => [id, text]))).toEqual(written);
}

async function fillsAndRecovers(driver: () => FileDriver, options: Partial<StoreDbOptions> = {}): Promise<void> {
  const written: Written = new Map();
  const db = open(driver(), options);
  await db.start();
  await fill(db, written);
  // Whatever is left is used up, too.
  await write(db, written, 1000).catch(() => undefined);
  await expectAll(db, written);
  const { freedBytes } = await db.gc({ loopGraceMs: 0, logRetentionMs: 0 });
  expect(freedBytes).toBeGreaterThan(diskBytes / 4);
  for (let round = 2000; round < 2003; round++) {
    await write(db, written, round);
    await db.checkpoint();
  }
  await expectAll(db, written);
  await db.stop();
  // So does another process that begins on a full disk.
  const next = open(driver(), options);
  await next.start();
  await fill(next, written);
  await next.stop().catch(() => undefined);
  const last = open(driver(), options);
  await last.start();
  expect((await last.gc({ loopGraceMs: 0, logRetentionMs: 0 })).freedBytes).toBeGreaterThan(diskBytes / 4);
  await write(last, written, 3000);
  await last.checkpoint();
  await expectAll(last, written);
  expect(await last.verify({ deep: true })).toMatchObject({ ok: true });
  await last.stop();
}

describe('gc() on a full disk', () => {
  it('frees it', { timeout: 120_000 }, async () => {
    const system = new SmallDisk(root);
    await fillsAndRecovers(() => new FileDriver({ path: root, fileSystem: system, durability: 'none' }));
  });

  it('frees it where a snapshot ended and history is kept for a second', { timeout: 120_000 }, async () => {
    const system = new SmallDisk(root);
    const driver = (): FileDriver => new FileDriver({ path: root, fileSystem: system, durability: 'none' });
    const written: Written = new Map();
    const db = open(driver(), { history: '1s' });
    await db.start();
    await fill(db, written);
    await new Promise((resolve) => {
      setTimeout(resolve, 1200);
    });
    const { freedBytes } = await db.gc({ loopGraceMs: 0, logRetentionMs: 0 });
    expect(freedBytes).toBeGreaterThan(0);
    await write(db, written, 1000);
    await db.checkpoint();
    await expectAll(db, written);
    await db.stop();
  });

  let isMounted = false;
  beforeEach(() => {
    const disk = path.join(root, 'disk');
    mkdirSync(disk);
    try {
      execFileSync('/bin/mount', ['-t', 'tmpfs', '-o', 'size=2100k', 'tmpfs', disk], { stdio: 'ignore' });
      isMounted = true;
    } catch {
      isMounted = false;
    }
  });
  afterEach(() => {
    if (isMounted) execFileSync('/bin/umount', [path.join(root, 'disk')]);
  });

  it('frees a real one', { timeout: 120_000 }, async (context) => {
    // Only root may mount; elsewhere the disk above has to do.
    if (!isMounted) context.skip();
    await fillsAndRecovers(() => new FileDriver({ path: path.join(root, 'disk', 'data'), durability: 'none' }));
  });
});
