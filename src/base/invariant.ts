/** Promises that the code makes to itself, asserted in production too. */
import { InvariantError } from './errors.ts';

/** Throws {@link InvariantError} unless `condition` holds. */
export function invariant(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}
