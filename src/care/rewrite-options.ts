/** The options of `db.rewrite()`, checked. */
import { InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../format/values.ts';
import type { RewriteOptions } from './rewrite.ts';

const kinds: Readonly<Record<keyof RewriteOptions, readonly [kind: string, allowed: string]>> = {
  dryRun: ['boolean', 'true or false'],
  onProgress: ['function', 'a function'],
  signal: ['object', 'an AbortSignal'],
};

/** Throws `InvalidOptionError`. */
export function checkRewriteOptions(options: RewriteOptions): RewriteOptions {
  for (const [option, value] of Object.entries(options)) {
    const kind = Object.hasOwn(kinds, option) ? kinds[option as keyof RewriteOptions] : undefined;
    if (kind === undefined) {
      const known = Object.keys(kinds).join(', ');
      throw new InvalidOptionError(option, `There is no option ${option}. The options are ${known}.`);
    }
    if (value === undefined || typeof value === kind[0]) continue;
    throw new InvalidOptionError(option, `Option ${option} is ${describeValue(value)}; it must be ${kind[1]}.`);
  }
  return options;
}
