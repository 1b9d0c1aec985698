/** A program that runs in a context of node:vm: it is bundled, and returns plain values. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StoreDb } from '../../../src/index.ts';
import { FileDriver, MemoryDriver } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';

const fields = {
  id: { typeId: 1 },
  at: { typeId: 13 },
  bytes: { typeId: 16, maxLength: 4 },
  json: { typeId: 14 },
  blob: { typeId: 11 },
} as const;

async function use(driver: StorageDriver): Promise<{ rows: unknown[]; problems: number }> {
  const db = StoreDb({ dbPrefix: 'db', nodeId: 0, driver, logLevel: 'silent' });
  db.registerSchema({ name: 't', version: 1, fields, primaryKey: 'id', indexes: ['at', 'bytes'] });
  await db.start();
  const batch = db.batch();
  const bytes = Buffer.from([1, 2]);
  await batch.insert('t', { id: 1, at: new Date(5), bytes, json: { a: [] }, blob: db.Blob(Buffer.from('hello')) });
  await batch.flush();
  await db.checkpoint();
  const rows = await db.query('t').where('at', '>=', new Date(5)).where('bytes', '=', bytes).execute();
  const told = rows.map(async (row) => ({
    id: row['id'],
    time: (row['at'] as Date).getTime(),
    bytes: Buffer.from(row['bytes'] as Uint8Array).toString('hex'),
    json: row['json'],
    blob: await db.getBlob(row['blob'] as string).getString(),
  }));
  const result = { rows: await Promise.all(told), problems: (await db.verify({ deep: true })).findings.length };
  await db.stop();
  return result;
}

export async function exercise(): Promise<object> {
  const folder = mkdtempSync(join(tmpdir(), 'storedb-realm-'));
  try {
    const inMemory = await use(new MemoryDriver());
    const inFolder = await use(new FileDriver(folder));
    return {
      isBufferBytes: Buffer.from('') instanceof Uint8Array,
      rows: inMemory.rows,
      files: inFolder.rows,
      problems: inMemory.problems + inFolder.problems,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
