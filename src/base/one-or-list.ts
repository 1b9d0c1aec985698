/**
 * Values that an application gives alone or as an array of several: the fields of a primary key, the values of a key, the former
 * names of a field. Only definitions, calls and errors use this form. Everything inside uses arrays.
 */

/** A value, or an array of several. The value itself is not an array. */
export type OneOrList<T> = T | readonly T[];

/** Returns an array of the values that were given alone or as an array. */
export function asList<T>(given: OneOrList<T>): readonly T[] {
  return Array.isArray(given) ? (given as readonly T[]) : [given as T];
}

/** Returns the only value of an array, or else the array. */
export function oneOrList<T>(values: readonly T[]): OneOrList<T> {
  return values.length === 1 ? (values[0] as T) : values;
}
