/** Rows one by one, for `for await`: read in batches as they are asked for, all of one state of the table. */
import { MemoryBudgetError, SnapshotExpiredError } from '../base/errors.ts';
import type { StateKeeper } from './planner/query-host.ts';
import type { TableState } from '../view/table-state.ts';
import { BlockGone } from '../tree/block-source.ts';
import type { BudgetMeter } from './budget.ts';
import type { Execution, Row, RowReader } from './operators/executor.ts';
import { runOnState } from './run-on-state.ts';
import type { RunOptions } from './run-on-state.ts';

/** A query under way whose rows come in order, or undefined once there are no more to read. */
interface Reading {
  readonly execution: Execution;
  readonly reader: RowReader<Row>;
  readonly stored: TableState;
}

/** Plans the query on a state, and makes ready to run it. */
type Execute = (state: TableState, sorts: 'few' | 'none') => Execution | Promise<Execution>;

function noResult(): void {}

export class RowIterator implements AsyncIterableIterator<Row> {
  readonly #options: RunOptions;
  readonly #execute: Execute;
  readonly #meter: BudgetMeter | undefined;
  #rows: readonly Row[] = [];
  #at = 0;
  #started = false;
  #ended = false;
  #reading: Reading | undefined;
  #keeper: StateKeeper | undefined;
  /** The call that is being answered: calls are answered in turn, whether or not the caller waits for them. */
  #last: Promise<void> | undefined;

  constructor(options: RunOptions, execute: Execute, meter: BudgetMeter | undefined) {
    this.#options = options;
    this.#execute = execute;
    this.#meter = meter;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Row, undefined>> {
    if (this.#last === undefined && this.#at < this.#rows.length) {
      // A loop may take long for each of the rows that were read at once.
      if ((this.#at & 0x7) === 0x7) void this.#keeper?.holdIfDue();
      return Promise.resolve({ done: false, value: this.#rows[this.#at++] as Row });
    }
    const answer = this.#last === undefined ? this.#nextSlowly() : this.#last.then(() => this.#nextSlowly());
    const last: Promise<void> = answer.then(noResult, noResult).finally(() => {
      if (this.#last === last) this.#last = undefined;
    });
    this.#last = last;
    return answer;
  }

  return(): Promise<IteratorResult<Row, undefined>> {
    this.#end();
    return Promise.resolve({ done: true, value: undefined });
  }

  #end(): void {
    this.#ended = true;
    this.#rows = [];
    this.#at = 0;
    this.#readNothing();
  }

  #readNothing(): void {
    this.#reading = undefined;
    this.#keeper?.release();
    this.#keeper = undefined;
  }

  async #nextSlowly(): Promise<IteratorResult<Row, undefined>> {
    while (!this.#ended && this.#at >= this.#rows.length) {
      if (this.#started && this.#reading === undefined) this.#end();
      else await this.#readSome();
    }
    if (this.#ended) return { done: true, value: undefined };
    return { done: false, value: this.#rows[this.#at++] as Row };
  }

  async #readSome(): Promise<void> {
    const reading = this.#reading;
    try {
      const read = (): Promise<readonly Row[]> => (reading === undefined ? this.#start() : this.#continue(reading));
      const rows = await (this.#meter === undefined ? read() : this.#meter.timed(read));
      // Unless the caller has had enough meanwhile.
      if (this.#ended) {
        this.#readNothing();
        return;
      }
      this.#rows = rows;
      this.#at = 0;
    } catch (error) {
      this.#end();
      if (reading === undefined || !(error instanceof BlockGone)) throw error;
      if (!(await this.#options.host.viewMovedOn(reading.stored))) throw error;
      const message =
        `The state of table '${this.#options.table}' that this loop began with is gone from the store. Run the query ` +
        'again, or hold a db.snapshot() while it runs.';
      throw new SnapshotExpiredError(message, { cause: error });
    }
  }

  /** Returns the first rows. No row was returned before, so the query may still start again. */
  async #start(): Promise<readonly Row[]> {
    const rows = await runOnState(this.#options, async (state, stored) => {
      const { host } = this.#options;
      // Before anything is waited for: the view may be another one once the plan is made.
      this.#keeper?.release();
      this.#keeper = host.keeperOf(stored, this);
      let execution = await this.#execute(state, 'few');
      if (!execution.plan.ordered) {
        try {
          const all = await execution.rows();
          this.#readNothing();
          return all;
        } catch (error) {
          if (!(error instanceof MemoryBudgetError)) throw error;
          // They were more than it looked, or others collect rows just now.
          execution = await this.#execute(state, 'none');
          if (!execution.plan.ordered) throw error;
        }
      }
      this.#reading = { execution, reader: execution.reader(), stored };
      return this.#continue(this.#reading);
    });
    this.#started = true;
    return rows;
  }

  async #continue(reading: Reading): Promise<readonly Row[]> {
    const { execution, reader } = reading;
    const rows: Row[] = [];
    const holding = this.#keeper?.holdIfDue();
    if (holding !== undefined) await holding;
    while (rows.length === 0) {
      if (!(await reader.next(rows))) {
        this.#readNothing();
        break;
      }
      await execution.breathe();
    }
    return rows;
  }
}
