/** The calls that show how a database is stored. Loaded with the first of them. */
import type { Environment } from '../../base/env.ts';
import type { Engine } from '../../engine/engine.ts';
import { CommitLog } from '../../log/commit-log.ts';
import type { StorageDriver } from '../../storage/contract/driver.ts';
import { inspectBlock } from './block.ts';
import type { BlockInfo } from './block.ts';
import type { BlockOptions, LogOptions, ObjectsOptions } from './inspect-options.ts';
import { listCommits } from './log-list.ts';
import type { CommitInfo } from './log-list.ts';
import { groupObjects } from './stored-objects.ts';
import type { ObjectGroup } from './stored-objects.ts';

export interface InspectionOptions {
  readonly environment: Environment;
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly engine: Engine;
}

export class Inspection {
  readonly #options: InspectionOptions;

  constructor(options: InspectionOptions) {
    this.#options = options;
  }

  /** Lists commits of the log, newest first. */
  log(callName: string, { signal: outer, ...options }: LogOptions): Promise<CommitInfo[]> {
    const { environment, driver, prefix, engine } = this.#options;
    return engine.withDeadline(callName, outer, async ({ signal }) => {
      await engine.refresh(signal);
      return listCommits(engine, new CommitLog(environment, driver, prefix), options, signal);
    });
  }

  /** Reads a block of a table or an index. */
  block(callName: string, table: string, options: BlockOptions): Promise<BlockInfo | null> {
    const { driver, prefix, engine } = this.#options;
    return engine.withDeadline(callName, options.signal, async ({ signal }) => {
      if (options.name === undefined) await engine.refresh(signal);
      return inspectBlock(engine, driver, prefix, table, options, signal);
    });
  }

  /** Lists all stored objects, and adds them up. */
  objects(callName: string, options: ObjectsOptions): Promise<ObjectGroup[]> {
    const { driver, prefix, engine } = this.#options;
    return engine.withSignal(callName, options.signal, (signal) => groupObjects(driver, prefix, options, signal));
  }
}
