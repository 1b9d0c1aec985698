/** The error of a flush that a unique index stands against. */
import { StoreDbError } from './errors.ts';

/** Two rows that would agree. */
export interface UniqueConflict {
  readonly value: unknown;
  readonly primaryKey: unknown;
  readonly otherKey: unknown;
}

/** Two rows would agree in the fields of a unique index. The whole flush was rejected; the batch keeps its operations. */
export class UniqueIndexError extends StoreDbError {
  /** Name of the table. */
  readonly table: string;
  /** Name of the index. */
  readonly index: string;
  /** What both rows would have there: a value, or an array of them if the index is on several fields. */
  readonly value: unknown;
  /** Primary key of a row that the flush writes. */
  readonly primaryKey: unknown;
  /** Primary key of the other row: one that is there, or that the flush writes as well. */
  readonly otherKey: unknown;
  constructor(table: string, index: string, { value, primaryKey, otherKey }: UniqueConflict, message: string) {
    super('UNIQUE_INDEX', message);
    this.table = table;
    this.index = index;
    this.value = value;
    this.primaryKey = primaryKey;
    this.otherKey = otherKey;
  }
}
