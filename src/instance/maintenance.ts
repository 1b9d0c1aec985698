/** The maintenance of a database: garbage collection, checks and repairs, migrations, backups, and the examination of its store. */
import { Deadline } from '../base/abort.ts';
import type { Environment } from '../base/env.ts';
import { InvalidOptionError } from '../base/errors.ts';
import { Later } from '../base/later.ts';
import { collections } from '../base/tracing.ts';
import type { Logger } from '../base/logger.ts';
import { messageOf } from '../base/brands.ts';
import type { BackupSource, CopyOptions } from '../maintenance/backup/backup.ts';
import { contentTypeOf } from '../maintenance/blob-record.ts';
import type { StoreReport } from '../maintenance/store-report.ts';
import type { CollectorOptions, GcReport } from '../maintenance/gc/collector.ts';
import { checkGcOptions, GcSchedule } from '../maintenance/gc/gc-options.ts';
import type { CheckedGcOptions } from '../maintenance/gc/gc-options.ts';
import type { HeldSnapshot } from '../maintenance/snapshots/held-snapshot.ts';
import type { Inspection } from '../maintenance/inspect/inspection.ts';
import type { RepairReport, UpkeepOptions } from '../maintenance/verify/repair.ts';
import type { PublishOptions, PublishReport } from '../maintenance/publish/publish-options.ts';
import type { RewriteOptions, RewriteReport } from '../maintenance/backup/rewrite.ts';
import type { ProtectedPlace, StorePlace } from '../maintenance/backup/state-copy.ts';
import type { VerifyReport } from '../maintenance/verify/verify.ts';
import type { RepairOptions, VerifyOptions } from '../maintenance/verify/verify-options.ts';
import type { Engine, PinnedView } from '../engine/engine.ts';
import type { View } from '../view/view.ts';
import type { Daemons } from '../migration/daemons.ts';
import { mayHaveWork } from '../migration/expected-work.ts';
import type { FieldChangeLog } from '../migration/field-changes.ts';
import type { IndexesOptions, IndexStatus } from '../migration/index-status.ts';
import type { CallOptions, CheckedOptions } from './options.ts';
import type { MigrationStatus } from '../migration/migration-status.ts';
import type { Migrations } from '../migration/migrations.ts';
import { changeableOf } from '../block0/block0-register.ts';
import { EnvelopeDriver } from '../storage/wrap/envelope-driver.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import type { Registry } from '../catalog/registry.ts';

const changing = new Later('migrations and indexes', () => import('../migration/daemons.ts'));
const listing = new Later('the status of indexes', () => import('../migration/index-status.ts'));
const collecting = new Later('garbage collection', () => import('../maintenance/gc/collector.ts'));
const inspecting = new Later('inspection of stored objects', () => import('../maintenance/inspect/inspection.ts'));
const verifying = new Later('verification and repair', () => import('../maintenance/verify/repair.ts'));
const copying = new Later('copies of databases', () => import('../maintenance/backup/state-copy.ts'));
const publishing = new Later('publishing', () => import('../maintenance/publish/publish.ts'));
const rewriting = new Later('rewriting objects', () => import('../maintenance/backup/rewrite.ts'));
const examining = new Later('examining a store', () => import('../maintenance/doctor.ts'));

/** How long after a merge a loop may still read an unpinned state, beyond the age of the view that it began on, in milliseconds. */
const loopGraceMs = 20_000;
/** The longest that `db.gc()` waits for loops of other instances by default, in milliseconds. */
const maxLoopGraceMs = 60_000;
/** Far longer than the examination of a store takes, which ends by itself. */
const doctorTimeoutMs = 300_000;
/** After how long a state that is being copied counts as abandoned unless it is renewed, in milliseconds. */
const copyPinMs = 600_000;

export interface MaintenanceOptions {
  readonly environment: Environment;
  readonly driver: StorageDriver;
  /** The driver that may write on a replica too, where `driver` refuses to: certification of a store writes. */
  readonly store: StorageDriver;
  readonly logger: Logger;
  readonly options: CheckedOptions;
  readonly registry: Registry;
  readonly fieldChangeLog: FieldChangeLog;
  readonly maxCommitBytes: number;
  /** The engine; throws `NotStartedError` unless the database is running. */
  readonly running: (callName: string) => Engine;
  /** The engine for a call that writes; throws `ReadOnlyError` on a replica. */
  readonly writing: (callName: string) => Engine;
  /** Resolves once every loop of this instance that is under way holds on to its state, if it can. */
  readonly holdLoops: () => Promise<void>;
  /** Holds a state that is being pinned. */
  readonly hold: (callName: string, pinning: Promise<PinnedView>, timeToLiveMs: number) => Promise<HeldSnapshot>;
}

export class Maintenance {
  readonly #options: MaintenanceOptions;
  #gcSchedule: GcSchedule | undefined;
  /** The engine from the start of the instance to its end. */
  #engine: Engine | undefined;
  /** The daemons, once there may be work for them. */
  #daemons: Daemons | undefined;

  constructor(options: MaintenanceOptions) {
    this.#options = options;
  }

  /** Begins the background work of an instance that has started. */
  begin(engine: Engine): void {
    const { environment, logger, options } = this.#options;
    this.#engine = engine;
    if (options.role === 'ephemeral') return;
    if (changing.loaded !== undefined) this.#daemons = this.#makeDaemons(engine, changing.loaded);
    const viewChanged = (view: View): void => {
      if (this.#daemons === undefined) this.#lookForWork(engine, view);
      else this.#daemons.viewChanged(view);
    };
    engine.events.viewChanged.on(viewChanged);
    viewChanged(engine.view);
    const { gcInterval: intervalMs } = options;
    if (intervalMs === undefined) return;
    this.#gcSchedule = new GcSchedule({
      environment,
      logger,
      intervalMs,
      isDue: () => {
        const { generation, collected } = engine.register.current.block0;
        return generation > collected;
      },
      // A loop begins on a view that is two intervals old at most, and holds on to it after ten seconds.
      collect: () => this.collect(checkGcOptions({ loopGraceMs: this.#othersGraceMs })),
    });
  }

  #makeDaemons(engine: Engine, { Daemons: DaemonsClass }: NonNullable<typeof changing.loaded>): Daemons {
    const { logger, options } = this.#options;
    const { writeForwardInterval: intervalMs } = options;
    return new DaemonsClass({ ...this.#options, ...options, logger, engine, intervalMs });
  }

  /** Returns the daemons, whose code is loaded first if necessary. */
  async #daemonsOf(engine: Engine): Promise<Daemons> {
    const code = changing.loaded ?? (await changing.load());
    if (engine === this.#engine && this.#options.options.role !== 'ephemeral') {
      this.#daemons ??= this.#makeDaemons(engine, code);
      return this.#daemons;
    }
    // If the instance was stopped meanwhile, the caller hears that from the engine. An ephemeral instance does no work in the background.
    const daemons = this.#makeDaemons(engine, code);
    daemons.stop();
    return daemons;
  }

  /** Makes the daemons if a view shows work for them. */
  #lookForWork(engine: Engine, view: View): void {
    const { logger, options, registry } = this.#options;
    if (options.role === 'ephemeral') return;
    const isReplica = options.role === 'replica';
    if (isReplica ? view.block0.migrations.length === 0 : !mayHaveWork(view, registry)) return;
    const look = async (): Promise<void> => {
      const daemons = await this.#daemonsOf(engine);
      if (engine === this.#engine) daemons.viewChanged(engine.view);
    };
    look().catch((error: unknown) => logger.error(`Migrations and indexes wait: ${messageOf(error)}`));
  }

  get #othersGraceMs(): number {
    return 2 * this.#options.options.writeForwardInterval + loopGraceMs;
  }

  /** The instance is about to stop. */
  end(): void {
    this.#gcSchedule?.stop();
    this.#daemons?.stop();
    this.#daemons = undefined;
    this.#engine = undefined;
  }

  /** A function was registered: there may be indexes to make. */
  functionRegistered(): void {
    if (this.#daemons !== undefined) this.#daemons.functionRegistered();
    else if (this.#engine !== undefined) this.#lookForWork(this.#engine, this.#engine.view);
  }

  /** A schema was registered: there may be indexes to add. */
  schemaRegistered(): void {
    if (this.#daemons !== undefined) this.#daemons.schemaRegistered();
    else if (this.#engine !== undefined) this.#lookForWork(this.#engine, this.#engine.view);
  }

  /** Drops an index of a table. `callName` names the call in errors. */
  async dropIndex(callName: string, table: string, index: unknown, outer: AbortSignal | undefined): Promise<void> {
    const { environment, logger, registry, writing } = this.#options;
    const engine = writing(callName);
    const { dropIndex } = listing.loaded ?? (await listing.load());
    await engine.withDeadline(callName, outer, ({ signal }) =>
      dropIndex({ environment, logger, engine, registry }, table, index, signal),
    );
    this.schemaRegistered();
  }

  /** Returns the indexes of a table. `callName` names the call in errors. */
  async indexes(callName: string, table: string, options: IndexesOptions): Promise<IndexStatus[]> {
    const { indexesOptions, indexesIn, withSizes } = listing.loaded ?? (await listing.load());
    const { signal, sizes } = indexesOptions.check(callName, options);
    const engine = this.#options.running(callName);
    const { registry } = this.#options;
    await engine.withDeadline(callName, signal, ({ signal: inner }) => engine.refresh(inner));
    const { view } = engine;
    const found = indexesIn(view, table, registry);
    if (sizes !== true) return found;
    return engine.withSignal(callName, signal, (inner) => withSizes(view, table, registry, found, inner));
  }

  /**
   * Returns the changes of schemas. `callName` names the call in errors. Rejects with `NotStartedError` unless the database is running,
   * and with `InvalidOptionError` on an ephemeral instance, which would end before the work.
   */
  async migrations(callName: string): Promise<Migrations> {
    if (this.#options.options.role === 'ephemeral') {
      throw new InvalidOptionError(
        'role',
        `${callName} starts work in the background, which an instance with role 'ephemeral' does not do. Call it on an instance ` +
          "with role 'writer' that runs until the work is done, or use the commands `store-db migrate` and `store-db tend`.",
      );
    }
    return (await this.#daemonsOf(this.#options.writing(callName))).migrations;
  }

  /** Returns the progress of a table's migration. */
  async migrationStatus(table: unknown, { signal }: CallOptions): Promise<MigrationStatus> {
    const { migrations } = await this.#daemonsOf(this.#options.running('db.migrationStatus()'));
    return migrations.status(table, signal);
  }

  /** Checks the stored objects. */
  async verify(options: VerifyOptions): Promise<VerifyReport> {
    const upkeep = this.#upkeep('db.verify()');
    const { runVerify } = await verifying.get();
    return runVerify(upkeep, options);
  }

  /** Rebuilds damaged parts that can be rebuilt. */
  async repair(options: RepairOptions): Promise<RepairReport> {
    this.#options.writing('db.repair()');
    const upkeep = this.#upkeep('db.repair()');
    const { runRepair } = await verifying.get();
    return runRepair(upkeep, options);
  }

  #upkeep(callName: string): UpkeepOptions {
    const { environment, driver, options, registry, running, hold } = this.#options;
    const engine = running(callName);
    const { dbPrefix: prefix } = options;
    return {
      engine,
      environment,
      driver,
      prefix,
      functions: (name) => registry.registeredFunction(name),
      hold: (pinning, timeToLiveMs) => hold(callName, pinning, timeToLiveMs),
    };
  }

  /** Copies the present state to another place: as a backup, or as a database of its own. */
  async copy<T>(
    callName: string,
    to: StorePlace,
    options: CopyOptions,
    copy: (source: BackupSource, to: ProtectedPlace, options: CopyOptions) => Promise<T>,
  ): Promise<T> {
    const { environment, driver, options: checked, writing } = this.#options;
    const engine = writing(callName);
    const { protectedPlace } = await copying.get();
    return this.#onPresentState(callName, engine, options.signal, ({ block0 }, signal) => {
      const source = {
        environment,
        place: { driver, prefix: checked.dbPrefix },
        store: checked.driver,
        context: engine.context,
        block0,
      };
      return copy(source, protectedPlace(environment, to, checked.protection), { ...options, signal });
    });
  }

  /** Runs work on a state that shows everything that was committed before the call, and holds the state until the work ends. */
  async #onPresentState<T>(
    callName: string,
    engine: Engine,
    outer: AbortSignal | undefined,
    work: (view: View, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const held = await this.#options.hold(callName, engine.pinPresent(copyPinMs, outer), copyPinMs);
    try {
      return await engine.whileOpen(callName, outer, (signal) => work(held.view, signal));
    } finally {
      await held.release();
    }
  }

  /** Publishes the present state as a bundle. Its objects are not encrypted, even if those of the database are. */
  async publish(to: StorePlace, options: PublishOptions): Promise<PublishReport> {
    const callName = 'db.publish()';
    const { environment, driver, options: checked, registry, writing } = this.#options;
    const engine = writing(callName);
    const { publishState } = await publishing.get();
    return this.#onPresentState(callName, engine, options.signal, (view, signal) => {
      const source = {
        environment,
        view,
        place: { driver, prefix: checked.dbPrefix },
        registered: (name: string) => registry.functions.get(name),
        newest: registry.newest,
      };
      return publishState(source, to, { ...options, signal });
    });
  }

  /** Rewrites the objects that are not compressed and encrypted as the options say. */
  rewrite(options: RewriteOptions): Promise<RewriteReport> {
    const { environment, store, options: checked, writing } = this.#options;
    const engine = writing('db.rewrite()');
    if (!(store instanceof EnvelopeDriver)) {
      throw new InvalidOptionError(
        'encryption',
        'db.rewrite() rewrites objects as the options encryption and compression say, and neither was given.',
      );
    }
    const context = {
      environment,
      driver: store,
      prefix: checked.dbPrefix,
      rewriteBlock0: async (signal: AbortSignal | undefined) =>
        void (await engine.register.update(changeableOf, signal)),
      contentTypeOf: (blob: string) => contentTypeOf(engine.view, blob),
    };
    return engine.whileOpen('db.rewrite()', options.signal, async (signal) => {
      // The media types of blobs are in their records. The newest records may be in the log.
      const { rewriteObjects } = await rewriting.get();
      await engine.refresh(options.signal);
      return rewriteObjects(context, { ...options, signal });
    });
  }

  /** Returns the calls that show how the database is stored. */
  async inspection(callName: string): Promise<Inspection> {
    const { environment, driver, options, running } = this.#options;
    const engine = running(callName);
    const { Inspection: InspectionClass } = await inspecting.get();
    return new InspectionClass({ environment, driver, prefix: options.dbPrefix, engine });
  }

  /** Looks at the store. */
  async doctor(signal: AbortSignal | undefined): Promise<StoreReport> {
    const { environment, store: driver, options } = this.#options;
    const { dbPrefix: prefix, role } = options;
    const deadline = new Deadline(environment, 'db.doctor()', doctorTimeoutMs, signal);
    try {
      const { examineStore } = await examining.get();
      return await examineStore({ environment, driver, prefix, role, signal: deadline.signal });
    } finally {
      deadline.clear();
    }
  }

  /** Collects garbage; one run at a time. */
  collect(options: CheckedGcOptions): Promise<GcReport> {
    const { environment, driver, logger, maxCommitBytes, running, writing } = this.#options;
    const { blockSizeBytes, dbPrefix: prefix } = this.#options.options;
    const engine = (options.dryRun ? running : writing)('db.gc()');
    const holdLoops = async (generation: number, signal: AbortSignal | undefined): Promise<void> => {
      // Loops begin on the view of the instance.
      if (engine.view.block0.generation < generation) await engine.refresh(signal);
      await this.#options.holdLoops();
    };
    const context = {
      environment,
      driver,
      prefix,
      logger,
      register: engine.register,
      clock: engine.clock,
      context: engine.context,
      node: engine.node,
      seesEphemeral: () => engine.seesEphemeral,
      othersGraceMs: Math.min(this.#othersGraceMs, maxLoopGraceMs),
      holdLoops,
      append: (request) => engine.append(request),
      prepare: { environment, driver, prefix, blockSizeBytes, maxCommitBytes },
    } satisfies CollectorOptions;
    const collect = async (signal: AbortSignal): Promise<GcReport> => {
      const { Collector } = await collecting.get();
      return new Collector(context, { ...options, signal }).run();
    };
    const { dryRun } = options;
    return engine.whileOpen('db.gc()', options.signal, (signal) =>
      collections.run(
        (startedMs) => ({ database: prefix, startedMs, dryRun }),
        () => collect(signal),
      ),
    );
  }
}
