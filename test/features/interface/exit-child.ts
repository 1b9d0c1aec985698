/** A script as a user writes it: it must end by itself once it has stopped the database. */
import { StoreDb, Types } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';

const db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver: new FileDriver(process.argv[2] as string), logLevel: 'warn' });
const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.int32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['text'],
} as const;
db.registerSchema(notes);
await db.start();
const batch = db.batch();
void batch.upsert(notes, { id: 1, text: 'hello' });
await batch.flush();
if (process.argv[3] === 'checkpoint') await db.checkpoint();
const rows = await db.query(notes).where('text', '=', 'hello').execute();
await db.stop();
process.stdout.write(JSON.stringify(rows));
