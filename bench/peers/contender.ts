/** What every contender of the benchmark can do: the same work through each one's own normal JavaScript API. */

export interface City {
  readonly id: number;
  readonly name: string;
  readonly country: string;
  readonly admin: string;
  readonly lat: number;
  readonly lng: number;
}

export interface Contender {
  readonly name: string;
  /** Loads all rows durably, in batches, with an index on country. */
  load(cities: readonly City[], batchRows: number): Promise<void> | void;
  /** One row by key, as an object, or a promise of it. */
  get(id: number): unknown;
  /** The same through the query interface, where there is another one. */
  queryKey?(id: number): unknown;
  /** All rows of a country, as objects. */
  byCountry(country: string): Promise<readonly unknown[]> | readonly unknown[];
  /** How many rows lie north of a latitude: a scan with a predicate on a number. */
  countNorthOf(lat: number): Promise<number> | number;
  /** How many rows have a name: a scan with a predicate on a string. */
  countNamed(name: string): Promise<number> | number;
  /** The rows furthest south, by a field without an index. */
  southernmost(limit: number): Promise<readonly unknown[]> | readonly unknown[];
  /** Changes one row, durably. */
  updateOne(id: number, lat: number): Promise<void> | void;
  close(): Promise<void> | void;
}
