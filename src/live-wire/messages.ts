/**
 * The events of a stream of results, as JSON in server-sent events. The id of each event says which result the client has after it:
 * `Last-Event-ID` with the next request goes on from there.
 */

/** The types of fields whose values JSON cannot tell: times, bytes, integers beyond 2^53, numbers such as -0. */
export type WireTypes = Readonly<Record<string, string>>;

/** Event `result`: a whole result, of rows or of a value. */
export interface WireResult {
  readonly position: number;
  readonly rows?: readonly Readonly<Record<string, unknown>>[];
  /** A count as it is, or an object of aggregates. */
  readonly value?: unknown;
  readonly types: WireTypes;
}

/** Event `change`: the rows of a result that the one before did not have, and where the others are. */
export interface WireChange {
  readonly position: number;
  /** Rows of the result before, in the order of the new one: from which place on, and how many. They fill what `rows` leave. */
  readonly kept: readonly (readonly [from: number, count: number])[];
  /** The places of new rows in the new result, ascending, and the rows. */
  readonly rows: readonly (readonly [place: number, row: Readonly<Record<string, unknown>>])[];
  readonly types: WireTypes;
}

/** Event `current`: the result that the client has is the present one. */
export interface WireCurrent {
  readonly position: number;
}

/** Event `failure`: the query has failed, and the stream ends. */
export interface WireFailure {
  readonly code: string;
  readonly message: string;
}

/** The path under which a handler serves a query. */
export function queryPath(name: string, params: string | undefined): string {
  const search = params === undefined ? '' : `?params=${encodeURIComponent(params)}`;
  return `${encodeURIComponent(name)}${search}`;
}
