/** Compressed and encrypted databases, and the objects in their stores. */
import { StoreDb, Types, defineSchema } from '../../../src/index.ts';
import type { Database, StoreDbOptions } from '../../../src/index.ts';
import { isEnvelope } from '../../../src/format/envelope.ts';
import { listAll } from '../../../src/storage/contract/driver.ts';
import type { StorageDriver } from '../../../src/storage/contract/driver.ts';

export const schema = defineSchema({
  name: 'notes',
  version: 1,
  primaryKey: 'id',
  indexes: ['rank'],
  fields: {
    id: { typeId: Types.varchar, maxLength: 40 },
    rank: { typeId: Types.uint32 },
    text: { typeId: Types.varchar, maxLength: 400 },
    photo: { typeId: Types.blob },
  },
});

export const prefix = 'shop/notes';
/** What is looked for in stores where it must not be. */
export const secret = 'a word that nobody else may read';

export function keyOf(byte: number): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, i) => (byte * 31 + i * 7) % 256);
}

/** Keys by the ids `1`, `2` and so on, and the current one. */
export function keys(count: number, current: number | null = count): NonNullable<StoreDbOptions['encryption']> {
  const byId = Array.from({ length: count }, (_, i) => [`key-${i + 1}`, keyOf(i + 1)] as const);
  return { keys: Object.fromEntries(byId), current: current === null ? null : `key-${current}` };
}

/** Opens it, and registers the table. */
export async function open(driver: StorageDriver, options: Partial<StoreDbOptions> = {}): Promise<Database> {
  const db = StoreDb({
    dbPrefix: prefix,
    nodeId: 0,
    driver,
    logLevel: 'silent',
    polling: 'onDemand',
    // So that there are objects, and not only roots that are a part of Block 0.
    blockSizeBytes: 4096,
    ...options,
  });
  await db.start();
  db.registerSchema(schema);
  return db;
}

/** Adds rows, each with the secret and some with blobs that hold it, and merges all but the last of them. */
export async function fill(db: Database, count: number): Promise<void> {
  for (const [from, to] of [
    [0, count - 5],
    [count - 5, count],
  ] as const) {
    const batch = db.batch();
    for (let i = from; i < to; i++) {
      const photo = i % 50 === 0 ? db.Blob(secret.repeat(1 + i * 20), { contentType: 'text/plain' }) : null;
      await batch.insert(schema, { id: `note-${i}`, rank: i % 7, text: `${i} ${secret}`, photo });
    }
    await batch.flush();
    if (to < count) await db.checkpoint();
  }
}

export async function objectsOf(driver: StorageDriver, under: string = prefix): Promise<Map<string, Uint8Array>> {
  const objects = new Map<string, Uint8Array>();
  for await (const { key } of listAll(driver, `${under}/`)) {
    const found = await driver.get(key);
    if (found.status === 'found') objects.set(key.slice(under.length + 1), found.bytes);
  }
  return objects;
}

/** Names of objects that are not in an envelope. */
export function bare(objects: ReadonlyMap<string, Uint8Array>): string[] {
  return [...objects].filter(([, bytes]) => !isEnvelope(bytes)).map(([name]) => name);
}

/** Whether a text is in an object as it is. */
export function holds(bytes: Uint8Array, text: string): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(text);
}
