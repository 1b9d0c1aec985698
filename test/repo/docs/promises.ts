/**
 * What README, SECURITY.md and docs/ promise, word for word, and the tests that hold it: a file of `promises/` for each page. A new
 * promise belongs there, with its test. `promises.test.ts` looks that sentences and tests are still there, and that no sentence
 * that sounds like a promise is left out.
 */
import { backups } from './promises/backups.ts';
import { cli } from './promises/cli.ts';
import { costs } from './promises/costs.ts';
import { drivers } from './promises/drivers.ts';
import { encryption } from './promises/encryption.ts';
import { errors } from './promises/errors.ts';
import { format } from './promises/format.ts';
import { guide } from './promises/guide.ts';
import { objectStores } from './promises/object-stores.ts';
import type { PagePromises } from './promises/page-promises.ts';
import { observability } from './promises/observability.ts';
import { protocol } from './promises/protocol.ts';
import { readme } from './promises/readme.ts';
import { security } from './promises/security.ts';
import { studio } from './promises/studio.ts';

export const pages: Readonly<Record<string, PagePromises>> = {
  'README.md': readme,
  'SECURITY.md': security,
  'docs/backups.md': backups,
  'docs/cli.md': cli,
  'docs/costs.md': costs,
  'docs/drivers.md': drivers,
  'docs/encryption.md': encryption,
  'docs/errors.md': errors,
  'docs/format.md': format,
  'docs/guide.md': {},
  ...guide,
  'docs/object-stores.md': objectStores,
  'docs/observability.md': observability,
  'docs/protocol.md': protocol,
  'docs/studio.md': studio,
};

/** Sentences that sound like promises and are none, by their beginnings: advice, and what is said of others. */
export const noPromises: readonly string[] = [
  // What the store, its owner or somebody else's software does.
  'A link never outlives the credentials that signed it',
  'Reads and writes work, but nothing that is locked can be removed',
  'Signed links to blobs may go through a CDN',
  '[Documented](https://developers.cloudflare.com',
  'A person who can write to the store can always destroy.',
  // What to set, and why.
  'If you never call it, take it out of the second statement',
  'Why an instance that never lists needs `s3:ListBucket`',
];

/** Sentences that were true once. */
export const stale: readonly string[] = [
  'StoreDb itself encrypts nothing',
  'Blocks that merges replace stay in this release',
  'Only the primary key is sure to be unique',
  'StoreDb never writes without a condition',
  'An open database never lists',
  'one that only reads costs none and cannot conflict',
  'a flush costs two requests, however many rows it has.',
  'V is as fresh as what a query would see',
  'a primary key that cannot exist',
  'in a commit that names an index on a function 2',
  'it serves anyone who is to copy the database',
];
