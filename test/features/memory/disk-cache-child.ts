/**
 * Puts blocks into a cache on disk and reads them, in a process of its own beside others that do the same with the same
 * blocks, for some two seconds. Run by disk-cache.slow.test.ts.
 */
import { DiskCacheDriver } from '../../../src/storage/index.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';

const [folder, maxSizeBytes, seed] = process.argv.slice(2) as [string, string, string];
const cache = new DiskCacheDriver({ path: folder, maxSizeBytes: Number(maxSizeBytes) });
const random = new SeededRandom(seed);
const sizeBytes = 16_000;

function block(i: number): Uint8Array {
  return new Uint8Array(sizeBytes).fill(i & 0xff);
}

let hits = 0;
let wrong = 0;
for (const endMs = Date.now() + 3000; Date.now() < endMs; ) {
  const i = random.integer(0, 120);
  const found = await cache.get(`db/${i}`);
  if (found === undefined) await cache.set(`db/${i}`, block(i));
  else if (Buffer.compare(found, block(i)) === 0) hits++;
  else wrong++;
}
await cache.idle();
process.stdout.write(JSON.stringify({ hits, wrong }));
