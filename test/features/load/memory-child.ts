/** Loads rows that are made when they are asked for, and says how much memory the process took at most while they came. */
import { StoreDb, Types } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';

const [folder = '', count = '0'] = process.argv.slice(2);
const measurements = {
  name: 'measurements',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, code: { typeId: Types.varchar }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: [{ fields: ['code'], unique: true }],
} as const;

let peak = 0;
let longestMs = 0;
let last = performance.now();
const timer = setInterval(() => {
  longestMs = Math.max(longestMs, performance.now() - last);
  last = performance.now();
}, 1);

function* rows(): Generator<{ id: number; code: string; text: string }, void, undefined> {
  const all = Number(count);
  for (let i = 0; i < all; i++) {
    if (i % 1000 === 0) peak = Math.max(peak, process.memoryUsage().rss);
    const id = (i * 7919) % all;
    yield { id, code: `code ${id}`, text: 'abcdefgh'.repeat(20) };
  }
}

const db = StoreDb({
  driver: new FileDriver(folder),
  dbPrefix: 'db',
  nodeId: 0,
  maxMemoryBytes: 32 * 1024 * 1024,
  logLevel: 'error',
});
db.registerSchema(measurements);
await db.start();
const before = process.memoryUsage().rss;
await db.load(measurements, rows());
peak = Math.max(peak, process.memoryUsage().rss);
clearInterval(timer);
const found = await db.query(measurements).count();
process.stdout.write(JSON.stringify({ found, grownBytes: peak - before, longestMs }));
await db.stop();
