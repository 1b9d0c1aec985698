/** Words that differ in a few letters, as people mistype them. */

/** Returns the letters of a word: code points, as numbers. */
function lettersOf(word: string): number[] {
  return Array.from(word, (letter) => letter.codePointAt(0) as number);
}

/** Tells which words are within a distance of one word. Letters that are added, dropped, changed, or swapped with the next count 1 each. */
export class NearWords {
  readonly max: number;
  readonly #letters: readonly number[];
  readonly #lengthInUnits: number;
  /** Three rows of the table of distances, which take turns. */
  #rows: [number[], number[], number[]];

  constructor(word: string, max: number) {
    this.max = max;
    this.#letters = lettersOf(word);
    this.#lengthInUnits = word.length;
    const row = (): number[] => Array.from({ length: this.#letters.length + 1 }, (_, at) => at);
    this.#rows = [row(), row(), row()];
  }

  /** Returns the distance of `other`, or `undefined` if it is more than `max`. */
  distanceOf(other: string): number | undefined {
    // A letter has at most two units.
    if (other.length > 2 * (this.#lengthInUnits + this.max)) return undefined;
    const letters = lettersOf(other);
    if (Math.abs(letters.length - this.#letters.length) > this.max) return undefined;
    let [last, row, next] = this.#rows;
    for (let at = 0; at <= this.#letters.length; at++) row[at] = at;
    for (let at = 1; at <= letters.length; at++) {
      const least = this.#fill(letters, at, [last, row, next]);
      if (least > this.max) return undefined;
      [last, row, next] = [row, next, last];
    }
    const distance = row[this.#letters.length] as number;
    return distance <= this.max ? distance : undefined;
  }

  /** Fills the row of the table for the first `at` letters. Returns its least distance. */
  #fill(letters: readonly number[], at: number, [last, row, next]: [number[], number[], number[]]): number {
    const own = this.#letters;
    const letter = letters[at - 1];
    next[0] = at;
    let least = at;
    for (let i = 1; i <= own.length; i++) {
      let cost = Math.min(
        (row[i - 1] as number) + (own[i - 1] === letter ? 0 : 1),
        (row[i] as number) + 1,
        (next[i - 1] as number) + 1,
      );
      if (at > 1 && i > 1 && own[i - 1] === letters[at - 2] && own[i - 2] === letter) {
        cost = Math.min(cost, (last[i - 2] as number) + 1);
      }
      next[i] = cost;
      if (cost < least) least = cost;
    }
    return least;
  }
}

/** Whether two words differ in at most `max` letters. */
export function isWithinDistance(a: string, b: string, max: number): boolean {
  return new NearWords(a, max).distanceOf(b) !== undefined;
}
