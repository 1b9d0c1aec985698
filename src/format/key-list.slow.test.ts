import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareBytes } from '../base/bytes.ts';
import { realEnvironment } from '../base/env.ts';
import { Pacer } from '../base/pacer.ts';
import { KeyList } from './key-list.ts';

function listOf(keys: readonly Uint8Array[]): KeyList {
  const list = new KeyList();
  for (const key of keys) {
    list.writer.append(key);
    list.end();
  }
  return list;
}

async function expectSorted(keys: readonly Uint8Array[]): Promise<void> {
  const order = await listOf(keys).sorted(new Pacer(realEnvironment));
  const expected = keys
    .map((_, i) => i)
    .toSorted((a, b) => {
      return compareBytes(keys[a] as Uint8Array, keys[b] as Uint8Array) || a - b;
    });
  expect(Buffer.compare(Buffer.from(order.buffer), Buffer.from(Uint32Array.from(expected).buffer))).toBe(0);
}

/** Deterministic bytes without any order. */
function scattered(i: number): number {
  return Math.imul(i + 1, 2654435761) >>> 0;
}

describe('KeyList', () => {
  it('sorts keys, those that are equal in the order in which they came', async () => {
    const byte = fc.constantFrom(0, 1, 255);
    const key = fc.array(byte, { maxLength: 8 }).map((bytes) => Uint8Array.from(bytes));
    await fc.assert(fc.asyncProperty(fc.array(key, { maxLength: 60 }), expectSorted), { numRuns: 300 });
    // Radix-sorted, including keys that differ only in the number of zeros at their end.
    const long = fc.array(fc.constantFrom(0, 0, 0, 7), { maxLength: 24 }).map((bytes) => Uint8Array.from(bytes));
    const many = fc.array(fc.oneof(key, long), { minLength: 129, maxLength: 500 });
    await fc.assert(fc.asyncProperty(many, expectSorted), { numRuns: 200 });
  });

  it('sorts more keys than are sorted at once, with few different ones among them', async () => {
    for (const different of [3, 70_000, 2 ** 32]) {
      const keys = Array.from({ length: 70_001 }, (_, i) => {
        const value = scattered(i) % different;
        return Uint8Array.of(9, 9, 9, value >>> 24, value >>> 16, value >>> 8, value, ...(value % 5 === 0 ? [0] : []));
      });
      await expectSorted(keys);
    }
  });

  it('sorts keys that differ only beyond their first bytes, by their whole lengths', async () => {
    const keys = Array.from({ length: 40_000 }, (_, i) => {
      const key = Buffer.from(`${i % 2 === 0 ? 'same head ' : 'same hea'}${scattered(i) % 5000}`);
      return new Uint8Array(key);
    });
    await expectSorted(keys);
  });

  it('sorts keys among which one ends where the others go on with zeros', async () => {
    const zeros = Array.from({ length: 20 }, () => 0);
    const keys = Array.from({ length: 400 }, (_, i) => Uint8Array.of(5, ...zeros, scattered(i) >>> 24));
    await expectSorted([...keys, Uint8Array.of(5), Uint8Array.of(5, 0, 0), ...keys]);
  });

  it('sorts keys that go on alike for longer and longer', async () => {
    const keys = Array.from({ length: 3000 }, (_, i) => {
      const value = scattered(i);
      return new Uint8Array(Buffer.from(`${'a'.repeat(value % 300)}${value % 7}`));
    });
    await expectSorted(keys);
  });

  it('leaves keys that are sorted, or backwards, right', async () => {
    const keys = Array.from({ length: 40_000 }, (_, i) => Uint8Array.of(i >>> 16, i >>> 8, i));
    await expectSorted(keys);
    await expectSorted(keys.toReversed());
    await expectSorted([]);
    await expectSorted([new Uint8Array(0), new Uint8Array(0)]);
  });

  it('takes keys back', () => {
    const list = listOf([Uint8Array.of(1), Uint8Array.of(2, 2), Uint8Array.of(3)]);
    list.writer.append(Uint8Array.of(9));
    list.rewind();
    expect(list.sizeBytes).toBe(4);
    list.rewind(1);
    list.writer.append(Uint8Array.of(5, 6));
    expect(list.end()).toBe(1);
    expect([list.key(0), list.key(1)]).toEqual([Uint8Array.of(1), Uint8Array.of(5, 6)]);
    list.rewind(0);
    expect([list.count, list.sizeBytes]).toEqual([0, 0]);
  });
});
