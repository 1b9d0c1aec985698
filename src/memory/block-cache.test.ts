import { describe, expect, it } from 'vitest';
import { BlockKind } from '../format/block.ts';
import { NodeEntries } from '../format/node-entries.ts';
import { openNode } from '../format/node.ts';
import type { Node } from '../format/node.ts';
import { BlockCache } from './block-cache.ts';

/** A node of about `keys` times 100 bytes. */
function nodeOf(name: string, keys = 10): Node {
  const entries = new NodeEntries({ kind: BlockKind.index, level: 0 });
  for (let i = 0; i < keys; i++) entries.addKey(new Uint8Array(100).fill(i));
  return openNode(name, entries.encode(name, 0, keys));
}

const slotBytes = nodeOf('x').sizeBytes + 256;

describe('BlockCache', () => {
  it('never holds more than it may, and empties the slots of what goes', () => {
    const cache = new BlockCache(slotBytes * 5);
    const slots = Array.from({ length: 40 }, (_, i) => cache.add(nodeOf(`n${i}`)));
    expect(cache.sizeBytes).toBeLessThanOrEqual(slotBytes * 5);
    expect(cache.count).toBe(5);
    for (const slot of slots) expect(slot.node === undefined).toBe(cache.find(slot.name) === undefined);
    expect(slots[39]?.node).toBeDefined();
    expect(slots.filter((slot) => slot.node !== undefined)).toHaveLength(5);
  });

  it('spares what was used since the hand passed', () => {
    const cache = new BlockCache(slotBytes * 4);
    cache.add(nodeOf('favourite'));
    for (let i = 0; i < 50; i++) {
      expect(cache.find('favourite')).toBeDefined();
      cache.add(nodeOf(`n${i}`));
    }
    expect(cache.find('favourite')?.node?.name).toBe('favourite');
  });

  it('holds a node once', () => {
    const cache = new BlockCache(slotBytes * 4);
    const slot = cache.add(nodeOf('n'));
    expect(cache.add(nodeOf('n'))).toBe(slot);
    expect([cache.count, cache.sizeBytes]).toEqual([1, slotBytes]);
  });

  it('does not hold a node that is larger than it is', () => {
    const cache = new BlockCache(slotBytes);
    cache.add(nodeOf('small'));
    const slot = cache.add(nodeOf('large', 50));
    expect(slot.node).toBeUndefined();
    expect(cache.find('large')).toBeUndefined();
    expect(cache.find('small')?.node).toBeDefined();
    expect(new BlockCache(0).add(nodeOf('any')).node).toBeUndefined();
  });

  it('counts what nodes grow by, and evicts others, or the node itself where it outgrows the cache', () => {
    const cache = new BlockCache(slotBytes * 3);
    const nodes = ['a', 'b', 'c'].map((name) => nodeOf(name));
    const slots = nodes.map((node) => cache.add(node));
    expect(cache.count).toBe(3);
    nodes[1]?.lowerBound(new Uint8Array(200).fill(3));
    expect(cache.sizeBytes).toBeLessThanOrEqual(slotBytes * 3);
    expect(cache.count).toBe(2);
    expect(slots[1]?.node).toBeDefined();
    expect(slots[1]?.bytes).toBe(slotBytes + 40);
    nodes[1]?.onGrow?.(slotBytes * 3);
    expect(slots[1]?.node).toBeUndefined();
    expect(cache.find('b')).toBeUndefined();
    expect(cache.count).toBe(1);
    expect(cache.sizeBytes).toBe(slotBytes);
  });

  it('is not confused by nodes that grow after they went, and knows their size when they come back', () => {
    const cache = new BlockCache(slotBytes * 2);
    const node = nodeOf('a');
    cache.add(node);
    cache.clear();
    expect([cache.count, cache.sizeBytes]).toEqual([0, 0]);
    node.lowerBound(new Uint8Array(200));
    expect(cache.sizeBytes).toBe(0);
    expect(cache.add(node).bytes).toBe(slotBytes + 40);
    expect(cache.sizeBytes).toBe(slotBytes + 40);
  });

  it('stays right through many uses in any order', () => {
    const cache = new BlockCache(slotBytes * 7);
    let state = 1;
    for (let i = 0; i < 3000; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      const name = `n${(state >>> 16) % 30}`;
      const slot = cache.find(name) ?? cache.add(nodeOf(name, 1 + ((state >>> 8) % 20)));
      if ((state & 15) === 0) slot.node?.lowerBound(new Uint8Array(200));
      expect(cache.sizeBytes).toBeLessThanOrEqual(slotBytes * 7);
    }
    const names = Array.from({ length: 30 }, (_, i) => cache.find(`n${i}`)).filter((slot) => slot !== undefined);
    expect(names).toHaveLength(cache.count);
    expect(names.reduce((sum, slot) => sum + slot.bytes, 0)).toBe(cache.sizeBytes);
  });
});
