import { describe, expect, it } from 'vitest';
import { realEnvironment } from '../base/env.ts';
import { MemoryBudgetError } from '../base/errors.ts';
import { BlockKind } from '../format/block.ts';
import { NodeEntries } from '../format/node-entries.ts';
import { openCached } from './cached-node.ts';
import type { CachedNode } from './cached-node.ts';
import { Scratch, SharedMemory } from './memory-budget.ts';
import { InstanceMemory } from './instance-memory.ts';

const mebibyte = 1024 * 1024;
const maxBytes = 16 * mebibyte;
const blockBytes = 65_536;

const leafEntries = new NodeEntries({ kind: BlockKind.index, level: 0 });
for (let i = 0; i < 250; i++) leafEntries.addKey(new Uint8Array(250).fill(i));

/** A node of some 62 KB, so that 130 of them fill the part of the budget for blocks. */
function leaf(name: string): CachedNode {
  return openCached(name, leafEntries.encode(name, 0, 250));
}

interface Tenant {
  readonly name: string;
  readonly memory: InstanceMemory;
}

function tenants(shared: SharedMemory, count: number, ownBytes: number = maxBytes): Tenant[] {
  return Array.from({ length: count }, (_, i) => {
    return { name: `t${i}`, memory: new InstanceMemory({ maxBytes: ownBytes, blockBytes, shared }) };
  });
}

/** Reads a block as a tree does: from the cache, or else from the store into the cache. Returns whether it was a hit. */
function ask({ name, memory }: Tenant, i: number, passing = false): boolean {
  const block = `${name}/${i}`;
  if (memory.cache.find(block, passing)?.node !== undefined) return true;
  memory.cache.add(leaf(block), passing);
  return false;
}

function present({ name, memory }: Tenant, count: number): number {
  let found = 0;
  for (let i = 0; i < count; i++) if (memory.cache.peek(`${name}/${i}`)?.node !== undefined) found++;
  return found;
}

describe('SharedMemory', () => {
  it('bounds the blocks of all, and evicts those of idle tenants first', () => {
    const shared = new SharedMemory(maxBytes, blockBytes);
    const [busy, ...idle] = tenants(shared, 9) as [Tenant, ...Tenant[]];
    for (const tenant of idle) for (let i = 0; i < 15; i++) ask(tenant, i);
    for (const tenant of idle) expect(present(tenant, 15)).toBe(15);
    for (let round = 0; round < 3; round++) for (let i = 0; i < 100; i++) ask(busy, i);
    expect(shared.queues.sizeBytes).toBeLessThanOrEqual(maxBytes / 2);
    expect(shared.queues.sizeBytes).toBeGreaterThan(maxBytes * 0.49);
    expect(present(busy, 100)).toBe(100);
    const left = idle.reduce((sum, tenant) => sum + present(tenant, 15), 0);
    expect(left).toBeLessThan(35);
    expect(left).toBeGreaterThan(15);
    const parts = [busy, ...idle].reduce((sum, { memory }) => sum + memory.cache.sizeBytes, 0);
    expect(parts).toBe(shared.queues.sizeBytes);
  });

  it('a tenant that reads the same blocks repeatedly keeps them, although others load blocks once', () => {
    const shared = new SharedMemory(maxBytes, blockBytes);
    const [hot, ...others] = tenants(shared, 20) as [Tenant, ...Tenant[]];
    for (let i = 0; i < 40; i++) ask(hot, i);
    for (let i = 0; i < 40; i++) ask(hot, i);
    let misses = 0;
    for (let step = 0; step < 2000; step++) {
      if (!ask(hot, step % 40)) misses++;
      ask(others[step % others.length] as Tenant, step);
    }
    expect(misses).toBe(0);
  });

  it('a scan of one tenant takes nothing from the working sets of the others', () => {
    const shared = new SharedMemory(maxBytes, blockBytes);
    const [scanning, ...others] = tenants(shared, 9) as [Tenant, ...Tenant[]];
    for (let round = 0; round < 2; round++) {
      for (const tenant of others) for (let i = 0; i < 14; i++) ask(tenant, i);
    }
    for (let i = 0; i < 3000; i++) ask(scanning, i, true);
    for (const tenant of others) expect(present(tenant, 14)).toBeGreaterThanOrEqual(13);
    expect(shared.queues.sizeBytes).toBeLessThanOrEqual(maxBytes / 2);
  });

  it('holds a tenant to a bound of its own, and lets its own blocks go for it', () => {
    const shared = new SharedMemory(maxBytes, blockBytes);
    const [other] = tenants(shared, 1) as [Tenant];
    const [bound] = tenants(shared, 2, 2 * mebibyte).slice(1) as [Tenant];
    for (let i = 0; i < 20; i++) ask(other, i);
    for (let i = 0; i < 5; i++) ask(bound, i);
    for (let i = 0; i < 200; i++) {
      for (let hot = 0; hot < 5; hot++) ask(bound, hot);
      ask(bound, i);
      expect(bound.memory.cache.sizeBytes).toBeLessThanOrEqual(mebibyte);
    }
    expect(present(bound, 5)).toBe(5);
    expect(present(other, 20)).toBe(20);
    expect(bound.memory.stats()).toMatchObject({ maxBytes: 2 * mebibyte, cacheLimitBytes: mebibyte });
    expect(bound.memory.stats().budget).toMatchObject({ maxBytes, instances: 3, cacheLimitBytes: maxBytes / 2 });
    // Blocks read by a scan are not held instead.
    for (let i = 1000; i < 1100; i++) ask(bound, i, true);
    expect(present(bound, 5)).toBe(5);
  });

  it('gives back all that a tenant has taken when it leaves, and counts nothing of it afterwards', () => {
    const shared = new SharedMemory(maxBytes, blockBytes);
    const [going, staying] = tenants(shared, 2) as [Tenant, Tenant];
    for (let i = 0; i < 30; i++) ask(going, i);
    for (let i = 0; i < 10; i++) ask(staying, i);
    const scratch = new Scratch(going.memory);
    scratch.add(mebibyte);
    going.memory.setCommitted(mebibyte);
    expect(going.memory.beginReadAhead(blockBytes)).toBe(true);
    expect(shared).toMatchObject({ count: 2, committedBytes: mebibyte, scratchBytes: mebibyte });
    going.memory.close();
    going.memory.close();
    expect(shared).toMatchObject({ count: 1, committedBytes: 0, scratchBytes: 0, cacheLimitBytes: maxBytes / 2 });
    expect(shared.queues.sizeBytes).toBe(staying.memory.cache.sizeBytes);
    expect(present(staying, 10)).toBe(10);
    // A running query goes on for a moment.
    expect(ask(going, 0)).toBe(false);
    expect(ask(going, 0)).toBe(false);
    scratch.add(mebibyte);
    scratch.release();
    going.memory.endReadAhead(blockBytes);
    going.memory.setCommitted(2 * mebibyte);
    expect(shared).toMatchObject({ count: 1, committedBytes: 0, scratchBytes: 0 });
    expect(shared.queues.sizeBytes).toBe(staying.memory.cache.sizeBytes);
    expect(shared.hasReadAheadRoom(mebibyte)).toBe(true);
    expect(shared.hasReadAheadRoom(mebibyte + 1)).toBe(false);
  });

  it('bounds the memory of all queries, but leaves room for small ones, and names the budget', () => {
    const shared = new SharedMemory(maxBytes, blockBytes);
    const [large, small] = tenants(shared, 2) as [Tenant, Tenant];
    const scratch = new Scratch(large.memory);
    scratch.add(11.9 * mebibyte);
    expect(() => scratch.add(0.2 * mebibyte)).toThrow(MemoryBudgetError);
    expect(() => scratch.add(0.2 * mebibyte)).toThrow(/of all instances that share it.*MemoryBudget \(16777216\)/);
    const other = new Scratch(small.memory);
    other.add(0.2 * mebibyte);
    expect(() => other.add(0.5 * mebibyte)).toThrow(MemoryBudgetError);
    expect(shared.scratchBytes).toBeLessThanOrEqual(maxBytes * 0.875);
    expect(shared.cacheLimitBytes).toBe(mebibyte);
    scratch.release();
    other.add(0.5 * mebibyte);
    other.release();
    expect(shared.scratchBytes).toBe(0);
    const [, bound] = tenants(shared, 2, 2 * mebibyte) as [Tenant, Tenant];
    expect(() => new Scratch(bound.memory).add(2 * mebibyte)).toThrow(/maxMemoryBytes \(2097152\)/);
  });

  it('lets the tenant merge that has most commits waiting, one after the other, until the rest fit', async () => {
    const shared = new SharedMemory(maxBytes, blockBytes);
    const merged: string[] = [];
    const waiting = new Map<string, InstanceMemory>();
    const join = (name: string, works: boolean): InstanceMemory => {
      const merge = async (): Promise<void> => {
        merged.push(name);
        await Promise.resolve();
        if (works) waiting.get(name)?.setCommitted(0);
      };
      const memory = new InstanceMemory({ maxBytes, blockBytes, shared });
      memory.mergeWith(merge);
      waiting.set(name, memory);
      return memory;
    };
    const [a, b, c] = [join('a', true), join('b', true), join('c', false)];
    a.setCommitted(0.5 * mebibyte);
    b.setCommitted(0.6875 * mebibyte);
    c.setCommitted(0.75 * mebibyte);
    expect(merged).toEqual([]);
    expect(a.waitingRoomBytes).toBe(2.5625 * mebibyte);
    a.setCommitted(0.625 * mebibyte);
    await realEnvironment.yieldToEventLoop();
    // The instance with the most commits cannot merge: it is not tried again before it has other commits.
    expect(merged).toEqual(['c', 'b']);
    expect(shared.committedBytes).toBe(1.375 * mebibyte);
    a.setCommitted(4 * mebibyte);
    // An instance that writes meanwhile has room for a little, not more.
    expect(b.waitingRoomBytes).toBe(128 * 1024);
    await realEnvironment.yieldToEventLoop();
    expect(merged).toEqual(['c', 'b', 'a']);
    expect(shared.committedBytes).toBe(0.75 * mebibyte);
  });
});
