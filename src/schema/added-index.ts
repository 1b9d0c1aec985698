/**
 * An index that is being added to a table that has rows: it is no index of its schema yet. Every merge changes the entries of
 * rows up to `built` with their rows, whichever node does it, and the others have none (docs/protocol.md, "Added indexes").
 */
import type { Bound } from '../format/stored-bound.ts';
import type { StoredIndex } from '../format/stored-schema.ts';
import type { Tree } from '../tree/tree.ts';
import type { TableIndex } from './table-shape.ts';

export interface AddedIndex {
  readonly stored: StoredIndex;
  readonly index: TableIndex;
  /** The entries. */
  readonly tree: Tree;
  /** The last key whose entry was made; undefined before the first, null once all are. */
  readonly built: Bound;
  /** Rows whose entries were made, for people. */
  readonly rows: number;
  /** Generation in which it came to be. */
  readonly birth: number;
  /** Why it cannot be; undefined: no reason is known. */
  readonly problem: string | undefined;
}

/** Whether it has the entries of all rows, and of nothing else. */
export function isComplete({ built, problem }: Pick<AddedIndex, 'built' | 'problem'>): boolean {
  return built === null && problem === undefined;
}
