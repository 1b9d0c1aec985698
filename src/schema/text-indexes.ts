/** Loads the code that makes the words of texts, and the stems of a language, when a table with an index on texts is first used. */
import { NotSupportedError } from '../base/errors.ts';
import { Later } from '../base/later.ts';
import { needsPackage } from '../search/languages.ts';
import type { TableShape } from './table-shape.ts';
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

/**
 * Loads the stems that the indexes of a table need from a package, before anything is written to it: without them the rows cannot be merged
 * here. Undefined if they are loaded. Rejects with `NotSupportedError`, which names the table, or with `CodeNotLoadedError`.
 */
export function prepareToWrite({ name, indexes }: TableShape): Promise<void> | undefined {
  const stemLanguages: string[] = [];
  for (const { text } of indexes)
    if (text?.language !== undefined && needsPackage(text.language)) stemLanguages.push(text.language);
  if (stemLanguages.length === 0 || entries.loaded?.hasLanguages(stemLanguages) === true) return undefined;
  return explaining(`Nothing can be written to table '${name}' here`, prepare(stemLanguages));
}

/**
 * Makes ready to merge changes of a table. Undefined if nothing is needed. Rejects with `NotSupportedError`, which names the table, or with
 * `CodeNotLoadedError`.
 */
export function prepareToMerge(
  table: string,
  indexes: readonly { readonly text?: TextFields }[],
): Promise<void> | undefined {
  const preparing = prepareTexts(indexes);
  return preparing && explaining(cannotMerge(table), preparing);
}

function cannotMerge(table: string): string {
  return `This process cannot merge commits to table '${table}', which are durable and wait for a process that can`;
}

async function explaining(consequence: string, preparing: Promise<void>): Promise<void> {
  try {
    await preparing;
  } catch (cause) {
    if (!(cause instanceof NotSupportedError)) throw cause;
    throw new NotSupportedError(`${consequence}. ${cause.message}`, { cause });
  }
}

async function prepare(languages: readonly (string | undefined)[]): Promise<void> {
  const { beginTextRun, loadLanguages, writeTextEntries } = await entries.load();
  wordWriter.write = writeTextEntries;
  wordWriter.begin = beginTextRun;
  await loadLanguages(languages);
}
