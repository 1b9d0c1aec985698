/** Options of the calls that add changes to a batch, and how they are read. */
import { EncodeError } from '../base/errors.ts';
import { kinds, OptionTable } from '../base/option-checks.ts';
import { describeValue } from '../base/describe-value.ts';
import { Operation } from './operations.ts';

/** Options of `Batch.upsert()`. */
export interface UpsertOptions {
  /**
   * Where the row exists, only the given fields replace those of it, as in an update; where it does not, the others get their
   * default, or null, as in an insert. Default: false, the row is replaced as a whole.
   */
  readonly partial?: boolean;
}

/** What the condition may be is known by the table. */
const changeOptions = new OptionTable<{ readonly if?: object | undefined }>({ if: kinds.anything });

const upsertOptions = new OptionTable<UpsertOptions>({ partial: kinds.flag });

/**
 * The condition in the options of a call, which `what` names; undefined if it has none. Throws `InvalidOptionError` for other
 * options.
 */
export function conditionOf(
  what: string,
  options: { readonly if?: object | undefined } | undefined,
): object | undefined {
  return options === undefined ? undefined : changeOptions.check(what, options).if;
}

/** The operation that an upsert with some options is. Throws `InvalidOptionError`. */
export function upsertKind(options: UpsertOptions | undefined): Operation {
  if (options === undefined) return Operation.upsert;
  return upsertOptions.check('batch.upsert()', options).partial === true ? Operation.upsertFields : Operation.upsert;
}

/** A copy of the fields that `updateWhere()` is given. Throws `EncodeError`. */
export function updatedFields(fields: unknown): object {
  if (typeof fields === 'object' && fields !== null && !Array.isArray(fields)) return { ...fields };
  const message = `updateWhere() takes an object of fields, not ${describeValue(fields)}.`;
  throw new EncodeError('', '', fields, message);
}

/** Throws `EncodeError` if fields of `updateWhere()` have the primary key among them. */
export function checkKeyless(table: string, keyNames: readonly string[], fields: object): void {
  const given = keyNames.find((name) => Object.hasOwn(fields, name));
  if (given === undefined) return;
  const value = (fields as Record<string, unknown>)[given];
  const what = keyNames.length === 1 ? 'the primary key' : 'of the primary key';
  const message = `updateWhere() cannot give '${given}', ${what} of table '${table}': rows keep the key that they have.`;
  throw new EncodeError(table, given, value, message);
}
