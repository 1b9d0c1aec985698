/** Makes entries of indexes on functions: a component for the result of the function on the row, and the primary key. */
import type { ByteWriter } from '../base/bytes.ts';
import { CorruptionError, FunctionError } from '../base/errors.ts';
import { writeFailure, writeResult } from '../format/ordered-key.ts';
import type { RowSource } from '../format/row-layout.ts';
import type { TypeId } from '../format/types.ts';
import { callFunction } from '../schema/registered-functions.ts';
import type { RegisteredFunction } from '../schema/registered-functions.ts';
import type { TableShape } from '../schema/table-shape.ts';

/** Writes the entries of one version of a function, and counts the entries of rows on which it fails. */
export class FunctionEntries {
  readonly #shape: TableShape;
  readonly #typeId: TypeId;
  readonly #registered: RegisteredFunction;
  /** Number of such entries added, less the number removed. */
  failed = 0;

  constructor(shape: TableShape, typeId: TypeId, registered: RegisteredFunction) {
    this.#shape = shape;
    this.#typeId = typeId;
    this.#registered = registered;
  }

  /** Appends the entry of a row. */
  write(writer: ByteWriter, source: RowSource, base: number, primaryKey: Uint8Array, isRemoval: boolean): void {
    try {
      writeResult(writer, this.#typeId, callFunction(this.#shape, this.#registered, source, base));
    } catch (error) {
      // A merge passes on a row that cannot be decoded. Those who read the row will find the damage.
      if (!(error instanceof FunctionError || error instanceof CorruptionError)) throw error;
      writeFailure(writer);
      this.failed += isRemoval ? -1 : 1;
    }
    writer.append(primaryKey);
  }
}
