/** Lists loads that are unfinished, and gives them up. */
import type { Engine } from '../engine/engine.ts';
import type { FlushContext } from '../batch/flush.ts';
import type { Logger } from '../base/logger.ts';
import { allLoads, findLoad, lastRunOf, objectsOf, runsOfLoad } from '../catalog/unfinished-loads.ts';
import { stagedName } from '../format/object-names.ts';
import { BlockGone } from '../tree/block-source.ts';
import type { View } from '../view/view.ts';
import { removalOf, systemChanges } from './system-changes.ts';

/** A load that has ended early, or is under way, and can be resumed. */
export interface UnfinishedLoad {
  /** Its name: the option `resume` of `db.load()`. */
  readonly name: string;
  /** Name of the table. */
  readonly table: string;
  /** Rows of the source that are stored. */
  readonly rows: number;
  /** Id of the node that works on it, or did so last. */
  readonly nodeId: number;
  /** When it began, by the clock of the node that began it. */
  readonly startedAt: Date;
  /** When the last call of `db.load()` with this name began, by the clock of its node. */
  readonly takenAt: Date;
  /** When its rows go unless somebody works on it before; undefined if they are gone, so that it begins again. */
  readonly expiresAt: Date | undefined;
}

/** Attempts at reading a view of which gc deletes blocks. */
const maxAttempts = 8;

/** Reads from the view, and from a newer one if gc has deleted a block of it meanwhile. */
export async function readView<T>(
  engine: Engine,
  signal: AbortSignal | undefined,
  read: (view: View) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await read(engine.view);
    } catch (error) {
      if (!(error instanceof BlockGone) || attempt >= maxAttempts) throw error;
      await engine.refresh(signal);
    }
  }
}

/** Lists the unfinished loads of all instances, ordered by name. */
export async function listLoads(engine: Engine, signal: AbortSignal | undefined): Promise<UnfinishedLoad[]> {
  await engine.refresh(signal);
  return readView(engine, signal, async (view) => {
    const found: UnfinishedLoad[] = [];
    for (const { name, table, nodeId, startedAt, takenAt, pin } of await allLoads(view)) {
      const kept = view.block0.snapshots.find(({ id }) => id === pin);
      const rows = (await lastRunOf(view, name))?.sourceRows ?? 0;
      const expiresAt = kept && new Date(kept.expiresMs);
      found.push({ name, table, rows, nodeId, startedAt, takenAt, expiresAt });
    }
    return found;
  });
}

/** There is no load with the name. */
class NoSuchLoad extends Error {}

/** Objects deleted by one request. */
const deletedTogether = 500;

/** Gives an unfinished load up: removes its record, and then its rows. False if there is none. */
export async function discardLoad(
  context: FlushContext,
  name: string,
  { callName, logger, signal }: { readonly callName: string; readonly logger: Logger; readonly signal: AbortSignal },
): Promise<boolean> {
  const { engine, driver, prefix } = context;
  let pin = '';
  let objects: string[] = [];
  try {
    await engine.append({
      signal,
      sizeBytes: 2048,
      prepare: async (view) => {
        const found = await findLoad(view, name);
        if (found === undefined) throw new NoSuchLoad(`${callName} found no load '${name}'`);
        ({ pin } = found);
        objects = (await runsOfLoad(view, name)).flatMap((run) => objectsOf(run.objects) ?? []);
        return systemChanges(context, view, await removalOf(context, view, name));
      },
    });
  } catch (error) {
    if (error instanceof NoSuchLoad) return false;
    throw error;
  }
  try {
    await engine.pins.release(pin, signal);
    for (let i = 0; i < objects.length; i += deletedTogether) {
      await driver.delete(objects.slice(i, i + deletedTogether).map((run) => `${prefix}/${stagedName(run)}`));
    }
  } catch (cause) {
    logger.debug('Rows of a load that was given up could not be deleted; gc will delete them', { cause });
  }
  return true;
}
