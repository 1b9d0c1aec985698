/** Checks that options of several calls need. */
import { InvalidOptionError } from '../../base/errors.ts';
import { describeValue } from '../../base/describe-value.ts';

const kinds = { boolean: 'true or false', function: 'a function', string: 'a name', object: 'an AbortSignal' } as const;

/** Throws `InvalidOptionError` for a value of another kind; an option may be left out. */
export function checkKind(option: string, value: unknown, kind: keyof typeof kinds): void {
  if (value === undefined || typeof value === kind) return;
  throw new InvalidOptionError(option, `Option ${option} is ${describeValue(value)}; it must be ${kinds[kind]}.`);
}
