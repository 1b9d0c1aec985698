/**
 * The rows of a selection, by their number, for a list that shows a few of a million. Rows come in pages, each of which begins at the
 * bookmark of the page before: an offset would read all rows before it. The end is read backwards, in the reversed order. Only the pages
 * around what is shown stay in memory, and the bookmarks of the pages that were passed.
 */
import { signal } from '@preact/signals';
import type { Cell, Cost, Order, RowMarks, Selection, TableInfo } from '../../src/studio/messages.ts';
import { call, failureOf } from './api.ts';
import type { CallFailure } from './api.ts';

/** Rows of a page. */
export const pageRows = 200;
/** Pages that are passed with one request, where only their bookmarks are needed. */
const stride = 5;
/** Pages that stay in memory: the fewer, the less; enough for a tall window and what is around it. */
const mostPages = 24;
/** More bookmarks than this are thinned out. */
const mostBookmarks = 4096;

/** Rows in one order: from the first on, or from the last. */
class Direction {
  readonly orderBy: readonly Order[];
  /** Bookmarks by the number of the page that begins there. The first page needs none. */
  readonly #bookmarks = new Map<number, string | undefined>([[0, undefined]]);
  readonly pages = new Map<number, readonly (readonly Cell[])[]>();
  /** Pages to be read again, because there is a newer state. They are shown until then. */
  readonly stale = new Set<number>();

  constructor(orderBy: readonly Order[]) {
    this.orderBy = orderBy;
  }

  get bookmarkCount(): number {
    return this.#bookmarks.size;
  }

  /** Returns the last page before or at `page` that has a bookmark. */
  nearest(page: number): number {
    if (this.#bookmarks.has(page)) return page;
    let best = 0;
    for (const known of this.#bookmarks.keys()) if (known <= page && known > best) best = known;
    return best;
  }

  bookmark(page: number): string | undefined {
    return this.#bookmarks.get(page);
  }

  /** Takes the bookmark of a page. If it is another than before, the page begins elsewhere now. */
  note(page: number, bookmark: string | undefined): void {
    if (page === 0) return;
    if (bookmark === undefined) {
      this.#bookmarks.delete(page);
      return;
    }
    const before = this.#bookmarks.get(page);
    if (before !== undefined && before !== bookmark && this.pages.has(page)) this.stale.add(page);
    this.#bookmarks.set(page, bookmark);
    if (this.#bookmarks.size > mostBookmarks) this.#thin(page);
  }

  #thin(kept: number): void {
    let at = 0;
    for (const page of this.#bookmarks.keys()) {
      if (page !== 0 && page !== kept && at++ % 2 === 1) this.#bookmarks.delete(page);
    }
  }

  /** Puts a page in memory, as the one used last. */
  keep(page: number, rows: readonly (readonly Cell[])[]): void {
    this.pages.delete(page);
    this.pages.set(page, rows);
    this.stale.delete(page);
  }

  drop(page: number): void {
    this.pages.delete(page);
    this.stale.delete(page);
  }
}

/** The way to a page that is not known yet. */
export interface Walk {
  readonly done: number;
  readonly total: number;
}

function flipped({ field, direction }: Order): Order {
  return { field, direction: direction === 'asc' ? 'desc' : 'asc' };
}

/** Returns an order in which no two rows tie, and which an index on its first field has, too. */
export function fullOrder({ primaryKey }: Pick<TableInfo, 'primaryKey'>, orderBy: readonly Order[]): readonly Order[] {
  const named = new Set(orderBy.map(({ field }) => field));
  const direction = orderBy.at(-1)?.direction ?? 'asc';
  return [...orderBy, ...primaryKey.filter((field) => !named.has(field)).map((field) => ({ field, direction }))];
}

export class RowSource {
  /** Changes whenever rows, columns or their number do. */
  readonly version = signal(0);
  readonly failure = signal<CallFailure | undefined>(undefined);
  readonly walk = signal<Walk | undefined>(undefined);
  readonly cost = signal<Cost | undefined>(undefined);
  /** Number of rows; until it is counted, of those that are known. */
  readonly count = signal(0);
  readonly isCounted = signal(false);
  columns: readonly string[] = [];
  readonly #selection: Selection;
  readonly #forward: Direction;
  readonly #backward: Direction;
  readonly #keyNames: readonly string[];
  /** Whether the best rows of a search come first: that has no reversed order. */
  readonly #isRanked: boolean;
  readonly #marks = new WeakMap<readonly Cell[], RowMarks>();
  readonly #controller = new AbortController();
  #wanted: readonly [first: number, last: number] = [0, 0];
  #isPumping = false;
  #counting: Promise<void> | undefined;
  #isCountStale = true;

  constructor(table: Pick<TableInfo, 'primaryKey'>, selection: Selection) {
    this.#keyNames = table.primaryKey;
    this.#isRanked = selection.search !== undefined && selection.orderBy.length === 0;
    const orderBy = this.#isRanked ? [] : fullOrder(table, selection.orderBy);
    this.#selection = { ...selection, orderBy };
    this.#forward = new Direction(orderBy);
    this.#backward = new Direction(orderBy.map(flipped));
    this.#countRows();
    this.want(0, 0);
  }

  /** Pages and bookmarks in memory. */
  get held(): { readonly pages: number; readonly bookmarks: number } {
    return {
      pages: this.#forward.pages.size + this.#backward.pages.size,
      bookmarks: this.#forward.bookmarkCount + this.#backward.bookmarkCount,
    };
  }

  /** The rows that were asked for last. */
  get wanted(): { readonly first: number; readonly last: number } {
    const [first, last] = this.#wanted;
    return { first, last };
  }

  /** Returns a row, if it is in memory. */
  rowAt(index: number): readonly Cell[] | undefined {
    const ahead = this.#forward.pages.get(Math.floor(index / pageRows))?.[index % pageRows];
    if (ahead !== undefined || !this.isCounted.value) return ahead;
    const back = this.count.value - 1 - index;
    return this.#backward.pages.get(Math.floor(back / pageRows))?.[back % pageRows];
  }

  /** Returns where the words of a search are in the cells of a row in memory. */
  marksAt(index: number): RowMarks | undefined {
    const row = this.rowAt(index);
    return row && this.#marks.get(row);
  }

  /** Gets the rows from `first` to `last` into memory. */
  want(first: number, last: number): void {
    this.#wanted = [Math.max(0, first), Math.max(0, last)];
    if (!this.#isPumping) void this.#pump();
  }

  /** Reads again what is shown: there is a newer state. */
  refresh(): void {
    for (const direction of [this.#forward, this.#backward]) {
      for (const page of direction.pages.keys()) direction.stale.add(page);
    }
    this.#isCountStale = true;
    this.#countRows();
    if (!this.#isPumping) void this.#pump();
  }

  /** Tries again after a failure. */
  retry(): void {
    this.failure.value = undefined;
    this.refresh();
  }

  stop(): void {
    this.#controller.abort();
  }

  #countRows(): void {
    if (this.#counting !== undefined || !this.#isCountStale) return;
    this.#isCountStale = false;
    const { table, where, search, at } = this.#selection;
    const asked = { table, where, orderBy: [], ...(search !== undefined && { search }), ...(at && { at }) };
    this.#counting = this.#count(asked).finally(() => {
      this.#counting = undefined;
      this.#countRows();
    });
  }

  async #count(asked: Selection): Promise<void> {
    try {
      const { count } = await call('count', asked, this.#controller.signal);
      // Rows are counted from the end there.
      if (this.isCounted.value && count !== this.count.value) this.#shiftBackward();
      this.count.value = count;
      this.isCounted.value = true;
      this.#changed();
      if (!this.#isPumping) void this.#pump();
    } catch (error) {
      this.#fail(error);
    }
  }

  #shiftBackward(): void {
    for (const page of this.#backward.pages.keys()) this.#backward.stale.add(page);
  }

  #changed(): void {
    this.version.value++;
  }

  #fail(error: unknown): void {
    if (!this.#controller.signal.aborted) this.failure.value = failureOf(error);
  }

  /** Returns the next thing to read for the rows that are wanted: a page, or the way to it. */
  #next(): { readonly direction: Direction; readonly page: number } | undefined {
    const count = this.count.value;
    const [first, last] = this.#wanted;
    const to = this.isCounted.value ? Math.min(last, Math.max(0, count - 1)) : last;
    for (let page = Math.floor(first / pageRows); page <= Math.floor(to / pageRows); page++) {
      const from = Math.max(first, page * pageRows);
      const end = Math.min(to, page * pageRows + pageRows - 1);
      const way = this.#wayTo(page, from, end);
      if (way !== undefined) return way;
    }
    return undefined;
  }

  /** Returns the page to read for some rows of one page, from the end that is nearer; undefined if they are in memory. */
  #wayTo(page: number, from: number, end: number): { direction: Direction; page: number } | undefined {
    const forward = this.#forward;
    if (forward.pages.has(page) && !forward.stale.has(page)) return undefined;
    const steps = page - forward.nearest(page);
    const count = this.count.value;
    if (this.isCounted.value && count > 0 && !this.#isRanked) {
      const backPages = [count - 1 - end, count - 1 - from].map((row) => Math.floor(row / pageRows));
      const backward = this.#backward;
      const missing = [...new Set(backPages)].find((back) => !backward.pages.has(back) || backward.stale.has(back));
      if (missing === undefined) return undefined;
      if (missing - backward.nearest(missing) < steps) return { direction: backward, page: missing };
    }
    return { direction: forward, page };
  }

  async #pump(): Promise<void> {
    this.#isPumping = true;
    let started: { readonly direction: Direction; readonly page: number; readonly from: number } | undefined;
    try {
      for (;;) {
        if (this.#controller.signal.aborted || this.failure.value !== undefined) return;
        const next = this.#next();
        if (next === undefined) break;
        const { direction, page } = next;
        const nearest = direction.nearest(page);
        if (nearest === page) {
          started = undefined;
          await this.#readPage(direction, page);
        } else {
          if (started?.direction !== direction || started.page !== page) started = { direction, page, from: nearest };
          this.walk.value = {
            done: (nearest - started.from) * pageRows,
            total: (page - started.from) * pageRows,
          };
          if (!(await this.#pass(direction, nearest, Math.min(stride, page - nearest)))) break;
        }
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.walk.value = undefined;
      this.#isPumping = false;
    }
  }

  async #readPage(direction: Direction, page: number): Promise<void> {
    const after = direction.bookmark(page);
    const selection = { ...this.#selection, orderBy: direction.orderBy };
    const asked = { ...selection, size: pageRows, ...(after !== undefined && { after }) };
    const { columns, rows, marks, next, cost } = await call('rows', asked, this.#controller.signal);
    this.columns = columns;
    marks?.forEach((each, i) => this.#marks.set(rows[i] as readonly Cell[], each));
    direction.keep(page, rows);
    direction.note(page + 1, next);
    this.#letGo();
    if (!this.isCounted.value && direction === this.#forward) {
      const known = page * pageRows + rows.length;
      // One row more than are known, so that the list can be scrolled on.
      this.count.value = Math.max(this.count.value, next === undefined ? known : known + 1);
    }
    this.cost.value = cost;
    this.#changed();
  }

  /** Passes pages without keeping their rows. Returns whether there are more. */
  async #pass(direction: Direction, page: number, pages: number): Promise<boolean> {
    const after = direction.bookmark(page);
    const { orderBy } = direction;
    const fields = this.#keyNames.slice(-1);
    const size = pages * pageRows;
    const asked = { ...this.#selection, orderBy, fields, size, ...(after !== undefined && { after }) };
    const { next } = await call('rows', asked, this.#controller.signal);
    direction.note(page + pages, next);
    if (next !== undefined) return true;
    // There are fewer rows than were counted.
    this.#isCountStale = true;
    this.#countRows();
    return false;
  }

  /** Lets go of the pages that were used longest ago. */
  #letGo(): void {
    const [first, last] = this.#wanted;
    const isWanted = (index: number): boolean => index + pageRows >= first && index <= last;
    for (const direction of [this.#forward, this.#backward]) {
      for (const page of Array.from(direction.pages.keys())) {
        if (this.held.pages <= mostPages) return;
        const start = page * pageRows;
        const index = direction === this.#forward ? start : this.count.value - start - pageRows;
        if (!isWanted(index)) direction.drop(page);
      }
    }
  }
}
