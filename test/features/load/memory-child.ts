/**
 * Loads rows that are made when they are asked for, with some memory, with a thread or without, and says how much memory its process used at
 * most.
 */
import { StoreDb, Types } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';

const [folder = '', count = '0', mebibytes = '32', mode] = process.argv.slice(2);
const measurements = {
  name: 'measurements',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, code: { typeId: Types.varchar }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: [{ fields: ['code'], unique: true }],
} as const;

let peak = 0;

/** Returns the bytes in use. Garbage that waits for its collection does not count: how much there is depends on the load of the machine. */
function usedBytes(): number {
  globalThis.gc?.();
  // Buffers that the first collection found are freed by a thread of V8, which the second one waits for.
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

function* rows(): Generator<{ id: number; code: string; text: string }, void, undefined> {
  const all = Number(count);
  for (let i = 0; i < all; i++) {
    if (i % 10_000 === 0) peak = Math.max(peak, usedBytes());
    const id = (i * 7919) % all;
    yield { id, code: `code ${id}`, text: 'abcdefgh'.repeat(20) };
  }
}

/** Looks at the memory when rows are stored, so that merges of runs count. */
class Observed extends FileDriver {
  override put(...request: Parameters<FileDriver['put']>): ReturnType<FileDriver['put']> {
    if (request[0].includes('/staged/')) peak = Math.max(peak, usedBytes());
    return super.put(...request);
  }
}

const db = StoreDb({
  driver: mode === 'merges' ? new Observed(folder) : new FileDriver(folder),
  dbPrefix: 'db',
  nodeId: 0,
  maxMemoryBytes: Number(mebibytes) * 1024 * 1024,
  logLevel: 'error',
});
db.registerSchema(measurements);
await db.start();
const before = usedBytes();
await db.load(measurements, rows(), { thread: mode === 'thread' });
peak = Math.max(peak, usedBytes());
const processBytes = process.resourceUsage().maxRSS * 1024;
const found = await db.query(measurements).count();
process.stdout.write(JSON.stringify({ found, grownBytes: peak - before, processBytes }));
await db.stop();
