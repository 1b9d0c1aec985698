/** What every contender of the benchmark can do: the same work through each one's own normal JavaScript API. */

export interface City {
  readonly id: number;
  readonly name: string;
  readonly country: string;
  readonly lat: number;
  readonly lng: number;
  readonly population: number;
}

export type Some<T> = T | Promise<T>;
export type Rows = Some<readonly unknown[]>;

/**
 * `batches`: every call of `add` is a transaction of its own, durable when it has returned. `bulk`: rows in the order of
 * their keys, the fastest way that there is; durable in the end.
 */
export type LoadKind = 'batches' | 'bulk';

export interface Loader {
  add(rows: readonly City[]): Some<unknown>;
  /** In the end everything is durable, merged and indexed. */
  finish(): Some<unknown>;
}

export interface Changes {
  /** Inserts a row, or replaces the row with its key. */
  upsert(row: City): unknown;
  commit(): Some<unknown>;
}

/** A table of cities with a primary key, and an index on population. Rows are plain objects. */
export interface StoreContender {
  loader(kind: LoadKind): Some<Loader>;
  get(id: number): unknown;
  /** The same without a promise, where there is another call for rows in memory; undefined if `get` must be called. */
  getCached?(id: number): unknown;
  /** By an index; those on an object store have it. */
  withPopulation?(population: number): Rows;
  /** Changes one row, and is durable when it has returned. */
  update(id: number, lat: number): Some<unknown>;
  /** Waits for what goes on in the background because of updates. */
  settle?(): Some<unknown>;
  /** Reads everything once, where there is a cache that could hold it. */
  warm?(): Some<unknown>;
  close(): Some<unknown>;
}

/** The same with an index on country as well, and all that is asked in a folder. */
export interface Contender extends StoreContender {
  /** The same through the query interface, where there is another one. */
  queryKey?(id: number): unknown;
  /** By ascending ids, through an index. */
  byCountry(country: string, limit?: number): Rows;
  /** By ascending population and then ids, through an index. */
  fromPopulation(least: number, limit: number): Rows;
  /** By descending population and then ids, through an index. */
  mostPopulous?(limit: number): Rows;
  /** Rows that are written together, and are durable when `commit` has returned. */
  changes?(): Changes;
  /** How many rows lie north of a latitude: a scan with a predicate on a number. */
  countNorthOf(lat: number): Some<number>;
  /** How many rows have a name: a scan with a predicate on a string. */
  countNamed(name: string): Some<number>;
  /** The rows furthest south, and then by ids, by a field without an index. */
  southernmost(limit: number): Rows;
}

/** Where an object store is, and whose it is. */
export interface StoreTarget {
  readonly endpoint: string;
  readonly bucket: string;
  readonly prefix: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface OpenOptions {
  /** A folder, or an object store: empty, or filled by a contender of the same kind. */
  readonly place: string | StoreTarget;
  /** What the contender may use for its cache, where it can be told. */
  readonly memoryBytes: number;
}

/** For contenders that need a folder. */
export function folderOf(place: OpenOptions['place']): string {
  if (typeof place !== 'string') throw new Error('It needs a folder.');
  return place;
}
