/** The application: notes of the last day. */
import { defineSchema, StoreDb, Types } from 'store-db';
import type { StorageDriver } from 'store-db/lib/storage';

const notes = defineSchema({
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar }, at: { typeId: Types.timestamp } },
  primaryKey: 'id',
  indexes: ['at'],
});

const dayMs = 24 * 60 * 60 * 1000;

export interface Notes {
  add(id: number, text: string): Promise<void>;
  recent(): Promise<string[]>;
  close(): Promise<void>;
}

/** In production the driver is that of a bucket. */
export async function openNotes(driver: StorageDriver): Promise<Notes> {
  const db = StoreDb({ dbPrefix: 'notes', nodeId: 0, driver, polling: 'onDemand', logLevel: 'warn' });
  db.registerSchema(notes);
  await db.start();
  return {
    async add(id, text) {
      const batch = db.batch();
      await batch.insert(notes, { id, text, at: new Date() });
      await batch.flush();
    },
    async recent() {
      const since = new Date(Date.now() - dayMs);
      const rows = await db.query(notes).where('at', '>', since).execute();
      return rows.map((row) => row.text ?? '');
    },
    close: () => db.stop(),
  };
}
