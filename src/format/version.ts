/** Versions of what is stored. A reader refuses what it does not know; it never guesses. */

/** Version of the block header and of everything in it. */
export const blockFormatVersion = 1;

/** Version of Block 0's JSON. */
export const block0FormatVersion = 1;

/**
 * Version of a Block 0 and of commits in which a table has an index on a function. They are refused by what was made before
 * there were any, which would merge without a word of the index versions; everything else stays readable there.
 */
export const functionIndexVersion = 2;

/**
 * Version of a Block 0 that leaves tables to a catalogue. What was made before there was any would take them for tables that
 * do not exist.
 */
export const catalogueVersion = 3;

/**
 * Version of a Block 0 and of commits in which a field of a table has another name than in an older version. What was made
 * before there were any would take it for a new field, and the old one for one that is dropped.
 */
export const renamesVersion = 4;

/**
 * Version of a Block 0 and of commits in which a field of a table has rules, or a default that is the time of the insert. What was
 * made before there were any would write rows that the rules refuse.
 */
export const fieldRulesVersion = 5;

/**
 * Version of a Block 0 and of commits in which a table has an index on some of its rows. What was made before there were any
 * would give it entries of all rows, and refuse rows that agree outside of the condition.
 */
export const partialIndexVersion = 6;

/**
 * Version of a Block 0 in which an index is added to a table that has rows. What was made before there were any would merge
 * without a word of its entries.
 */
export const addedIndexVersion = 7;

/**
 * Version of a Block 0 and of commits in which the primary key of a table is made of several fields. What was made before there
 * were any would take its first field for the whole of it.
 */
export const compoundKeyVersion = 8;

/** The newest version of Block 0 and of commits that is known here. */
export const newestVersion: number = compoundKeyVersion;
