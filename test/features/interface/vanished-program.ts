/** A program whose installation is taken away while it runs: it uses the database afterwards. Told the folders of both. */
import { rmSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { defineSchema, StoreDb, Types } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';

const [installation, data] = process.argv.slice(2) as [string, string];
const notes = defineSchema({
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['text'],
});
const db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver: new FileDriver(data), logLevel: 'silent' });
db.registerSchema(notes);
await db.start();
await db.get(notes, 1);
await wait(6000);
rmSync(installation, { recursive: true });

const batch = db.batch();
await batch.insert(notes, { id: 1, text: 'first' });
await batch.flush();
await db.transaction(async (tx) => {
  await tx.upsert(notes, { id: 2, text: 'second' });
});
await db.checkpoint();
const found = await db.query(notes).where('text', '=', 'second').execute();
const count = await db.query(notes).count();
const { deletedCount } = await db.gc();
const { findings } = await db.verify();
await db.stop();
process.stdout.write(JSON.stringify([found, count, typeof deletedCount, findings]));
