/**
 * Has 400 MiB of blocks come into a cache and go, with hints as a budget of so many MiB gives them. Says how often the runtime
 * looked through all of its memory meanwhile.
 */
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { BlockKind } from '../../../src/format/block.ts';
import { NodeEntries } from '../../../src/format/node-entries.ts';
import { openCached } from '../../../src/cache/cached-node.ts';
import { BlockCache } from '../../../src/cache/block-cache.ts';
import { CollectionHint } from '../../../src/cache/eviction-queues.ts';

const mebibyte = 1024 * 1024;
let looks = 0;
const observer = new PerformanceObserver((list) => {
  for (const entry of list.getEntries() as unknown as readonly { readonly detail: { readonly kind: number } }[]) {
    if (entry.detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) looks++;
  }
});
observer.observe({ entryTypes: ['gc'] });

const cache = new BlockCache(12 * mebibyte, 65_536, new CollectionHint(Number(process.argv[2]) * mebibyte));
const entries = new NodeEntries({ kind: BlockKind.index, level: 0 });
for (let i = 0; i < 250; i++) entries.addKey(new Uint8Array(250).fill(i));
for (let i = 0; i < 6400; i++) {
  const name = `block ${i}`;
  cache.add(openCached(name, entries.encode(name, 0, 250)));
  if (i % 64 === 0) await setImmediate();
}
await setTimeout(20);
process.stdout.write(`${looks}\n`);
