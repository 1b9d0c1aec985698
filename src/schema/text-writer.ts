/** The place of the code that makes the words of texts, which only writers and searches load: readers of bundles have no such indexes. */
import { invariant } from '../base/errors.ts';
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

/** Set once the code is loaded. */
export const wordWriter: { write: WordWriter | undefined } = { write: undefined };

/** Returns the code that makes the words of texts. `prepareTexts` comes before. */
export function loadedWordWriter(): WordWriter {
  const { write } = wordWriter;
  invariant(write !== undefined, 'The words of texts are made before the code for it is loaded');
  return write;
}
