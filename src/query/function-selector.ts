/** Conditions that a registered function decides: it is given the whole row, and its result must equal a value. */
import { FunctionError } from '../base/errors.ts';
import { decodeRow, readField } from '../format/row-decode.ts';
import type { RowSource } from '../format/row-layout.ts';
import { describeValue } from '../format/values.ts';
import type { RegisteredFunction } from '../table/query-host.ts';
import type { TableShape } from '../table/table-shape.ts';
import { slowCost } from './selector.ts';
import type { Selector } from './selector.ts';

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}

export class FunctionSelector implements Selector {
  readonly cost: number = slowCost;
  readonly #shape: TableShape;
  readonly #registered: RegisteredFunction;
  readonly #value: unknown;

  constructor(shape: TableShape, registered: RegisteredFunction, value: unknown) {
    this.#shape = shape;
    this.#registered = registered;
    this.#value = value;
  }

  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    let kept = 0;
    for (let k = 0; k < count; k++) {
      const pick = picks[k] as number;
      picks[kept] = pick;
      if (this.#call(source, first + pick * stride) === this.#value) kept++;
    }
    return kept;
  }

  #call(source: RowSource, base: number): unknown {
    // A row of its own for every call: whatever the function does to it, the result is not affected.
    const row = decodeRow(this.#shape.layout, source, base);
    let result: unknown;
    try {
      result = this.#registered.fn(row);
    } catch (cause) {
      throw this.#error(source, base, 'threw an error', cause);
    }
    if (isThenable(result)) {
      // Nobody will wait for it: its failure must not become an unhandled rejection.
      result.then(undefined, () => undefined);
      throw this.#error(source, base, 'returned a promise', undefined);
    }
    return result;
  }

  #error(source: RowSource, base: number, what: string, cause: unknown): FunctionError {
    const { name } = this.#registered;
    const primaryKey = readField(source, base, this.#shape.primaryKey);
    const reason = cause instanceof Error ? `: ${cause.message}` : '';
    const message =
      `Function '${name}' ${what} for the row of table '${this.#shape.name}' with primary key ` +
      `${describeValue(primaryKey)}${reason}. It must be synchronous and return a value for every row.`;
    return new FunctionError(name, primaryKey, message, cause === undefined ? {} : { cause });
  }
}
