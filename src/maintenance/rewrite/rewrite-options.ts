/** Checks the options of `db.rewrite()`. */
import { kinds, OptionTable } from '../../base/options.ts';
import type { KindsOf } from '../../base/options.ts';
import type { RewriteOptions } from './rewrite.ts';

export const rewriteKinds: KindsOf<RewriteOptions> = {
  dryRun: kinds.flag,
  onProgress: kinds.callback,
  signal: kinds.signal,
};

export const rewriteOptions: OptionTable<RewriteOptions> = new OptionTable(rewriteKinds);
