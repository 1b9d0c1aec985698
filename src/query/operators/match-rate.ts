/** How many rows a query must look at for those that it wants, as far as can be told from the rows that it has seen. */

export class MatchRate {
  #seen = 0;
  #matched = 0;

  note(seen: number, matched: number): void {
    this.#seen += seen;
    this.#matched += matched;
  }

  /** Rows to look at for `wanted` that match. As long as none has matched, nobody knows. */
  rowsFor(wanted: number): number {
    if (this.#seen === this.#matched) return wanted;
    return this.#matched === 0 ? Number.POSITIVE_INFINITY : Math.ceil((wanted * this.#seen) / this.#matched);
  }
}
