/** What a schema definition may carry to make rows of its version from rows of another one. */

/** A row as applications see it: its fields by name. */
export type PlainRow = Record<string, unknown>;

/**
 * Makes a row of this version from one of another. It must be synchronous and pure: the same row always gives the same
 * result. Fields that it leaves out get their constant `default`, or null; those that only the other version has are left out.
 */
export type MigrateFunction = (row: Record<string, unknown>, fromVersion: number) => Record<string, unknown>;
