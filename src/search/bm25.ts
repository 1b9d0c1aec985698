/** The rank of a row among those that a search finds: BM25, with the numbers that FTS5 of SQLite uses. */

const saturation = 1.2;
const lengthShare = 0.75;
const leastIdf = 1e-6;

/** Returns how much a clause tells: `rows` have text, and `hits` of them have the clause. Rare ones tell more. */
export function idfOf(rows: number, hits: number): number {
  const idf = Math.log((rows - hits + 0.5) / (hits + 0.5));
  return idf > leastIdf ? idf : leastIdf;
}

/**
 * Returns the part of a clause in the rank of a row. `frequency` is how often the row has the clause, each time multiplied by the weight
 * of its field; `length` is the words of all fields of the row, and `averageLength` that of all rows.
 */
export function clauseScore(idf: number, frequency: number, length: number, averageLength: number): number {
  const norm = saturation * (1 - lengthShare + (lengthShare * length) / averageLength);
  return (idf * frequency * (saturation + 1)) / (frequency + norm);
}

/** Returns the highest part that a clause can have in the rank of any row. */
export function highestClauseScore(idf: number): number {
  return idf * (saturation + 1);
}
