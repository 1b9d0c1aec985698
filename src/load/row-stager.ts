/** Sorts and stages the rows of a load. This stager works on the thread of the application; `load-thread.ts` has one for another thread. */
import type { Environment } from '../base/env.ts';
import type { Pacer } from '../base/pacer.ts';
import { DuplicateKeyError } from '../base/errors.ts';
import { describeKey } from '../base/messages.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { LoadedRun } from './resumption.ts';
import { sortRows, stageRuns } from './row-run.ts';
import type { RunLimits } from './row-run.ts';
import type { FilledRows, RowReader } from './row-source.ts';
import type { StagedPart, StagedTree, Staging } from './staged-trees.ts';
import { TreeEntries } from '../tree/tree-entries.ts';

/** Takes the runs of a load. */
export interface RunSink {
  /** Returns the limits of the next run; undefined for none. */
  limits(): RunLimits | undefined;
  /** Takes a run. `isLast`: no other follows. */
  add(run: LoadedRun, sizeBytes: number, isLast: boolean): Promise<void>;
}

export interface RowStager {
  /** Stages the rows of a source as sorted runs. `first`: its first buffer, which is read already. */
  stageRuns(first: FilledRows, sink: RunSink): Promise<void>;
  /** Stages the rows of several trees as one. */
  merge(parts: readonly StagedPart[]): Promise<StagedTree>;
  /** Ends the work. When it resolves, nothing is put any more. */
  end(): Promise<void>;
}

export interface StagerOptions {
  readonly shape: TableShape;
  readonly reader: RowReader;
  readonly staging: Staging;
  readonly environment: Environment;
  readonly pacer: Pacer;
  /** Whether the roots of runs are stored as well, so that a later call can open them. */
  readonly storesRoots: boolean;
}

/** Returns the error for two rows of a load with one primary key. */
export function repeatedKey(shape: TableShape, key: Uint8Array): DuplicateKeyError {
  const value = shape.keyValue(key);
  const message = `The load has two rows with primary key ${describeKey(value)} of table '${shape.name}'. Nothing was written.`;
  return new DuplicateKeyError(shape.name, value, message);
}

/** Stages the rows on the thread of the application. */
export class OwnStager implements RowStager {
  readonly #options: StagerOptions;

  constructor(options: StagerOptions) {
    this.#options = options;
  }

  async stageRuns(first: FilledRows, sink: RunSink): Promise<void> {
    const { shape, reader, staging, environment, pacer, storesRoots } = this.#options;
    let filled: FilledRows | undefined = first;
    const nextRows = async () => {
      const rows = filled ?? (await reader.fill());
      filled = undefined;
      return rows && sortRows(rows, pacer, (key) => repeatedKey(shape, key));
    };
    await stageRuns({
      environment,
      nextRows,
      limits: sink.limits(),
      stage: (run) => staging.stage(shape.name, shape.changeShape, run, storesRoots),
      async staged(part, { sizeBytes, isLast, ...run }) {
        await sink.add({ part, ...run }, sizeBytes, isLast);
        return sink.limits();
      },
    });
  }

  async merge(parts: readonly StagedPart[]): Promise<StagedTree> {
    const { shape, staging } = this.#options;
    const trees = parts.map(({ tree }) => tree);
    const entries = await TreeEntries.of(trees, (key) => repeatedKey(shape, key));
    return staging.stage(shape.name, shape.changeShape, entries);
  }

  end(): Promise<void> {
    return Promise.resolve();
  }
}
