/**
 * Loads blocks, a few at a time, after what shares them has grown old. Says what they take once the young ones were
 * collected, as it happens all the time.
 */
import { setImmediate, setTimeout } from 'node:timers/promises';
import { BlockKind } from '../../../src/format/block.ts';
import { NodeEntries } from '../../../src/format/node-entries.ts';
import { openNode } from '../../../src/format/node.ts';
import type { Node } from '../../../src/format/node.ts';
import { SingleFlight } from '../../../src/tree/block-source.ts';

const collect = (globalThis as unknown as { gc: (options?: { readonly type: 'minor' }) => void }).gc;
const loads = new SingleFlight();
const underWay: Promise<Node>[] = [];

/** A block of some 64 KiB. */
async function read(name: string): Promise<Node> {
  await setImmediate();
  const entries = new NodeEntries({ kind: BlockKind.index, level: 0 });
  for (let i = 0; i < 250; i++) entries.addKey(new Uint8Array(250).fill(i));
  return openNode(name, entries.encode(name, 0, 250));
}

async function load(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    underWay.push(loads.share(`${i}`, () => read(`${i}`)));
    if (underWay.length > 8) await underWay.shift();
  }
}

await load(50);
collect();
collect();
await load(400);
for (let i = 0; i < 3; i++) {
  collect({ type: 'minor' });
  // Their memory is freed in the background.
  await setTimeout(50);
}
process.stdout.write(`${process.memoryUsage().arrayBuffers}\n`);
