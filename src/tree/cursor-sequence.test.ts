import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { ReadMemory } from '../cache/memory-budget.ts';
import { CursorSequence } from './cursor-sequence.ts';
import type { RunCursor } from './cursor.ts';
import type { Node } from '../format/node.ts';

class Memory implements ReadMemory {
  readonly readAheadBytes = 400;
  readonly blockBytes = 100;
  ahead = 0;
  most = 0;

  beginReadAhead(bytes: number): boolean {
    if (this.ahead + bytes > this.readAheadBytes) return false;
    this.ahead += bytes;
    this.most = Math.max(this.most, this.ahead);
    return true;
  }

  endReadAhead(bytes: number): void {
    this.ahead -= bytes;
  }

  take(): void {
    // The fake holds no memory.
  }
}

/** Returns a cursor with one run, which it reaches later or fails to reach. */
function cursor(run: () => boolean | Promise<boolean>): RunCursor {
  let moved = false;
  return {
    node: undefined as unknown as Node,
    from: 0,
    to: 1,
    next: () => {
      if (moved) return false;
      moved = true;
      return run();
    },
  };
}

async function later(): Promise<boolean> {
  await setImmediate();
  return true;
}

describe('CursorSequence', () => {
  it('reads cursors ahead, as many as there is room for and as are used together', async () => {
    for (const [together, most] of [
      [100, 400],
      [2, 200],
    ] as const) {
      const memory = new Memory();
      const begun: number[] = [];
      const make = (i: number): RunCursor =>
        cursor(() => {
          begun.push(i);
          return later();
        });
      const sequence = new CursorSequence(20, make, memory);
      sequence.expect(Number.POSITIVE_INFINITY, together);
      let runs = 0;
      while (await sequence.next()) runs++;
      expect(runs).toBe(20);
      expect(begun).toEqual(Array.from({ length: 20 }, (_, i) => i));
      expect(memory.most).toBeLessThanOrEqual(most);
      expect(memory.ahead).toBe(0);
    }
  });

  it('reports the failure of a cursor to every reader that reaches it, however it fails', async () => {
    for (const fail of [
      () => {
        throw new Error('broken');
      },
      async () => {
        await later();
        throw new Error('broken');
      },
    ]) {
      const memory = new Memory();
      const sequence = new CursorSequence(9, (i) => cursor(i === 3 ? fail : later), memory);
      sequence.expect(Number.POSITIVE_INFINITY);
      for (let i = 0; i < 3; i++) expect(await sequence.next()).toBe(true);
      await expect((async () => sequence.next())()).rejects.toThrow('broken');
      await later();
      expect(memory.ahead).toBe(0);
    }
  });
});
