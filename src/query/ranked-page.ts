/**
 * Pages of a search without `orderBy()`. A bookmark names the last row of its page by the score and the primary key. Scores change with every
 * write, so the next page goes on behind the place that this row has by then; if the search does not find the row any more, behind its old
 * score.
 */
import { defined } from '../base/options.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { RankedPlace, WrittenSearch } from './conditions/search-options.ts';
import type { Execution, Row } from './operators/executor.ts';
import { Bookmarks } from './page.ts';
import type { QueryOfPages } from './page.ts';
import type { Page, PageOptions } from './page-options.ts';
import type { WrittenQuery } from './planner/query-spec.ts';
import type { QueryOptions } from './run-on-state.ts';

/** A run of a query. */
interface Run {
  one<T>(written: WrittenQuery, options: QueryOptions, work: (execution: Execution) => Promise<T>): Promise<T>;
}

/** Before the primary key: the score and the rank. */
const headBytes = 12;

function encodePlace({ score, rank, key }: RankedPlace): Uint8Array {
  const bytes = new Uint8Array(headBytes + key.length);
  const view = new DataView(bytes.buffer);
  view.setFloat64(0, score, true);
  view.setUint32(8, rank, true);
  bytes.set(key, headBytes);
  return bytes;
}

function decodePlace(bytes: Uint8Array): RankedPlace {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { score: view.getFloat64(0, true), rank: view.getUint32(8, true), key: bytes.slice(headBytes) };
}

/** Returns a page of a search without orders. */
export function rankedPage(
  run: Run,
  asked: QueryOfPages,
  written: WrittenQuery,
  { size, after, signal }: PageOptions,
): Promise<Page<Row>> {
  const bookmarksOf = (shape: TableShape): Bookmarks =>
    new Bookmarks({ ...asked, shape, order: [], keyDirection: undefined });
  const placeIn = (shape: TableShape): RankedPlace | undefined =>
    after === undefined ? undefined : decodePlace(bookmarksOf(shape).content(after));
  const search: WrittenSearch = { ...(written.search as WrittenSearch), page: { placeIn } };
  return run.one({ ...written, search, limit: size + 1 }, defined({ signal }), async (execution) => {
    return keptPage(execution, size, bookmarksOf(execution.state.shape));
  });
}

async function keptPage(execution: Execution, size: number, bookmarks: Bookmarks): Promise<Page<Row>> {
  const { shape } = execution.state;
  const { access } = execution.plan;
  const kept = await execution.collected((source, base) => {
    return { row: execution.decode(source, base), key: shape.keyBytes(shape.rowKey(source, base)) };
  });
  const last = kept.length > size ? kept[size - 1] : undefined;
  const rows = kept.slice(0, size).map(({ row }) => row);
  const place = last && access.kind === 'search' && access.placeOf?.(last.key);
  return { rows, next: place ? bookmarks.encode(encodePlace(place)) : undefined };
}
