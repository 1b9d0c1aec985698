/** What the pages of the guide promise, in the order of its index. */
import { blobs } from './guide/blobs.ts';
import { changes } from './guide/changes.ts';
import { consistency } from './guide/consistency.ts';
import { garbage } from './guide/garbage.ts';
import { gettingStarted } from './guide/getting-started.ts';
import { handlingErrors } from './guide/handling-errors.ts';
import { indexes } from './guide/indexes.ts';
import { functions } from './guide/functions.ts';
import { instances } from './guide/instances.ts';
import { liveInTheBrowser } from './guide/live-in-the-browser.ts';
import { expiringRows } from './guide/expiry.ts';
import { liveQueries } from './guide/live-queries.ts';
import { webhooks } from './guide/webhooks.ts';
import { memory } from './guide/memory.ts';
import { migrations } from './guide/migrations.ts';
import { operations } from './guide/operations.ts';
import { options } from './guide/options.ts';
import { production } from './guide/production.ts';
import { queryPlans } from './guide/query-plans.ts';
import { querying } from './guide/querying.ts';
import { reader } from './guide/reader.ts';
import { repair } from './guide/repair.ts';
import { snapshots } from './guide/snapshots.ts';
import { insideJson } from './guide/json.ts';
import { searchingTexts } from './guide/search.ts';
import { tables } from './guide/tables.ts';
import { tenants } from './guide/tenants.ts';
import { transactions } from './guide/transactions.ts';
import { triggers } from './guide/triggers.ts';
import { troubleshooting } from './guide/troubleshooting.ts';
import { validation } from './guide/validation.ts';
import { writing } from './guide/writing.ts';
import type { PagePromises } from './page-promises.ts';

export const guide: Readonly<Record<string, PagePromises>> = {
  'docs/guide/getting-started.md': gettingStarted,
  'docs/guide/tables.md': tables,
  'docs/guide/validation.md': validation,
  'docs/guide/indexes.md': indexes,
  'docs/guide/json.md': insideJson,
  'docs/guide/search.md': searchingTexts,
  'docs/guide/writing.md': writing,
  'docs/guide/querying.md': querying,
  'docs/guide/query-plans.md': queryPlans,
  'docs/guide/transactions.md': transactions,
  'docs/guide/blobs.md': blobs,
  'docs/guide/triggers.md': triggers,
  'docs/guide/consistency.md': consistency,
  'docs/guide/functions.md': functions,
  'docs/guide/instances.md': instances,
  'docs/guide/snapshots.md': snapshots,
  'docs/guide/changes.md': changes,
  'docs/guide/expiry.md': expiringRows,
  'docs/guide/live-queries.md': liveQueries,
  'docs/guide/live-in-the-browser.md': liveInTheBrowser,
  'docs/guide/webhooks.md': webhooks,
  'docs/guide/migrations.md': migrations,
  'docs/guide/reader.md': reader,
  'docs/guide/memory.md': memory,
  'docs/guide/tenants.md': tenants,
  'docs/guide/handling-errors.md': handlingErrors,
  'docs/guide/production.md': production,
  'docs/guide/platforms.md': {},
  'docs/guide/operations.md': operations,
  'docs/guide/garbage.md': garbage,
  'docs/guide/repair.md': repair,
  'docs/guide/testing.md': {},
  'docs/guide/options.md': options,
  'docs/guide/troubleshooting.md': troubleshooting,
};
