/**
 * The entries of indexes on texts. The code that makes words, and the stems of a language, are loaded when a table with such an index
 * is first used: {@link prepareTexts} comes before {@link writeWords}.
 */
import { invariant } from '../base/errors.ts';
import { Later } from '../base/later.ts';
import type { RowSource } from '../format/row-layout.ts';
import type { EntrySink, TextFields } from './text-fields.ts';

const entries = new Later('the words of texts', () => import('./text-entries.ts'), { onlyOnUse: true });

/**
 * Loads the code that makes the entries of the indexes on texts among some indexes. Undefined if there are none. Rejects with
 * `CodeNotLoadedError` or `NotSupportedError`.
 */
export function prepareTexts(indexes: readonly { readonly text?: TextFields }[]): Promise<void> | undefined {
  const languages = indexes.flatMap(({ text }) => (text === undefined ? [] : [text.language]));
  return languages.length === 0 ? undefined : entries.load().then(({ loadLanguages }) => loadLanguages(languages));
}

/** Appends an entry for each different word in the texts of a row, and returns their number. */
export function writeWords(
  to: EntrySink,
  text: TextFields,
  source: RowSource,
  base: number,
  primaryKey: Uint8Array,
  primaryKeyLength: number,
): number {
  invariant(entries.loaded !== undefined, 'The words of texts are made before the code for it is loaded');
  return entries.loaded.writeTextEntries(to, text, source, base, primaryKey, primaryKeyLength);
}
