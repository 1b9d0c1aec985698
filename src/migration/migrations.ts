/** The calls of applications that control migrations: start, cancel, finish, and status. */
import { backOff } from '../base/env.ts';
import type { Environment, Backoff } from '../base/env.ts';
import {
  AbortedError,
  ContentionError,
  InvalidOptionError,
  InvalidSchemaError,
  MigrationActiveError,
  NotStartedError,
  StorageError,
} from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { kinds, OptionTable } from '../base/options.ts';
import type { Engine } from '../engine/engine.ts';
import type { TreeBuild } from '../merge/merge-table.ts';
import { commitBlockName } from '../format/commit.ts';
import { NodeEntries } from '../format/node-entries.ts';
import { openNode } from '../format/node.ts';
import type { MigrationTarget, StoredMigration } from '../format/stored-table.ts';
import { describeValue } from '../base/messages.ts';
import { changeableOf } from '../block0/block0-register.ts';
import { refuseOtherDefinition } from '../catalog/registry.ts';
import type { Registry } from '../catalog/registry.ts';
import { refuseOtherCode } from '../catalog/migration-code.ts';
import { isRetiring } from '../catalog/retired-versions.ts';
import { tableName } from '../schema/table-ref.ts';
import type { TableShape } from '../schema/table-shape.ts';
import { prepareToWrite } from '../schema/text-indexes.ts';
import type { View } from '../view/view.ts';
import type { FieldChangeLog } from './field-changes.ts';
import { Finishing, unfinished } from './finishing.ts';
import type { Look } from './finishing.ts';
import type { MigrationDaemon } from './migration-daemon.ts';
import { askedFor, cancelled, statusOf } from './migration-status.ts';
import type { MigrationStatus } from './migration-status.ts';
import { versionConflict } from './row-translation.ts';

/** Options of `db.setTargetSchemaVersion()`. An option that is left out keeps its value if the target is recorded already. */
export interface SetTargetSchemaVersionOptions {
  /** Most rows that a node migrates per second. Default 50,000 for a new target. */
  readonly rowsPerSecond?: number;
  /**
   * Whether the old version stays until `finishMigration()` is called. If not, it is retired automatically, once the new
   * version is complete and no instance is known to use the old one. Replicas, and instances that have not looked at the store
   * since the migration began, are not known, and would lose it. Default true for a new target.
   */
  readonly keepOld?: boolean;
  /** Gives the call up. */
  readonly signal?: AbortSignal;
}

/** The options of a target that a caller gave. */
type TargetAsked = Omit<SetTargetSchemaVersionOptions, 'signal'>;

/** Options of `db.finishMigration()`. */
export interface FinishOptions {
  /**
   * Whether to retire the old version even if instances are known to use it, or have died without reporting that they stop.
   * Default false.
   */
  readonly force?: boolean;
  /** Gives the call up. */
  readonly signal?: AbortSignal;
}

export interface MigrationsOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly registry: Registry;
  readonly daemon: MigrationDaemon;
  readonly fieldChangeLog: FieldChangeLog;
  readonly intervalMs: number;
}

const setTargetOptions = new OptionTable<SetTargetSchemaVersionOptions>({
  rowsPerSecond: kinds.whole(1),
  keepOld: kinds.flag,
  signal: kinds.signal,
});

const finishOptions = new OptionTable<FinishOptions>({ force: kinds.flag, signal: kinds.signal });

/** Attempts at a step before it fails because other writes of Block 0 came first. */
const maxAttempts = 40;
const betweenAttempts: Backoff = { firstMs: 40, maxMs: 640, jitter: 'full' };

/** The step is obsolete: the migration that it began with has changed. */
class Outdated extends Error {}

export class Migrations {
  readonly #options: MigrationsOptions;

  constructor(options: MigrationsOptions) {
    this.#options = options;
  }

  async setTarget(given: unknown, version: unknown, options: SetTargetSchemaVersionOptions): Promise<void> {
    const callName = 'db.setTargetSchemaVersion()';
    const { signal: outer, ...asked } = setTargetOptions.check(callName, options);
    const shape = this.#shapeOf(given, version);
    await prepareToWrite(shape);
    const { engine, daemon } = this.#options;
    await this.#withDeadline(callName, outer, async (signal) => {
      await engine.refresh(signal);
      const phase = engine.view.nextVersion(shape.name)?.migration?.phase;
      // Merge first, so that rows corrected before the call are correct when the work begins.
      if (phase !== 'building' && phase !== 'switched') await engine.checkpoint(signal);
      await this.#repeatedly(signal, () => this.#towards(shape, asked, signal));
    });
    daemon.drive(shape.name);
  }

  /** Runs a call of any length until the engine is closed, which waits for its last request. Then it rejects with `NotStartedError`. */
  async #untilClosed(
    callName: string,
    outer: AbortSignal | undefined,
    call: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const { engine } = this.#options;
    try {
      await engine.whileOpen(callName, outer, call);
    } catch (error) {
      const { stopping } = engine;
      const isCutShort = error instanceof AbortedError || error instanceof StorageError || error === stopping.reason;
      if (isCutShort && stopping.aborted && outer?.aborted !== true) throw new NotStartedError(callName);
      throw error;
    }
  }

  /** Runs a call under the usual deadline, also until the engine is closed. */
  #withDeadline(
    callName: string,
    outer: AbortSignal | undefined,
    call: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const { engine } = this.#options;
    return this.#untilClosed(callName, outer, (either) =>
      engine.withDeadline(callName, either, ({ signal }) => call(signal)),
    );
  }

  #shapeOf(given: unknown, version: unknown): TableShape {
    const { registry } = this.#options;
    const table = tableName(given);
    if (typeof version !== 'number' || !Number.isSafeInteger(version) || version < 0) {
      throw new InvalidOptionError('version', `A version is an integer >= 0, not ${describeValue(version)}.`);
    }
    registry.writableShape(table);
    const shape = registry.versionShape(table, version);
    if (shape !== undefined) return shape;
    throw new InvalidSchemaError(
      table,
      `Version ${version} of table '${table}' is not registered here: only an instance that has registered it can ask for it.`,
    );
  }

  /** Repeats a step until it returns true. */
  async #repeatedly(signal: AbortSignal, step: () => Promise<boolean>): Promise<void> {
    const { environment, engine } = this.#options;
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      await engine.refresh(signal);
      if (await step()) return;
      await backOff(environment, betweenAttempts, attempt, signal);
    }
    throw new ContentionError(
      'Other nodes replaced Block 0 before every attempt to change the migration. Nothing was changed: try it again.',
    );
  }

  /** Takes one step towards a target. Returns true once the target is in Block 0. */
  async #towards(shape: TableShape, asked: TargetAsked, signal: AbortSignal): Promise<boolean> {
    const { engine, fieldChangeLog, registry } = this.#options;
    const { view } = engine;
    const active = view.table(shape.name)?.shape;
    const nextVersion = view.nextVersion(shape.name);
    if (!view.block0.tables.some(({ name }) => name === shape.name)) {
      if (active === undefined) await this.#create(shape, signal);
      await engine.checkpoint(signal);
      return false;
    }
    const migration = nextVersion?.migration;
    refuseOtherDefinition(view, shape);
    if (active?.version === shape.version) {
      if (nextVersion === undefined) return true;
      await engine.checkpoint(signal);
      const migrating = engine.view.nextVersion(shape.name)?.migration;
      return migrating === undefined || this.#goBack(migrating);
    }
    if (nextVersion !== undefined && nextVersion.rows.shape.version !== shape.version) {
      throw new MigrationActiveError(
        shape.name,
        `Table '${shape.name}' is being migrated to version ${nextVersion.rows.shape.version}: wait until that is done, or cancel it first.`,
      );
    }
    refuseOtherCode(view, shape, registry);
    if (active !== undefined) fieldChangeLog.tell(active, shape);
    if (migration !== undefined) return this.#ask(migration, asked, signal);
    if (active !== undefined && active.version > shape.version) {
      const message =
        `Table '${shape.name}' is stored in version ${active.version}, and cannot go back to version ${shape.version}: ` +
        'register that definition as a new, higher version.';
      throw new InvalidOptionError('version', message);
    }
    await this.#begin(shape, signal);
    await engine.checkpoint(signal);
    const begun = engine.view.nextVersion(shape.name);
    refuseOtherCode(engine.view, shape, registry);
    const isBegun = begun?.migration !== undefined && begun.rows.shape.canonical === shape.canonical;
    return isBegun ? this.#ask(begun.migration, asked, signal) : false;
  }

  /** Creates the table without rows, by a commit, so that it is ordered before or after the first writes of others. */
  #create(shape: TableShape, signal: AbortSignal): Promise<void> {
    return this.#commit(signal, (view) => {
      this.#options.registry.dropped.refuseOn(view, shape);
      return view.table(shape.name) === undefined ? [shape] : [];
    });
  }

  /**
   * Starts the next version, without rows, by a commit too. If only Block 0 were written, a concurrent commit with rows of a third
   * version could come after it, and there would be no table for those rows.
   */
  #begin(shape: TableShape, signal: AbortSignal): Promise<void> {
    const { name: table, version: to } = shape;
    return this.#commit(signal, (view) => {
      const active = view.table(table)?.shape;
      const { registry } = this.#options;
      registry.dropped.refuseOn(view, shape);
      refuseOtherCode(view, shape, registry);
      if (active === undefined || active.version >= to || view.nextVersion(table) !== undefined) return [];
      const conflict = versionConflict(active, shape);
      if (conflict === undefined) return [active, shape];
      throw new InvalidSchemaError(table, `Table '${table}' cannot go to version ${to}. ${conflict}`);
    });
  }

  /** Commits empty changes of some versions of a table, the active version first. Without versions it commits nothing. */
  async #commit(signal: AbortSignal, versionsIn: (view: View) => readonly TableShape[]): Promise<void> {
    await this.#options.engine.append({
      signal,
      sizeBytes: 0,
      prepare: async (view) => ({
        changes: versionsIn(view).map((shape, i, [active]) => {
          const name = commitBlockName(shape.name);
          const schema =
            i === 0 || active === undefined ? shape.schema : this.#options.registry.codedSchema(shape, active.version);
          return { schema, node: openNode(name, new NodeEntries(shape.changeShape).encode(name, 0, 0)) };
        }),
      }),
    });
  }

  /** Replaces Block 0 by the next generation. Returns false if another write came first. */
  async #step(build: TreeBuild): Promise<boolean> {
    try {
      return await this.#options.engine.merger.rebuild(build);
    } catch (error) {
      if (error instanceof Outdated) return false;
      throw error;
    }
  }

  /** Records the target of a migration that has already begun. Returns false if the migration is gone. */
  async #ask(known: StoredMigration, asked: TargetAsked, signal: AbortSignal): Promise<boolean> {
    const { table, from, to, birth, phase } = known;
    const { engine, logger } = this.#options;
    let found = false;
    // A committed retirement is not taken back by a new target.
    const isGoing = await isRetiring(engine.view, known);
    await engine.register.update((present) => {
      const migration = present.migrations.find((other) => other.table === table && other.birth === birth);
      found = migration !== undefined;
      if (migration === undefined) return undefined;
      const target = targetOf(asked, migration.target);
      const isEndAsked = isGoing || migration.target?.retire === 'asked';
      const next = askedFor(migration, isEndAsked ? { ...target, retire: 'asked' } : target);
      if (JSON.stringify(next) === JSON.stringify(migration)) return undefined;
      const migrations = present.migrations.map((other) => (other === migration ? next : other));
      return { ...changeableOf(present), migrations };
    }, signal);
    engine.follower.advance(engine.register.current, []);
    const progress = phase === 'beside' ? `from version ${from} to version ${to} has begun` : 'goes on';
    if (found) logger.info(`The migration of table ${table} ${progress}`, { table, from, to });
    return found;
  }

  async cancel(given: unknown, signal: AbortSignal | undefined): Promise<void> {
    const { engine, registry } = this.#options;
    const table = tableName(given);
    registry.requireShape(table);
    let met: StoredMigration | undefined;
    await this.#withDeadline('db.cancelMigration()', signal, (inner) =>
      this.#repeatedly(inner, async () => {
        // Merge pending rows of the new version first, so that they are dropped too and do not begin the migration again.
        await engine.checkpoint(inner);
        const { view } = engine;
        const migration = view.nextVersion(table)?.migration;
        if (migration !== undefined && (met === undefined || met.birth === migration.birth)) {
          met = migration;
          return this.#goBack(migration);
        }
        if (met !== undefined && view.table(table)?.shape.version === met.to) throw tooLate(met);
        return true;
      }),
    );
  }

  /** Drops the new version and all rows made for it. Returns true if that is done. */
  async #goBack(migration: StoredMigration): Promise<boolean> {
    const { engine, logger } = this.#options;
    const { table, from, to, birth } = migration;
    if (await isRetiring(engine.view, migration)) throw tooLate(migration);
    const done = await this.#step(async (block0) => {
      const present = block0.migrations.find((other) => other.table === table && other.birth === birth);
      if (present === undefined) throw new Outdated();
      return [cancelled(present)];
    });
    if (done) logger.info(`The migration of table ${table} to version ${to} was cancelled`, { table, from, to });
    return done;
  }

  /** Retires the old version of a table, and waits until that is done. */
  async finish(given: unknown, options: FinishOptions): Promise<void> {
    const { engine, registry } = this.#options;
    const callName = 'db.finishMigration()';
    const { force = false, signal: outer } = finishOptions.check(callName, options);
    const table = tableName(given);
    await this.#untilClosed(callName, outer, async (signal) => {
      const look: Look = (step) => engine.withDeadline(callName, signal, (deadline) => step(deadline.signal));
      await look((inner) => engine.refresh(inner));
      const { view } = engine;
      const migration = view.nextVersion(table)?.migration;
      if (migration === undefined) {
        if (view.nextVersion(table) === undefined) return this.#requireTable(table);
        throw unfinished(table, undefined);
      }
      const isKnown = registry.shape(table) !== undefined;
      if (isKnown) {
        const shape = this.#shapeOf(table, migration.to);
        refuseOtherCode(view, shape, registry);
      }
      return new Finishing({ ...this.#options, migration, isKnown, force, signal, look }).run();
    });
  }

  /** Throws `SchemaNotFoundError` for a table that is neither stored nor registered: a wait for its migration would never end. */
  #requireTable(table: string): void {
    const { engine, registry } = this.#options;
    if (engine.view.table(table) === undefined) registry.requireShape(table);
  }

  async status(given: unknown, signal: AbortSignal | undefined): Promise<MigrationStatus> {
    const { engine, daemon } = this.#options;
    const table = tableName(given);
    await engine.withDeadline('db.migrationStatus()', signal, ({ signal: inner }) => engine.refresh(inner));
    this.#requireTable(table);
    daemon.viewChanged();
    return statusOf(engine.view, table, daemon.rates.rowsPerSecond(table));
  }
}

function tooLate({ table, from, to }: StoredMigration): MigrationActiveError {
  return new MigrationActiveError(
    table,
    `Table '${table}' has gone to version ${to}, and version ${from} is retired: there is no way back. To get the old ` +
      'definition again, register it as a new, higher version.',
  );
}

/** Returns the target to record: an option that the caller left out keeps the value that is recorded, if there is one. */
function targetOf(asked: TargetAsked, recorded: MigrationTarget | undefined): MigrationTarget {
  const { rowsPerSecond = recorded?.rowsPerSecond ?? 50_000, keepOld = recorded?.retire === undefined } = asked;
  return { rowsPerSecond, keepOld: true, ...(!keepOld && { retire: 'unused' }) };
}
