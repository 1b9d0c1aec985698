/** The application: notes of the last day. */
import { StoreDb, Types } from 'store-db';

const schema = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar }, at: { typeId: Types.timestamp } },
  primaryKey: 'id',
  indexes: ['at'],
};

const dayMs = 24 * 60 * 60 * 1000;

/** In production the driver is that of a bucket. */
export async function openNotes(driver) {
  const db = StoreDb({ dbPrefix: 'notes', nodeId: 0, driver, polling: 'onDemand', logLevel: 'warn' });
  db.registerSchema(schema);
  await db.start();
  return {
    async add(id, text) {
      const batch = db.batch();
      await batch.insert('notes', { id, text, at: new Date() });
      await batch.flush();
    },
    async recent() {
      const since = new Date(Date.now() - dayMs);
      const rows = await db.query('notes').where('at', '>', since).execute();
      return rows.map((row) => row.text);
    },
    close: () => db.stop(),
  };
}
