/** The rows of a search for a page: those behind the place of the last row of the page before. */
import { compareBytes, toLatin1 } from '../../base/bytes.ts';
import type { RankedPlace } from '../conditions/search-options.ts';
import type { RankedRows } from './ranked-rows.ts';

/** The rows of a search for a page, which begin behind a place. Remembers the places of those that were taken. */
export class PagedRows {
  readonly #found: RankedRows;
  readonly #places = new Map<string, RankedPlace>();
  #rank = 0;
  /** The next row, which {@link skip} has taken. */
  #held: Uint8Array | undefined;

  constructor(found: RankedRows) {
    this.#found = found;
  }

  /** How many rows are left. */
  get left(): number {
    return this.#found.left + (this.#held === undefined ? 0 : 1);
  }

  /**
   * Skips the rows up to a place. `isThere`: the row of the place is found, so all rows up to it are skipped, whatever their scores.
   * Resolves to false if it does not come.
   */
  async skip(place: RankedPlace, isThere: boolean, breathe: () => void | Promise<void>): Promise<boolean> {
    for (;;) {
      const key = this.#found.take();
      if (key === undefined) return !isThere;
      const order = compareBytes(key, place.key);
      const score = this.#found.takenScore;
      if (!isThere && (score < place.score || (score === place.score && order > 0))) {
        this.#held = key;
        return true;
      }
      this.#rank++;
      if (isThere && order === 0) return true;
      await breathe();
    }
  }

  take(): Uint8Array | undefined {
    const key = this.#held ?? this.#found.take();
    this.#held = undefined;
    if (key === undefined) return undefined;
    this.#rank++;
    this.#places.set(toLatin1(key), { score: this.#found.takenScore, rank: this.#rank, key });
    return key;
  }

  /** Returns the place of a row that was taken. */
  placeOf(key: Uint8Array): RankedPlace {
    return this.#places.get(toLatin1(key)) as RankedPlace;
  }
}

/** Finds the best rows of a search, and skips those before a page. `most`: how many of the best rows are wanted. */
export async function pagedRows(
  place: RankedPlace | undefined,
  size: number,
  {
    find,
    isThere,
    breathe,
  }: {
    readonly find: (most: number) => Promise<RankedRows>;
    readonly isThere: (key: Uint8Array) => Promise<boolean>;
    readonly breathe: () => void | Promise<void>;
  },
): Promise<{ readonly found: RankedRows; readonly rows: PagedRows }> {
  if (place === undefined) {
    const found = await find(size);
    return { found, rows: new PagedRows(found) };
  }
  let stays = await isThere(place.key);
  for (let most = place.rank + size; ; most = Number.POSITIVE_INFINITY) {
    const found = await find(most);
    const rows = new PagedRows(found);
    const isBehind = await rows.skip(place, stays, breathe);
    // Rows that came before the place, or left it, move it: then more of the best rows are needed.
    if (isBehind && (rows.left >= size || found.isWhole)) return { found, rows };
    if (found.isWhole) stays = false;
  }
}
