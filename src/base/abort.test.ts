import { describe, expect, it } from 'vitest';
import { Deadline, SignalPool } from './abort.ts';
import { realEnvironment } from './env.ts';

function begin(pool: SignalPool, timeoutMs = 60_000, outer?: AbortSignal): Deadline {
  return new Deadline(realEnvironment, 'A test', timeoutMs, outer, pool);
}

describe('deadlines that share signals', () => {
  it('have the same one after the other, and never at the same time', () => {
    const pool = new SignalPool();
    const first = begin(pool);
    const second = begin(pool);
    expect(second.signal).not.toBe(first.signal);
    first.clear();
    first.clear();
    const third = begin(pool);
    const fourth = begin(pool);
    expect(third.signal).toBe(first.signal);
    expect(fourth.signal).not.toBe(first.signal);
    for (const deadline of [second, third, fourth]) deadline.clear();
  });

  it('do not get one that was aborted, or whose call was ended by its caller later', async () => {
    const pool = new SignalPool();
    const late = begin(pool, 1);
    await new Promise((resolve) => {
      late.signal.addEventListener('abort', resolve);
    });
    late.clear();
    const controller = new AbortController();
    const ended = begin(pool, 60_000, controller.signal);
    expect(ended.signal).not.toBe(late.signal);
    ended.clear();
    const next = begin(pool);
    expect(next.signal).toBe(ended.signal);
    controller.abort();
    expect(next.signal.aborted).toBe(false);
    next.clear();
  });

  it('get a new one in the end: listeners of the old one are forgotten', () => {
    const pool = new SignalPool();
    const signals = new Set<AbortSignal>();
    for (let i = 0; i < 200; i++) {
      const deadline = begin(pool);
      signals.add(deadline.signal);
      deadline.clear();
    }
    expect(signals.size).toBe(4);
  });
});
