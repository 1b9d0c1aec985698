/** Loads the code that makes the words of texts, and the stems of a language, when a table with an index on texts is first used. */
import { Later } from '../base/later.ts';
import type { TextFields } from './text-fields.ts';
import { wordWriter } from './text-writer.ts';

const entries = new Later('the words of texts', () => import('./text-entries.ts'), { onlyOnUse: true });

/**
 * Makes ready to write the entries of the indexes on texts among some indexes. Undefined if there are none. Rejects with
 * `CodeNotLoadedError` or `NotSupportedError`.
 */
export function prepareTexts(indexes: readonly { readonly text?: TextFields }[]): Promise<void> | undefined {
  const languages = indexes.flatMap(({ text }) => (text === undefined ? [] : [text.language]));
  return languages.length === 0 ? undefined : prepare(languages);
}

async function prepare(languages: readonly (string | undefined)[]): Promise<void> {
  const { beginTextRun, loadLanguages, writeTextEntries } = await entries.load();
  wordWriter.write = writeTextEntries;
  wordWriter.begin = beginTextRun;
  await loadLanguages(languages);
}
