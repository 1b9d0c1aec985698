/** The place of the code that makes the words of texts, which only writers and searches load: readers of bundles have no such indexes. */
import { invariant } from '../base/errors.ts';
import type { Pacer } from '../base/pacer.ts';
import type { RowSource } from '../format/row-layout.ts';
import type { EntrySink, TextFields } from './text-fields.ts';

/** Appends an entry for each different word in the texts of a row, and returns their number. */
export type WordWriter = (
  to: EntrySink,
  text: TextFields,
  source: RowSource,
  base: number,
  primaryKey: Uint8Array,
  primaryKeyLength: number,
) => number;

/** The entries of rows in an index on texts, in the order of their keys. */
export interface SortedPostings {
  /** Appends up to `most` entries. */
  append(to: EntrySink, most: number): void;
  /** Whether entries from `from` to `to`, inclusive, may be left. */
  mayHave(from: Uint8Array, to: Uint8Array): boolean;
}

/** Collects the entries of many rows in an index on texts, in a fraction of their bytes. */
export interface TextRun {
  readonly count: number;
  /** The words of all rows. */
  readonly totalWords: number;
  /** The memory that they take until they are written. */
  readonly sizeBytes: number;
  /** Adds the entries of a row. Returns false, and adds none, if its primary key is not above that of the row before, or for too many words. */
  add(source: RowSource, base: number, primaryKey: Uint8Array, length: number): boolean;
  /** Returns all entries. The run must not be used afterwards. */
  sorted(pacer: Pacer): Promise<SortedPostings>;
}

/** Set once the code is loaded. */
export const wordWriter: { write: WordWriter | undefined; begin: ((text: TextFields) => TextRun) | undefined } = {
  write: undefined,
  begin: undefined,
};

/** Returns the code that makes the words of texts. `prepareTexts` comes before. */
export function loadedWordWriter(): WordWriter {
  const { write } = wordWriter;
  invariant(write !== undefined, 'The words of texts are made before the code for it is loaded');
  return write;
}
