/** Drops an index of a table, in a generation of its own: the version of the table stays, and its rows. */
import { backOff } from '../base/backoff.ts';
import type { Backoff } from '../base/backoff.ts';
import type { Environment } from '../base/env.ts';
import { ContentionError, InvalidOptionError, InvalidSchemaError, MigrationActiveError } from '../base/errors.ts';
import { didYouMean } from '../base/known-names.ts';
import type { Logger } from '../base/logger.ts';
import type { Engine } from '../engine/engine.ts';
import { isSystemTable } from '../format/stored-schema.ts';
import { describeValue } from '../base/describe-value.ts';
import type { Registry } from '../catalog/registry.ts';
import { View } from '../view/view.ts';
import { droppedIndex } from './added-chunk.ts';

export interface DropIndexOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly registry: Registry;
}

/** Attempts at a step that other writes of Block 0 come before. */
const maxAttempts = 40;
const betweenAttempts: Backoff = { firstMs: 40, longestMs: 640, jitter: 'full' };

/** There is nothing to drop any more. */
class AlreadyGone extends Error {}

/** Drops an index, or one that is being added. Throws `InvalidOptionError`, `InvalidSchemaError` or `MigrationActiveError`. */
export async function dropIndex(
  { environment, logger, engine, registry }: DropIndexOptions,
  table: string,
  index: unknown,
  signal: AbortSignal,
): Promise<void> {
  if (typeof index !== 'string') {
    throw new InvalidOptionError('index', `An index is given by its name, not by ${describeValue(index)}.`);
  }
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    await engine.refresh(signal);
    checkDrop(engine.view, table, index, registry);
    try {
      const done = await engine.merger.rebuild(async (block0, context) => {
        const state = View.ofBlock0(engine.context, block0).table(table);
        if (state === undefined || block0.migrations.some((other) => other.table === table)) throw new AlreadyGone();
        return [droppedIndex(state, index, context)];
      });
      if (done) {
        logger.info(`Index ${index} of table ${table} was dropped`, { table, index });
        return;
      }
    } catch (error) {
      if (!(error instanceof AlreadyGone)) throw error;
    }
    await backOff(environment, betweenAttempts, attempt, signal);
  }
  throw new ContentionError(
    'Other nodes merged before every attempt to drop the index. Nothing was changed: try it again.',
  );
}

/** Throws unless there is such an index, and it may go. */
function checkDrop(view: View, table: string, index: string, registry: Registry): void {
  const state = view.table(table);
  if (state === undefined || isSystemTable(table)) {
    throw new InvalidOptionError('tableName', `There is no table '${table}' of the application in the database.`);
  }
  const { shape, added } = state;
  const all = [...shape.indexes, ...shape.functionIndexes, ...added.map((one) => one.index)].map(({ name }) => name);
  if (!all.includes(index)) {
    throw new InvalidOptionError('index', `Table '${table}' has no index '${index}'${didYouMean(index, all) || '.'}`);
  }
  const nextVersion = view.nextVersion(table)?.rows.shape;
  if (nextVersion !== undefined) {
    throw new MigrationActiveError(
      table,
      `Table '${table}' is being brought to version ${nextVersion.version}: drop the index '${index}' once that is finished or cancelled.`,
    );
  }
  const defined = registry.versionShape(table, shape.version);
  const isDefined = [...(defined?.indexes ?? []), ...(defined?.functionIndexes ?? [])].some(
    ({ name }) => name === index,
  );
  // It is begun anew then, which is what it is dropped for.
  const hasFailed = added.some((one) => one.index.name === index && one.problem !== undefined);
  if (!isDefined || hasFailed) return;
  throw new InvalidSchemaError(
    table,
    `Index '${index}' is in the definition of table '${table}' that is registered here, so it would be added again. Register ` +
      'the definition without it first, here and in all other processes.',
  );
}
