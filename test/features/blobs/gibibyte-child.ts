/**
 * Writes a blob of a given size into a folder and reads it back, in a process of its own: what it reports is how much
 * its memory grew. Run by gibibyte.slow.test.ts.
 */
import { crc32 } from 'node:zlib';
import { defineSchema, StoreDb, Types } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';

const [folder, size] = process.argv.slice(2) as [string, string];
const sizeBytes = Number(size);
const pieceBytes = 256 * 1024;

const files = defineSchema({
  name: 'files',
  version: 1,
  fields: { id: { typeId: Types.uint8 }, data: { typeId: Types.blob } },
  primaryKey: 'id',
});

let most = 0;
function watch(): void {
  most = Math.max(most, process.memoryUsage.rss());
}

let written = 0;
/** Each piece differs from the others, and they come in the same memory. */
async function* pieces(): AsyncGenerator<Buffer> {
  const piece = Buffer.alloc(pieceBytes, 'StoreDb');
  for (let at = 0; at < sizeBytes; at += pieceBytes) {
    piece.writeDoubleLE(at, 0);
    written = crc32(piece, written);
    watch();
    yield piece;
  }
}

// Durability would only measure the disk.
const driver = new FileDriver({ path: folder, durability: 'none' });
const db = StoreDb({ dbPrefix: 'db', nodeId: 0, driver, logLevel: 'silent', maxMemoryBytes: 16 * 1024 * 1024 });
db.registerSchema(files);
await db.start();
const before = process.memoryUsage.rss();
const batch = db.batch();
void batch.insert(files, { id: 1, data: db.Blob(pieces()) });
await batch.flush();
const blob = db.getBlob(String((await db.get(files, 1))?.data));
let read = 0;
let readBytes = 0;
for await (const piece of blob.stream()) {
  read = crc32(piece as Buffer, read);
  readBytes += (piece as Buffer).length;
  watch();
}
await db.stop();
process.stdout.write(JSON.stringify({ written, read, readBytes, grownBytes: most - before }));
