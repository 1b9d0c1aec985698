/** Versions of stored objects. A reader refuses versions that it does not know, and never guesses. */

/** Version of the block header and of everything in it. */
export const blockFormatVersion = 1;

/** Version of Block 0's JSON. */
export const block0FormatVersion = 1;

/**
 * Version of Block 0 and commits if a table has an index on a function. Releases without such indexes refuse it, because they
 * would merge without updating index versions. They can still read all other objects.
 */
export const functionIndexVersion = 2;

/** Version of a Block 0 with a catalogue. Releases without catalogues would miss the tables in it. */
export const catalogueVersion = 3;

/**
 * Version of Block 0 and commits if a field of a table was renamed. Releases without renames would drop the old field and add a
 * new one.
 */
export const renamesVersion = 4;

/**
 * Version of Block 0 and commits if a field of a table has rules, or the time of the insert as default. Releases without rules
 * would write rows that the rules refuse.
 */
export const fieldRulesVersion = 5;

/**
 * Version of Block 0 and commits if a table has a partial index. Releases without such indexes would make entries for all rows,
 * and refuse rows that agree outside of the condition.
 */
export const partialIndexVersion = 6;

/**
 * Version of Block 0 if an index is being added to a table with rows. Releases without this feature would merge without
 * updating its entries.
 */
export const addedIndexVersion = 7;

/**
 * Version of Block 0 and commits if a table has a primary key of several fields. Releases without such keys would take the
 * first field for the whole key.
 */
export const compoundKeyVersion = 8;

/**
 * Version of commits whose staged runs are named for a later slot. Releases without such names would take the commit for a
 * damaged one.
 */
export const laterRunsVersion = 9;

/**
 * Version of Block 0 and commits if rows of a table expire. Releases without expiry would show rows that have expired, and refuse
 * to insert others in their place.
 */
export const expiryVersion = 10;

/**
 * Version of Block 0 and commits if a table was dropped. Releases that cannot drop tables would show its rows until a merge, and
 * bring the table back with the next row of an old registration.
 */
export const droppedTableVersion = 11;

/**
 * Version of Block 0 and commits if an index holds other fields besides those that it is on. Releases without such indexes would
 * make entries that lack them.
 */
export const entryFormsVersion = 12;

/**
 * Version of Block 0 and commits if a table has an index on the words of texts. Releases without such indexes would merge without
 * updating its entries, and would not know how many words there are.
 */
export const textIndexVersion = 13;

/**
 * Version of Block 0 and commits if an index is on a path into a json field, or has one in another part. Releases without such indexes
 * would take the path for the name of a field.
 */
export const pathIndexVersion = 14;

/** The newest version of Block 0 and commits that this release reads. */
export const newestVersion: number = pathIndexVersion;
