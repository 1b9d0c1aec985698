/** The options of `db.rewrite()`, checked. */
import { withOwnSignal } from '../../base/signals.ts';
import { checkKind } from './option-checks.ts';
import type { RewriteOptions } from './rewrite.ts';

const names: readonly (keyof RewriteOptions)[] = ['dryRun', 'onProgress', 'signal'];

/** Throws `InvalidOptionError`. */
export function checkRewriteOptions(options: RewriteOptions): RewriteOptions {
  const checked = withOwnSignal('db.rewrite()', options, names);
  checkKind('dryRun', options.dryRun, 'boolean');
  checkKind('onProgress', options.onProgress, 'function');
  return checked;
}
