/** Registered triggers and functions, and the call of a function for a row. Their arguments are in instance/engine-host.ts. */
import { isError, isThenable } from '../base/brands.ts';
import { FunctionError } from '../base/errors.ts';
import { describeKey } from '../base/messages.ts';
import { defined } from '../base/options.ts';
import { decodeRow } from '../format/row-decode.ts';
import type { RowSource } from '../format/row-layout.ts';
import type { TableShape } from './table-shape.ts';

/** The operations that a trigger can be registered for. */
export type TriggerOperation = 'insert' | 'update' | 'delete';

export interface RegisteredTrigger {
  readonly operation: TriggerOperation | '*';
  readonly handler: (
    row: Record<string, unknown>,
    batch: never,
    dbApi: never,
    operation: TriggerOperation,
    before: Record<string, unknown> | undefined,
  ) => unknown;
}

/** Whether a trigger fires for an operation. */
export function firesFor(trigger: RegisteredTrigger, operation: TriggerOperation): boolean {
  return trigger.operation === '*' || trigger.operation === operation;
}

/** A function registered for use in `where`. */
export interface RegisteredFunction {
  readonly name: string;
  readonly fn: (row: Record<string, unknown>) => unknown;
  readonly version: number | undefined;
}

/** Returns the result of a function for a row. Throws `FunctionError` if it throws or returns a promise. */
export function callFunction(
  shape: TableShape,
  registered: RegisteredFunction,
  source: RowSource,
  base: number,
): unknown {
  // Each call gets its own copy of the row, so that a change of it does not affect anything else.
  const row = decodeRow(shape.layout, source, base);
  let result: unknown;
  let isPromise: boolean;
  try {
    result = registered.fn(row);
    isPromise = isThenable(result);
    // Nothing awaits the promise: its rejection must not be an unhandled one.
    if (isThenable(result)) result.then(undefined, () => undefined);
  } catch (cause) {
    throw functionError(shape, registered, source, base, 'threw an error', cause);
  }
  if (isPromise) throw functionError(shape, registered, source, base, 'returned a promise', undefined);
  return result;
}

function functionError(
  shape: TableShape,
  { name }: RegisteredFunction,
  source: RowSource,
  base: number,
  what: string,
  cause: unknown,
): FunctionError {
  const primaryKey = shape.rowKey(source, base);
  const reason = isError(cause) ? `: ${cause.message}` : '';
  const message =
    `Function '${name}' ${what} for the row of table '${shape.name}' with primary key ` +
    `${describeKey(primaryKey)}${reason}. It must be synchronous and return a value for every row.`;
  return new FunctionError(name, primaryKey, message, defined({ cause }));
}
