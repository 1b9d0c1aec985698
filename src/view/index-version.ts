/**
 * The index versions of an index on a function: its entries as one version of the function makes them, of the rows of one tree of
 * the table, the base. A node that merges without that version leaves an index version as it is; it is out of date once its base is
 * not the table's present tree any more (docs/protocol.md, "Indexes on functions"). Also makes the entries: a component for the result of
 * the function on a row, or for an element of the list that it returns, and the row's primary key.
 */
import type { Bound } from '../format/stored-table.ts';
import type { Tree } from '../tree/tree.ts';
import type { RegisteredFunction } from '../schema/registered-functions.ts';
import type { FunctionResult, TableIndex, TableShape } from '../schema/table-shape.ts';
import type { EntrySink } from '../schema/text-fields.ts';
import { CorruptionError, FunctionError } from '../base/errors.ts';
import { writeFailure, writeKeyComponent, writeResult } from '../format/ordered-key.ts';
import type { RowSource } from '../format/row-layout.ts';
import { elementTexts } from '../schema/list-elements.ts';
import { callFunction } from '../schema/registered-functions.ts';
import { functionIndex } from '../schema/table-shape.ts';

export interface IndexVersion {
  /** With the version of the function. */
  readonly index: TableIndex;
  /** The entries. */
  readonly tree: Tree;
  /** The rows that they are of. */
  readonly base: Tree;
  /** Whether these are the rows of the table. */
  readonly isCurrent: boolean;
  /** The last key whose entry was made; undefined before the first, null once all are. */
  readonly built: Bound;
  /** Entries of rows on which the function failed. */
  readonly failed: number;
  /** The first generation whose rows it does not have; null while it is current. */
  readonly behindFrom: number | null;
}

/** Whether an index version holds the entry of every row, and of nothing else. */
export function isWhole({ isCurrent, built }: IndexVersion): boolean {
  return isCurrent && built === null;
}

/**
 * Whether queries may go by it: if the function failed on a row, they are to fail as they would without the index.
 */
export function isUsable(indexVersion: IndexVersion): boolean {
  return isWhole(indexVersion) && indexVersion.failed === 0;
}

/** An index on a function, and the version of it that is registered here. */
export interface IndexedFunction {
  readonly index: TableIndex;
  readonly registered: RegisteredFunction;
}

/**
 * Returns the indexes on functions whose entries this node can make. A function without a version is not among them: nobody could
 * know which function made the stored entries.
 */
export function indexedFunctions(
  { functionIndexes }: TableShape,
  registered: (name: string) => RegisteredFunction | undefined,
): IndexedFunction[] {
  return functionIndexes.flatMap((index) => {
    const found = registered(index.function);
    if (found?.version === undefined || !Number.isFinite(found.version)) return [];
    return [{ index: functionIndex(index, found.version), registered: found }];
  });
}

/** Whether two indexes are the same, in the same version of their function. */
export function isSameIndex(a: TableIndex, b: TableIndex): boolean {
  return a.name === b.name && a.result?.version === b.result?.version;
}

/** Writes the entries of an index on one version of a function, and counts the entries of rows on which it fails. */
export class FunctionEntries {
  readonly #shape: TableShape;
  readonly #on: FunctionResult;
  readonly #registered: RegisteredFunction;
  /** Number of such entries added, less the number removed. */
  failed = 0;

  constructor(shape: TableShape, { index, registered }: IndexedFunction) {
    this.#shape = shape;
    this.#on = index.result as FunctionResult;
    this.#registered = registered;
  }

  /** Appends the entries of a row, and returns their number: one, or one for each element of the list that the function returns. */
  write(to: EntrySink, source: RowSource, base: number, primaryKey: Uint8Array, isRemoval: boolean): number {
    const { writer } = to;
    const end = (): void => {
      writer.append(primaryKey);
      to.end();
    };
    let result: unknown;
    try {
      result = callFunction(this.#shape, this.#registered, source, base);
    } catch (error) {
      // A merge passes on a row that cannot be decoded. Those who read the row will find the damage.
      if (!(error instanceof FunctionError || error instanceof CorruptionError)) throw error;
      writeFailure(writer);
      this.failed += isRemoval ? -1 : 1;
      end();
      return 1;
    }
    const { typeId, each } = this.#on;
    if (!each) {
      writeResult(writer, typeId, result);
      end();
      return 1;
    }
    const elements = elementTexts(result);
    for (const element of elements) {
      writeKeyComponent(writer, typeId, element);
      end();
    }
    return elements.length;
  }
}
