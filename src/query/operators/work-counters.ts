/** What a query has done, in the units in which plans are compared. Counted a batch at a time. */
export class QueryWork {
  /** Rows that were looked at where they lie. */
  rows = 0;
  /** Entries of an index that were read. */
  entries = 0;
  /** Rows that were looked up by their primary key. */
  lookups = 0;
  /** Rows that matched. */
  matches = 0;
}
