/** The checker itself, on models whose states can be counted by hand. */
import { describe, expect, it } from 'vitest';
import { explore } from '../../../model/checker/explore.ts';
import { FingerprintSet } from '../../../model/checker/fingerprint-set.ts';
import { Model } from '../../../model/checker/model.ts';
import { sortRecords } from '../../../model/checker/records.ts';
import { formatTrace, traceOf } from '../../../model/checker/trace.ts';
import { RecordList, WordList } from '../../../model/checker/word-list.ts';

interface Bounds {
  readonly counters: number;
  readonly highest: number;
  /** The sum at which the model is wrong: on the way there, or in the state itself. */
  readonly wrongStep?: number;
  readonly wrongState?: number;
}

/** Counters that go up one by one, and down again at once. */
class Counters extends Model {
  readonly actions = [
    { name: 'up', mirrors: undefined, text: (a: number) => `counter ${a} goes up` },
    { name: 'reset', mirrors: undefined, text: (a: number) => `counter ${a} is reset` },
  ];
  readonly #bounds: Bounds;

  constructor(bounds: Bounds) {
    super(bounds.counters);
    this.#bounds = bounds;
  }

  start(): void {
    this.next.fill(0);
  }

  override check(): void {
    if (this.#sum(this.state) === this.#bounds.wrongState) this.fail('state', 'is wrong');
  }

  expand(): void {
    const { counters, highest, wrongStep } = this.#bounds;
    for (let i = 0; i < counters; i++) {
      const value = this.state[i] as number;
      if (value < highest) {
        this.begin()[i] = value + 1;
        if (this.#sum(this.next) === wrongStep) this.fail('step', 'is wrong');
        this.emit(0, i);
      }
      if (value > 0) {
        this.begin()[i] = 0;
        this.emit(1, i);
      }
    }
  }

  #sum(state: Uint8Array): number {
    return state.reduce((sum, value) => sum + value, 0);
  }

  describeState(state: Uint8Array): string {
    return state.slice(0, this.#bounds.counters).join(' ');
  }
}

describe('exploring', () => {
  it('finds every state once, and how far away it is', () => {
    const result = explore(new Counters({ counters: 5, highest: 9 }));
    expect(result).toMatchObject({ states: 100_000, depth: 45, exhausted: true, violation: undefined, path: [] });
    expect(result.taken).toEqual([5 * 90_000, 5 * 90_000]);
    expect(result.transitions).toBe(900_000);
  });

  it.each(['wrongStep', 'wrongState'])('finds a shortest way to a violation (%s), and prints it', (what) => {
    const model = new Counters({ counters: 3, highest: 9, [what]: 14 });
    const result = explore(model);
    expect(result).toMatchObject({ depth: 14, exhausted: false });
    expect(result.violation?.message).toBe('is wrong');
    const trace = traceOf(model, result);
    expect(trace).toHaveLength(14);
    expect(trace.every(({ action }) => action === 'up')).toBe(true);
    const last = trace[13]?.state.split(' ').map(Number) ?? [];
    expect(last.slice(0, 3).reduce((sum, value) => sum + value, 0)).toBe(14);
    expect(formatTrace(trace)).toContain(' 14. counter');
  });

  it('gives up after so many states, and reports its progress', () => {
    let told = 0;
    const result = explore(new Counters({ counters: 7, highest: 9 }), {
      maxStates: 20_000,
      progressEvery: 1000,
      onProgress: ({ states }) => (told = states),
    });
    expect(result.exhausted).toBe(false);
    expect(result.violation).toBe(undefined);
    expect(told).toBeGreaterThanOrEqual(19_000);
  });
});

describe('the set of states', () => {
  it('distinguishes states that differ in a single bit, and recognises all of them', () => {
    const set = new FingerprintSet();
    const words = new Int32Array(4);
    let added = 0;
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 200_000; i++) {
        words[i & 3] = i;
        words[(i + 1) & 3] = 0;
        words[(i + 2) & 3] = 1 << (i & 31);
        words[(i + 3) & 3] = i >> 7;
        if (set.add(words)) added++;
      }
      expect(added).toBe(200_000);
    }
    expect(set.size).toBe(200_000);
    expect(set.add(new Int32Array(4))).toBe(true);
    expect(set.add(new Int32Array(4))).toBe(false);
  });

  it('keeps records and words beyond one chunk', () => {
    const records = new RecordList(3);
    const words = new WordList();
    for (let i = 0; i < 300_000; i++) {
      records.push(Int32Array.of(i, -i, i * 2));
      words.push(i ^ 5);
    }
    const record = new Int32Array(3);
    for (const i of [0, 87_380, 87_381, 262_143, 262_144, 299_999]) {
      records.read(i, record);
      expect([...record]).toEqual([i, 0 - i, i * 2]);
      expect(words.read(i)).toBe(i ^ 5);
    }
  });

  it('sorts records that have no order', () => {
    const state = Uint8Array.of(9, 3, 1, 2, 2, 2, 2, 0, 3, 1, 9);
    sortRecords(state, 1, 3, 3);
    expect([...state]).toEqual([9, 0, 3, 1, 2, 2, 2, 3, 1, 2, 9]);
  });
});
