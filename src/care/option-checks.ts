/** Checks that options of several calls need. */
import { InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../format/values.ts';

const kinds = { boolean: 'true or false', function: 'a function', string: 'a name', object: 'an AbortSignal' } as const;

/** Throws `InvalidOptionError` for an option that there is not. */
export function checkNames(options: object, known: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new InvalidOptionError(unknown, `There is no option ${unknown}. The options are ${known.join(', ')}.`);
}

/** Throws `InvalidOptionError` for a value of another kind; an option may be left out. */
export function checkKind(option: string, value: unknown, kind: keyof typeof kinds): void {
  if (value === undefined || typeof value === kind) return;
  throw new InvalidOptionError(option, `Option ${option} is ${describeValue(value)}; it must be ${kinds[kind]}.`);
}
