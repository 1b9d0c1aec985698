import { describe, expect, it } from 'vitest';
import { MemoryBudgetError } from '../base/errors.ts';
import { BlockKind } from '../format/block.ts';
import { NodeEntries } from '../format/node-entries.ts';
import { openCached } from './cached-node.ts';
import type { CachedNode } from './cached-node.ts';
import { Scratch } from './memory-budget.ts';
import { InstanceMemory } from './instance-memory.ts';

const mebibyte = 1024 * 1024;
const maxBytes = 16 * mebibyte;

function leaf(name: string): CachedNode {
  const entries = new NodeEntries({ kind: BlockKind.index, level: 0 });
  for (let i = 0; i < 250; i++) entries.addKey(new Uint8Array(250).fill(i));
  return openCached(name, entries.encode(name, 0, 250));
}

function instanceMemory(): InstanceMemory {
  return new InstanceMemory({ maxBytes, blockBytes: 65_536 });
}

function fill({ cache }: InstanceMemory): void {
  for (let i = 0; i < 400; i++) cache.add(leaf(`leaf${i}`));
}

describe('InstanceMemory', () => {
  it('gives the cache the rest that pending commits and queries leave, and takes it back', () => {
    const memory = instanceMemory();
    fill(memory);
    expect(memory.stats()).toMatchObject({ maxBytes, innerBytes: 0, committedBytes: 0, scratchBytes: 0 });
    expect(memory.stats().cacheLimitBytes).toBe(maxBytes / 2);
    expect(memory.cache.sizeBytes).toBeGreaterThan(7 * mebibyte);
    memory.setCommitted(2 * mebibyte);
    const scratch = new Scratch(memory);
    scratch.add(4 * mebibyte);
    expect(memory.stats()).toMatchObject({ committedBytes: 2 * mebibyte, scratchBytes: 4 * mebibyte });
    expect(memory.stats().cacheLimitBytes).toBe(2 * mebibyte);
    expect(memory.cache.sizeBytes).toBeLessThanOrEqual(2 * mebibyte);
    scratch.release();
    memory.setCommitted(0);
    fill(memory);
    expect(memory.cache.sizeBytes).toBeGreaterThan(7 * mebibyte);
    expect(memory.stats().leafBytes).toBe(memory.cache.sizeBytes);
  });

  it('refuses a reservation without room, names the option, and leaves the cache a part', () => {
    const memory = instanceMemory();
    fill(memory);
    const scratch = new Scratch(memory);
    scratch.add(11.5 * mebibyte);
    expect(() => scratch.add(mebibyte)).toThrow(MemoryBudgetError);
    expect(() => scratch.add(mebibyte)).toThrow(/maxMemoryBytes \(16777216\)/);
    expect(memory.stats().scratchBytes).toBe(11.5 * mebibyte);
    expect(memory.cache.sizeBytes).toBeGreaterThan(mebibyte / 2);
    // Other queries share this limit.
    const other = new Scratch(memory);
    expect(() => other.add(mebibyte)).toThrow(MemoryBudgetError);
    scratch.release();
    other.release();
    expect(memory.stats().scratchBytes).toBe(0);
    other.add(mebibyte);
    other.release();
    // The committed cache has priority, but never so far that no query can be run.
    memory.setCommitted(maxBytes);
    other.add(mebibyte);
    expect(() => other.add(mebibyte)).toThrow(/1\.0 MiB/);
    other.release();
    other.release();
    expect(memory.stats().scratchBytes).toBe(0);
  });

  it('bounds the blocks read ahead, for all together', () => {
    const memory = instanceMemory();
    const blocks = memory.readAheadBytes / 65_536;
    expect(blocks).toBe(16);
    for (let i = 0; i < blocks; i++) expect(memory.beginReadAhead(65_536)).toBe(true);
    expect(memory.beginReadAhead(1)).toBe(false);
    memory.endReadAhead(65_536);
    expect(memory.beginReadAhead(65_536)).toBe(true);
  });
});
