/** Makes the entries of an index on texts: one for each different word of a row, with how often it is there. */
import { writeCount } from '../format/counts.ts';
import { readField } from '../format/row-decode.ts';
import type { RowSource } from '../format/row-layout.ts';
import { writeKeyComponent } from '../format/ordered-key.ts';
import { Types } from '../format/types.ts';
import { isLoaded, loadAnalyzer, loadedAnalyzer } from '../search/analyzer.ts';
import type { EntrySink, TextFields } from './text-fields.ts';
import { CollectedPostings } from './text-run.ts';
import type { TextRun } from './text-writer.ts';

/** Loads the stems of languages. Rejects with `NotSupportedError` for one that this release does not know. */
export async function loadLanguages(languages: readonly (string | undefined)[]): Promise<void> {
  for (const language of languages) await loadAnalyzer(language);
}

/** Whether the stems of languages are loaded. */
export function hasLanguages(languages: readonly string[]): boolean {
  return languages.every(isLoaded);
}

/** Counts the words of a row. One is used for all rows, since they come one after the other. */
class WordCounts {
  readonly places = new Map<string, number>();
  #fields = 1;
  #counts = new Uint32Array(256);
  /** The words in all fields together. */
  total = 0;

  clear(fields: number): void {
    this.places.clear();
    this.#fields = fields;
    this.total = 0;
  }

  add(word: string, field: number): void {
    let place = this.places.get(word);
    if (place === undefined) {
      place = this.places.size * this.#fields;
      this.places.set(word, place);
      if (place + this.#fields > this.#counts.length) {
        const grown = new Uint32Array(this.#counts.length * 2 + this.#fields);
        grown.set(this.#counts);
        this.#counts = grown;
      }
      this.#counts.fill(0, place, place + this.#fields);
    }
    this.#counts[place + field] = this.countOf(place, field) + 1;
    this.total++;
  }

  /** Returns how often the word at a place is in a field. */
  countOf(place: number, field: number): number {
    return this.#counts[place + field] as number;
  }
}

const counts = new WordCounts();

/** Appends an entry for each different word in the texts of a row, and returns their number. */
export function writeTextEntries(
  to: EntrySink,
  { fields, language }: TextFields,
  source: RowSource,
  base: number,
  primaryKey: Uint8Array,
  primaryKeyLength: number,
): number {
  const analyzer = loadedAnalyzer(language);
  counts.clear(fields.length);
  for (const [i, field] of fields.entries()) {
    const text = readField(source, base, field) as string | null;
    if (text !== null) analyzer.eachWord(text, (word) => counts.add(word, i));
  }
  const { writer } = to;
  for (const [word, place] of counts.places) {
    writeKeyComponent(writer, Types.varchar, word);
    writer.appendRange(primaryKey, 0, primaryKeyLength);
    writeCount(writer, counts.total);
    for (let i = 0; i < fields.length; i++) {
      const count = counts.countOf(place, i);
      if (count > 0) writeCount(writer, i + fields.length * (count - 1));
    }
    to.end();
  }
  return counts.places.size;
}

/** Begins to collect the entries of many rows. */
export function beginTextRun(text: TextFields): TextRun {
  return new CollectedPostings(text);
}
