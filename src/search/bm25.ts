/**
 * The score of a row in a search: BM25 as SQLite's FTS5 computes it. It is the sum over the words of the search of a factor, which is
 * higher for words that few rows have, times a measure of how often the row has the word for its length.
 */

/** How soon further occurrences of a word add little. */
const saturation = 1.2;
/** How much longer texts need more occurrences. */
const lengthShare = 0.75;
const leastFactor = 1e-6;

/** Returns the factor of a word that `count` of `rows` rows have. */
export function inverseFrequency(rows: number, count: number): number {
  return Math.max(leastFactor, Math.log((rows - count + 0.5) / (count + 0.5)));
}

/** Returns the part of a word in the score of a row: `frequency` is the sum of its counts in fields times their weights. */
export function wordScore(factor: number, frequency: number, length: number, meanLength: number): number {
  const norm = saturation * (1 - lengthShare + (lengthShare * length) / meanLength);
  return (factor * frequency * (saturation + 1)) / (frequency + norm);
}
