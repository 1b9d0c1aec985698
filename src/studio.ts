/** The exports of `store-db/studio`: a page that shows a database, to mount in an application. */
import { pageFiles } from '#studio-page';
import { realEnvironment } from './base/env.ts';
import type { Database } from './index.ts';
import { AskedAccess } from './studio/access.ts';
import { openStudio } from './studio/open-studio.ts';
import type { StudioHandler } from './studio/open-studio.ts';
import { checkDatabase, studioOptions, withDefaults } from './studio/studio-options.ts';
import type { StudioOptions } from './studio/studio-options.ts';

/**
 * Makes a handler that serves Studio, a page that shows the tables, the storage, the history and the health of a started database. Mount
 * it in an application, behind its own authentication: `authorize` is asked about every request. Without `write: true` it refuses every
 * call that writes. It registers the stored tables that the application has not registered. Throws `InvalidOptionError`, also without
 * `authorize`.
 */
export function studio(db: Database, options: StudioOptions): StudioHandler {
  checkDatabase(db);
  const { authorize, ...checked } = studioOptions.check('studio()', options);
  return openStudio(db, realEnvironment, new AskedAccess(authorize), pageFiles, withDefaults(checked));
}

export type { StudioHandler } from './studio/open-studio.ts';
export type { StudioOptions } from './studio/studio-options.ts';
export type { NamedPrices } from './studio/messages.ts';
export type { NodeRequest, NodeResponse } from './web/node-adapter.ts';
