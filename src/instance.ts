/**
 * A running (or stopped) instance: what is registered, the engine while it runs, and what batches and queries need of
 * the two. The facade (database.ts) puts the public calls on top of it.
 */
import type { Deadline } from './base/deadline.ts';
import type { Environment } from './base/env.ts';
import { NotStartedError } from './base/errors.ts';
import { filteredLogger } from './base/logger.ts';
import type { Logger } from './base/logger.ts';
import type { BatchHost, FlushOptions } from './batch/batch.ts';
import type { TableOperations } from './batch/operations.ts';
import { prepareMember } from './batch/prepare.ts';
import { verifyDatabase } from './care/verify.ts';
import type { VerifyReport } from './care/verify.ts';
import { Engine } from './cluster/engine.ts';
import { checkNodes } from './options.ts';
import type { CheckedOptions } from './options.ts';
import { ObservedDriver } from './storage/observed.ts';
import { RetryingDriver } from './storage/retry.ts';
import type { StorageDriver } from './storage/driver.ts';
import type { QueryHost } from './table/query-host.ts';
import { Registry } from './table/registry.ts';
import type { TableShape } from './table/table-shape.ts';
import type { TableState } from './table/table-state.ts';

/** What a flush may hold in its commit itself; more goes into staged runs. */
const maxCommitBytes = 8 * 1024 * 1024;

export class Instance implements BatchHost, QueryHost {
  readonly environment: Environment;
  readonly registry: Registry;
  /** The user's driver, counted. */
  readonly observed: ObservedDriver;
  readonly #options: CheckedOptions;
  readonly #logger: Logger;
  readonly #driver: StorageDriver;
  #engine: Engine | undefined;
  #starting: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;

  constructor(options: CheckedOptions, environment: Environment) {
    this.environment = environment;
    this.#options = options;
    this.#logger = filteredLogger(options.logger, options.logLevel);
    this.registry = new Registry(this.#logger);
    this.observed = new ObservedDriver(options.driver, { environment });
    this.#driver = new RetryingDriver(this.observed, environment);
  }

  /** The engine from `start()` to `stop()`. */
  get engine(): Engine | undefined {
    return this.#engine;
  }

  async start(): Promise<void> {
    await this.#stopping;
    if (this.#engine !== undefined) return;
    this.#starting ??= this.#open().finally(() => {
      this.#starting = undefined;
    });
    await this.#starting;
  }

  async #open(): Promise<void> {
    const { nodeId, writeForwardInterval, blockSizeBytes, maxMemoryBytes, cacheDriver, dbPrefix, nodes } =
      this.#options;
    const engine = new Engine({
      environment: this.environment,
      driver: this.#driver,
      prefix: dbPrefix,
      logger: this.#logger,
      nodeId,
      intervalMs: writeForwardInterval,
      blockSizeBytes,
      maxMemoryBytes,
      cacheDriver,
      nodes: async () => (typeof nodes === 'function' ? checkNodes(await nodes()) : nodes),
    });
    await engine.open();
    this.#engine = engine;
  }

  async stop(): Promise<void> {
    await this.#starting?.catch(() => undefined);
    const engine = this.#engine;
    if (engine === undefined) return this.#stopping;
    this.#engine = undefined;
    this.#stopping = engine.close().finally(() => {
      this.#stopping = undefined;
    });
    await this.#stopping;
    await this.#driver.close?.();
  }

  checkStarted(what: string): void {
    this.running(what);
  }

  /** Checks what is stored. */
  async verify(signal: AbortSignal | undefined): Promise<VerifyReport> {
    const { register } = this.running('db.verify()');
    const { dbPrefix: prefix, maxMemoryBytes } = this.#options;
    const cacheBytes = Math.floor(maxMemoryBytes / 4);
    return verifyDatabase(
      { environment: this.environment, driver: this.#driver, prefix, register, cacheBytes },
      signal,
    );
  }

  /** The engine; throws `NotStartedError` unless the database is running. `what` names the call. */
  running(what: string): Engine {
    if (this.#engine === undefined) throw new NotStartedError(what);
    return this.#engine;
  }

  shapeOf(table: string): TableShape | undefined {
    return this.registry.shape(table);
  }

  requireShape(table: string): TableShape {
    return this.registry.requireShape(table);
  }

  registeredFunction(name: string): ReturnType<Registry['registeredFunction']> {
    return this.registry.registeredFunction(name);
  }

  tableState(table: string): TableState | Promise<TableState> {
    const engine = this.running('A query');
    if (!engine.isStale) return this.registry.stateOf(table, engine.view);
    return engine
      .withDeadline('A query', undefined, ({ signal }) => engine.refresh(signal))
      .then(() => this.registry.stateOf(table, engine.view));
  }

  async viewMovedOn(state: TableState): Promise<boolean> {
    const engine = this.running('A query');
    await engine.refresh();
    return engine.view.table(state.shape.name)?.tree.ref !== state.tree.ref;
  }

  async commit(operations: readonly TableOperations[], options: FlushOptions): Promise<void> {
    const engine = this.running('batch.flush()');
    const { blockSizeBytes, dbPrefix: prefix } = this.#options;
    const prepareOptions = {
      environment: this.environment,
      driver: this.#driver,
      prefix,
      blockSizeBytes,
      maxCommitBytes,
    };
    const commit = ({ signal }: Deadline): Promise<void> =>
      engine.append({
        signal,
        sizeBytes: operations.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0),
        prepare: (view) => {
          return prepareMember(operations, ({ shape }) => this.registry.stateOf(shape.name, view), prepareOptions);
        },
      });
    await engine.withDeadline('batch.flush()', options.signal, commit);
  }

  resolveCommit(commitId: string, slot: number, options: FlushOptions): Promise<boolean> {
    const engine = this.running('batch.flush()');
    return engine.withDeadline('batch.flush()', options.signal, ({ signal }) =>
      engine.resolveCommit(commitId, slot, signal),
    );
  }
}
