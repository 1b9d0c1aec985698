/** Pages: some rows of a query, and a bookmark that says where the next page begins, even after changes. */
import { fromText, toText } from '#platform';
import { isBytes, isDate } from '../base/brands.ts';
import { checksum, ByteWriter, encodeUtf8, toHex } from '../base/bytes.ts';
import { defined } from '../base/options.ts';
import { BookmarkError } from '../base/errors.ts';
import { MalformedKey } from '../format/ordered-key.ts';
import { canonicalRows } from '../format/stored-schema.ts';
import { describeValue } from '../base/messages.ts';
import type { RegisteredFunction } from '../schema/registered-functions.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { WrittenClause } from './conditions/clause.ts';
import type { KeyDirection } from './conditions/index-ranges.ts';
import { PositionCondition } from './conditions/keyset-position.ts';
import type { Execution, Row } from './operators/executor.ts';
import type { Page, PageOptions } from './page-options.ts';
import { effectiveOrder, keyOrderOf } from './planner/access-paths.ts';
import type { CompiledQuery } from './planner/access-paths.ts';
import type { WrittenQuery } from './planner/query-spec.ts';
import { RowOrder } from './conditions/row-order.ts';
import type { OrderField } from './conditions/row-order.ts';
import type { WrittenSearch } from './conditions/search-options.ts';

const version = 2;
/** Before the key: version, and the checksums of the database's id, of the schema and of the query. Behind it: that of all these bytes. */
const headBytes = 13;
const tailBytes = 4;

/** Returns a text for a value: equal for equal values, and different for others. */
function textOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(textOf).join()}]`;
  if (isDate(value)) return `date ${value.getTime()}`;
  if (isBytes(value)) return `bytes ${toHex(value)}`;
  return typeof value === 'string' ? JSON.stringify(value) : `${typeof value} ${describeValue(value)}`;
}

function textOfClause(clause: WrittenClause, registered: (name: string) => RegisteredFunction | undefined): string {
  switch (clause.kind) {
    case 'condition': {
      const { name, operator, captured } = clause.condition;
      return `${JSON.stringify(name)} ${registered(name)?.version ?? ''} ${operator} ${textOf(captured)}`;
    }
    case 'range': {
      const parts = clause.parts.map((condition) => textOfClause({ kind: 'condition', condition }, registered));
      return `range(${parts.join()})`;
    }
    case 'not':
      return `not(${textOfClause(clause.clause, registered)})`;
    case 'and':
    case 'or':
      return `${clause.kind}(${clause.clauses.map((each) => textOfClause(each, registered)).join()})`;
  }
}

/** The query that a bookmark belongs to. */
export interface PagedQuery {
  readonly databaseId: string;
  readonly shape: TableShape;
  readonly clauses: readonly WrittenClause[];
  readonly registered: (name: string) => RegisteredFunction | undefined;
  readonly search: WrittenSearch | undefined;
  /** The effective order. */
  readonly order: readonly OrderField[];
  /** The direction of primary keys, if the order is by primary key. */
  readonly keyDirection: KeyDirection;
}

function refuse(table: string, why: string, cause?: unknown): never {
  const message = `The bookmark given as \`after\` to a page of table '${table}' ${why}. Begin again without it.`;
  throw new BookmarkError(message, defined({ cause }));
}

export class Bookmarks {
  readonly #query: PagedQuery;
  readonly #databaseSum: number;
  readonly #schemaSum: number;
  /** The checksum as written by old releases, in which indexes belonged to the version of a table. */
  readonly #oldSchemaSum: number;
  readonly #querySum: number;

  constructor(query: PagedQuery) {
    const { databaseId, shape, clauses, registered, search, order } = query;
    this.#query = query;
    this.#databaseSum = checksum(encodeUtf8(databaseId));
    this.#schemaSum = checksum(encodeUtf8(`${shape.name} ${canonicalRows(shape.schema)}`));
    this.#oldSchemaSum = checksum(encodeUtf8(`${shape.name} ${shape.canonical}`));
    const orders = order.map(({ field, descending }) => `${JSON.stringify(field.name)} ${descending}`);
    const text = `${clauses.map((clause) => textOfClause(clause, registered)).join()} by ${orders.join()}${JSON.stringify(search) ?? ''}`;
    this.#querySum = checksum(encodeUtf8(text.toWellFormed()));
  }

  /** Returns the bookmark of a row, from its key in the query's order. */
  encode(key: Uint8Array): string {
    const writer = new ByteWriter(headBytes + key.length + tailBytes);
    writer.u8(version);
    writer.u32(this.#databaseSum);
    writer.u32(this.#schemaSum);
    writer.u32(this.#querySum);
    writer.append(key);
    writer.u32(checksum(writer.bytes.subarray(0, writer.length)));
    return toText(writer.finish(), 'base64url');
  }

  /** Returns the bytes that {@link encode} was given. Throws `BookmarkError`. */
  content(bookmark: string): Uint8Array {
    const { shape } = this.#query;
    const bytes = fromText(bookmark, 'base64url');
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const end = bytes.length - tailBytes;
    const isWhole = end > headBytes && view.getUint32(end, true) === checksum(bytes.subarray(0, end));
    if (!isWhole || toText(bytes, 'base64url') !== bookmark) refuse(shape.name, 'is damaged');
    if (bytes[0] !== version)
      refuse(shape.name, `is of version ${bytes[0]}, and this release knows version ${version}`);
    if (view.getUint32(1, true) !== this.#databaseSum) refuse(shape.name, 'is of another database');
    if (![this.#schemaSum, this.#oldSchemaSum].includes(view.getUint32(5, true)))
      refuse(shape.name, 'is of another table, or of another version of its schema');
    if (view.getUint32(9, true) !== this.#querySum)
      refuse(shape.name, 'is of a query with other conditions or another order');
    return Uint8Array.from(bytes.subarray(headBytes, end));
  }

  /** Returns the condition that selects the rows after a bookmark. Throws `BookmarkError`. */
  decode(bookmark: string): PositionCondition {
    const { shape } = this.#query;
    const key = this.content(bookmark);
    try {
      return new PositionCondition(shape, this.#query, key);
    } catch (error) {
      if (!(error instanceof MalformedKey)) throw error;
      return refuse(shape.name, 'is damaged', error);
    }
  }
}

/** The parts of a query that its pages depend on. */
export interface QueryOfPages {
  readonly databaseId: string;
  readonly clauses: readonly WrittenClause[];
  readonly registered: (name: string) => RegisteredFunction | undefined;
  readonly search: WrittenSearch | undefined;
}

function bookmarksOf(
  { databaseId, clauses, registered, search }: QueryOfPages,
  shape: TableShape,
  query: CompiledQuery,
): Bookmarks {
  const order = effectiveOrder(shape, query);
  return new Bookmarks({
    databaseId,
    shape,
    clauses,
    registered,
    search,
    order,
    keyDirection: keyOrderOf(shape, query),
  });
}

/** Returns the query for a page: for one row more than the page has, after the bookmark. */
export function writtenPage(
  asked: QueryOfPages,
  written: WrittenQuery,
  { size, after }: Pick<PageOptions, 'size' | 'after'>,
): WrittenQuery {
  const more: WrittenQuery['more'] = (shape, query) =>
    after === undefined ? [] : [bookmarksOf(asked, shape, query).decode(after)];
  return { ...written, limit: size + 1, more };
}

/** Returns the page that an execution of {@link writtenPage} has. */
export function pageOf(execution: Execution, size: number, asked: QueryOfPages): Promise<Page<Row>> {
  const { state, query } = execution;
  return keptPage(execution, size, bookmarksOf(asked, state.shape, query));
}

/** Returns a page of an execution whose limit is one row more than the page has. */
async function keptPage(execution: Execution, size: number, bookmarks: Bookmarks): Promise<Page<Row>> {
  const order = new RowOrder(execution.state.shape, execution.plan.order);
  const kept = await execution.collected((source, base) => {
    return { row: execution.decode(source, base), key: order.key(source, base) };
  });
  const last = kept.length > size ? kept[size - 1] : undefined;
  const rows = kept.slice(0, size).map(({ row }) => row);
  return { rows, next: last && bookmarks.encode(last.key) };
}
