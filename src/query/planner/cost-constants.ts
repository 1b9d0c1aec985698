/** What the single pieces of work of a query take: plans are compared by them. */

/** Costs in microseconds, as measured on one core with everything in memory, but for the request. */
export const cost = {
  /** A block that must be read. A store takes longer; several reads are under way at a time. */
  read: 5000,
  /** Testing a row in its leaf. */
  test: 0.006,
  /** Testing it by foreign code, which gets the whole row. */
  slowTest: 1,
  /** Looking up a row by its primary key, and where rows come in the order of keys. */
  lookup: 0.5,
  nearLookup: 0.2,
  /** Reading an entry of an index where its row is not looked up. */
  entry: 0.15,
  /** Holding a primary key, and looking for one among those that are held, or in an index. */
  key: 0.15,
  probe: 0.2,
  /** Setting about a leaf, or a range. */
  leaf: 0.5,
  /** Putting a row in order among all, per doubling; and passing one that is not among the first. */
  sort: 0.1,
  pass: 0.03,
  /** A row of a commit that is not merged yet, where all of them are gone through. */
  overlaid: 0.1,
  /** The same where it has an entry of its own, and what it takes to look for the first of them in a layer. */
  layerEntry: 0.5,
  layer: 1,
} as const;
