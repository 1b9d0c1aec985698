import { describe, expect, it } from 'vitest';
import { BlockKind } from '../format/block.ts';
import { NodeEntries } from '../format/node-entries.ts';
import { openNode } from '../format/node.ts';
import type { Node } from '../format/node.ts';
import { SingleFlight } from './block-source.ts';

function later(name: string): Promise<Node> {
  const entries = new NodeEntries({ kind: BlockKind.index, level: 0 });
  return Promise.resolve(openNode(name, entries.encode(name, 0, 0)));
}

describe('SharedLoads', () => {
  it('reads once for all who ask meanwhile, and anew for those who ask later', async () => {
    const loads = new SingleFlight();
    let reads = 0;
    const read = (): Promise<Node> => {
      reads++;
      return later('n');
    };
    const [a, b] = await Promise.all([loads.share('n', read), loads.share('n', read)]);
    expect([a === b, reads]).toEqual([true, 1]);
    expect(await loads.share('n', read)).not.toBe(a);
    expect(reads).toBe(2);
    const failing = (): Promise<Node> => Promise.reject(new Error('gone'));
    await expect(loads.share('n', failing)).rejects.toThrow('gone');
    await loads.share('n', read);
    expect(reads).toBe(3);
  });
});
