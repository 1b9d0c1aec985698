/**
 * What one instance has been seen to show. Every read must be the model's at one point of the log (I6), a point that
 * is not before what the instance has shown or acknowledged already (I7), nor before what it promises to have caught up
 * with.
 */
import type { Judge } from './judge.ts';
import type { Ledger, RecordedRead } from './ledger.ts';
import { rowsOf } from './model.ts';
import type { State, TableRows } from './model.ts';

export class Reader {
  readonly #judge: Judge;
  readonly #ledger: Ledger;
  readonly #name: string;
  /** First slot whose state the instance may still show. */
  #least = 0;

  constructor(judge: Judge, ledger: Ledger, name: string) {
    this.#judge = judge;
    this.#ledger = ledger;
    this.#name = name;
  }

  get least(): number {
    return this.#least;
  }

  /** The instance has promised to show this slot. */
  promised(slot: number): void {
    this.#least = Math.max(this.#least, slot);
  }

  /**
   * Judges a read of a table that began when `least` was the first slot that could be shown. `resultAt` says what the
   * read should have given in a state; it depends on that table only.
   */
  judge(what: string, table: string, least: number, found: string, resultAt: (state: State) => string): void {
    const { tail } = this.#ledger;
    const shown = this.#firstSlot(table, least, tail, found, resultAt);
    if (shown !== undefined) {
      this.promised(shown);
      return;
    }
    const before = this.#firstSlot(table, 0, least - 1, found, resultAt);
    if (before !== undefined) {
      const message = `${this.#name}: ${what} shows slot ${before}, and had to show ${least} or later, of ${tail}`;
      this.#judge.fail('I7 own writes and monotonic reads', message);
      return;
    }
    const expected = resultAt(this.#ledger.stateAt(tail));
    this.#judge.fail(
      'I6 snapshot reads',
      `${this.#name}: ${what} shows no state of slots ${least} to ${tail}.\nFound:\n${found}\nAt the end:\n${expected}`,
    );
  }

  /** Judges reads that are all of one state. `least` as in {@link judge}. */
  judgeTogether(what: string, least: number, reads: readonly RecordedRead[]): void {
    const { tail } = this.#ledger;
    const isOf = (state: State): boolean => reads.every((read) => read.resultAt(state) === read.found);
    const shows = (slot: number): boolean =>
      isOf(this.#ledger.stateAt(slot)) || this.#ledger.supersededAt(slot).some(isOf);
    for (let slot = least; slot <= tail; slot++) {
      if (!shows(slot)) continue;
      if (reads.length > 0) this.promised(slot);
      return;
    }
    const found = reads.map((read) => `${read.what}:\n${read.found}`).join('\n');
    const before = Array.from({ length: least }, (_, slot) => slot).findLast(shows);
    const name = before === undefined ? 'I6 snapshot reads' : 'I7 own writes and monotonic reads';
    const message = `${this.#name}: ${what} shows no state of slots ${least} to ${tail}, but ${before ?? 'none at all'}`;
    this.#judge.fail(name, `${message}.\n${found}`);
  }

  /** States share the tables that did not change between them: each is looked at once. */
  #firstSlot(
    table: string,
    from: number,
    to: number,
    found: string,
    resultAt: (state: State) => string,
  ): number | undefined {
    let looked: TableRows | undefined;
    for (let slot = from; slot <= to; slot++) {
      const state = this.#ledger.stateAt(slot);
      const rows = rowsOf(state, table);
      if (rows !== looked && resultAt(state) === found) return slot;
      if (this.#ledger.supersededAt(slot).some((superseded) => resultAt(superseded) === found)) return slot;
      looked = rows;
    }
    return undefined;
  }
}
