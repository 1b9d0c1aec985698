import { describe, expect, it } from 'vitest';
import { BlockKind } from '../format/block.ts';
import { NodeEntries } from '../format/node-entries.ts';
import { openCached } from './cached-node.ts';
import type { CachedNode } from './cached-node.ts';
import { BlockCache } from './block-cache.ts';
import { CollectionHint } from './eviction-queues.ts';

/** A node of about `keys` times 100 bytes. */
function nodeOf(name: string, keys = 10): CachedNode {
  const entries = new NodeEntries({ kind: BlockKind.index, level: 0 });
  for (let i = 0; i < keys; i++) entries.addKey(new Uint8Array(100).fill(i));
  return openCached(name, entries.encode(name, 0, keys));
}

/** An inner node of nearly the same size. */
function innerNode(name: string): CachedNode {
  const entries = new NodeEntries({ kind: BlockKind.inner, level: 1 });
  for (let i = 0; i < 8; i++) {
    entries.addChild(new Uint8Array(90).fill(i), { birth: 1, id: '0'.repeat(16), count: 1, sizeBytes: 1 });
  }
  return openCached(name, entries.encode(name, 0, 8));
}

const entryBytes = nodeOf('x').sizeBytes + 256;

describe('BlockCache', () => {
  it('never holds more than it may, and empties the entries of evicted blocks', () => {
    const cache = new BlockCache(entryBytes * 5);
    const entries = Array.from({ length: 40 }, (_, i) => cache.add(nodeOf(`n${i}`)));
    expect(cache.sizeBytes).toBeLessThanOrEqual(entryBytes * 5);
    expect(cache.count).toBe(5);
    for (const entry of entries) expect(entry.node === undefined).toBe(cache.find(entry.name) === undefined);
    expect(entries[39]?.node).toBeDefined();
    expect(entries.filter((entry) => entry.node !== undefined)).toHaveLength(5);
  });

  it('reports the memory of evicted blocks, and half of that of blocks that passed through', () => {
    let hints = 0;
    const mebibyte = 1024 * 1024;
    const told = (work: (cache: BlockCache) => void): number => {
      hints = 0;
      work(new BlockCache(10 * mebibyte, 65_536, new CollectionHint(mebibyte, () => hints++)));
      return hints;
    };
    const entries = new NodeEntries({ kind: BlockKind.index, level: 0 });
    for (let i = 0; i < 250; i++) entries.addKey(new Uint8Array(250).fill(i));
    const add = (cache: BlockCache, blocks: number, passing: boolean): void => {
      for (let i = 0; i < blocks; i++) cache.add(openCached(`n${i}`, entries.encode(`n${i}`, 0, 250)), passing);
    };
    // Blocks of some 62 KB each, so that 168 fill the cache. A hint comes every 16 MiB, which are some 270 blocks.
    expect(told((cache) => add(cache, 400, false))).toBe(0);
    expect(told((cache) => add(cache, 500, false))).toBe(1);
    expect(told((cache) => add(cache, 500, true))).toBe(0);
    expect(told((cache) => add(cache, 800, true))).toBe(1);
  });

  it('spares blocks used since the hand passed', () => {
    const cache = new BlockCache(entryBytes * 4);
    cache.add(nodeOf('favourite'));
    for (let i = 0; i < 50; i++) {
      expect(cache.find('favourite')).toBeDefined();
      cache.add(nodeOf(`n${i}`));
    }
    expect(cache.find('favourite')?.node?.name).toBe('favourite');
  });

  it('holds a node once', () => {
    const cache = new BlockCache(entryBytes * 4);
    const entry = cache.add(nodeOf('n'));
    expect(cache.add(nodeOf('n'))).toBe(entry);
    expect([cache.count, cache.sizeBytes]).toEqual([1, entryBytes]);
  });

  it('does not hold a node that is larger than it is', () => {
    const cache = new BlockCache(entryBytes);
    cache.add(nodeOf('small'));
    const entry = cache.add(nodeOf('large', 50));
    expect(entry.node).toBeUndefined();
    expect(cache.find('large')).toBeUndefined();
    expect(cache.find('small')?.node).toBeDefined();
    expect(new BlockCache(0).add(nodeOf('any')).node).toBeUndefined();
  });

  it('counts the growth of nodes, and evicts others, or the node itself if it outgrows the cache', () => {
    const cache = new BlockCache(entryBytes * 3);
    const nodes = ['a', 'b', 'c'].map((name) => nodeOf(name));
    const entries = nodes.map((node) => cache.add(node));
    expect(cache.count).toBe(3);
    nodes[1]?.lowerBound(new Uint8Array(200).fill(3));
    expect(cache.sizeBytes).toBeLessThanOrEqual(entryBytes * 3);
    expect(cache.count).toBe(2);
    expect(entries[1]?.node).toBeDefined();
    expect(entries[1]?.bytes).toBe(entryBytes + 40);
    nodes[1]?.grow(entryBytes * 3);
    expect(entries[1]?.node).toBeUndefined();
    expect(cache.find('b')).toBeUndefined();
    expect(cache.count).toBe(1);
    expect(cache.sizeBytes).toBe(entryBytes);
  });

  it('is not confused by nodes that grow after they went, and knows their size when they come back', () => {
    const cache = new BlockCache(entryBytes * 2);
    const node = nodeOf('a');
    cache.add(node);
    cache.clear();
    expect([cache.count, cache.sizeBytes]).toEqual([0, 0]);
    node.lowerBound(new Uint8Array(200));
    expect(cache.sizeBytes).toBe(0);
    expect(cache.add(node).bytes).toBe(entryBytes + 40);
    expect(cache.sizeBytes).toBe(entryBytes + 40);
  });

  it('stays right through many uses in any order', () => {
    const cache = new BlockCache(entryBytes * 7);
    let state = 1;
    for (let i = 0; i < 3000; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      const name = `n${(state >>> 16) % 30}`;
      const entry = cache.find(name) ?? cache.add(nodeOf(name, 1 + ((state >>> 8) % 20)));
      if ((state & 15) === 0) entry.node?.lowerBound(new Uint8Array(200));
      expect(cache.sizeBytes).toBeLessThanOrEqual(entryBytes * 7);
    }
    const names = Array.from({ length: 30 }, (_, i) => cache.find(`n${i}`)).filter((entry) => entry !== undefined);
    expect(names).toHaveLength(cache.count);
    expect(names.reduce((sum, entry) => sum + entry.bytes, 0)).toBe(cache.sizeBytes);
  });

  it('is not washed out by a scan, whether or not it shares blocks with repeated reads', () => {
    const cache = new BlockCache(entryBytes * 100);
    const again = Array.from({ length: 60 }, (_, i) => `again${i}`);
    for (let round = 0; round < 2; round++) for (const name of again) if (!cache.find(name)) cache.add(nodeOf(name));
    for (let i = 0; i < 2000; i++) cache.add(nodeOf(`scan${i}`), true);
    for (const name of again) cache.find(name, true);
    for (let i = 0; i < 2000; i++) cache.add(nodeOf(`scan${i}`), true);
    expect(again.filter((name) => cache.find(name) !== undefined)).toHaveLength(60);
  });

  it('forgets blocks that were read repeatedly once other blocks are', () => {
    const cache = new BlockCache(entryBytes * 50);
    for (const prefix of ['old', 'new']) {
      const names = Array.from({ length: 40 }, (_, i) => `${prefix}${i}`);
      for (let round = 0; round < 6; round++) for (const name of names) if (!cache.find(name)) cache.add(nodeOf(name));
      expect(names.filter((name) => cache.find(name, true) !== undefined).length).toBeGreaterThan(36);
    }
  });

  it('keeps a block that comes back soon after its eviction, unless a scan read it', () => {
    const cache = new BlockCache(entryBytes * 10);
    const fill = (prefix: string): void => {
      for (let i = 0; i < 20; i++) cache.add(nodeOf(`${prefix}${i}`));
    };
    cache.add(nodeOf('back'));
    cache.add(nodeOf('passed'));
    fill('a');
    expect([cache.find('back'), cache.find('passed')]).toEqual([undefined, undefined]);
    cache.add(nodeOf('back'));
    cache.add(nodeOf('passed'), true);
    fill('b');
    fill('c');
    expect(cache.find('back')).toBeDefined();
    expect(cache.find('passed')).toBeUndefined();
  });

  it('holds blocks of a scan if there is room, or if scans read them repeatedly', () => {
    const cache = new BlockCache(entryBytes * 10);
    const scan = (prefix: string): number => {
      let found = 0;
      for (let i = 0; i < 8; i++) {
        if (cache.find(`${prefix}${i}`, true) === undefined) cache.add(nodeOf(`${prefix}${i}`), true);
        else found++;
      }
      return found;
    };
    expect([scan('a'), scan('a'), scan('b'), scan('a')]).toEqual([0, 8, 0, 8]);
    for (let round = 0; round < 3; round++) scan('b');
    expect(scan('b')).toBeGreaterThan(6);
  });

  it('holds on to inner nodes while there are leaves to evict', () => {
    const cache = new BlockCache(entryBytes * 40);
    const inner = Array.from({ length: 8 }, (_, i) => innerNode(`inner${i}`));
    for (const node of inner) cache.add(node);
    for (let i = 0; i < 500; i++) {
      const entry = cache.find(`leaf${i % 70}`) ?? cache.add(nodeOf(`leaf${i % 70}`));
      expect(entry.name).toBe(`leaf${i % 70}`);
    }
    expect(inner.filter(({ name }) => cache.find(name) !== undefined)).toHaveLength(8);
    expect(cache.innerBytes + cache.leafBytes).toBe(cache.sizeBytes);
    expect(cache.innerBytes).toBe(inner.reduce((sum, node) => sum + node.memoryBytes + 256, 0));
  });

  it('gives inner nodes more room the more of them are missed, and leaves when those are', () => {
    const cache = new BlockCache(entryBytes * 40);
    const read = (name: string, make: (name: string) => CachedNode): void => {
      if (cache.find(name) === undefined) cache.add(make(name));
    };
    const innerShare = (): number => cache.innerBytes / cache.sizeBytes;
    for (let round = 0; round < 30; round++) {
      for (let i = 0; i < 150; i++) read(`inner${i}`, innerNode);
      for (let i = 0; i < 10; i++) read(`leaf${i}`, nodeOf);
    }
    expect(innerShare()).toBeGreaterThan(0.6);
    for (let round = 0; round < 30; round++) for (let i = 0; i < 60; i++) read(`leaf${i}`, nodeOf);
    expect(innerShare()).toBeLessThan(0.5);
  });

  it('shrinks when its limit does', () => {
    const cache = new BlockCache(entryBytes * 20);
    for (let i = 0; i < 20; i++) cache.add(nodeOf(`n${i}`));
    expect(cache.count).toBe(20);
    cache.setLimit(entryBytes * 5);
    expect(cache.count).toBe(5);
    cache.setLimit(0);
    expect([cache.count, cache.sizeBytes]).toEqual([0, 0]);
  });
});
