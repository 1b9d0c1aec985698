/** Versions of what is stored. A reader refuses what it does not know; it never guesses. */

/** Version of the block envelope and of everything in it. */
export const blockFormatVersion = 1;

/** Version of Block 0's JSON. */
export const block0FormatVersion = 1;
