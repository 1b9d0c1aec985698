/** The end of a migration that is asked for: `db.finishMigration()` has the old version retired, and waits until that is done. */
import { sleep } from '../base/env.ts';
import type { Environment } from '../base/env.ts';
import { MigrationActiveError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { Pacer } from '../base/pacer.ts';
import { changeableOf } from '../block0/block0-register.ts';
import { isRetiring } from '../catalog/retired-versions.ts';
import type { Engine } from '../engine/engine.ts';
import type { MigrationPhase, MigrationProblem, StoredMigration } from '../format/stored-table.ts';
import { hasUniqueIndex, uniqueProblems } from './index-daemon.ts';
import type { MigrationDaemon } from './migration-daemon.ts';
import { describeUsers, isInStep, stateOf, usersOfOld, withEndAsked } from './migration-status.ts';
import type { OldVersionUser } from './migration-status.ts';

/** Runs a step that reaches the store under a deadline of its own. */
export type Look = <T>(step: (signal: AbortSignal) => Promise<T>) => Promise<T>;

export interface FinishingOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly daemon: MigrationDaemon;
  readonly intervalMs: number;
  /** The migration to finish, as the call found it. */
  readonly migration: StoredMigration;
  /** Whether this instance has registered the new version, and can make its rows. */
  readonly isKnown: boolean;
  /** Whether the old version goes although instances may still use it. */
  readonly force: boolean;
  /** Ends the call. */
  readonly signal: AbortSignal;
  readonly look: Look;
}

/** Waits in an interval. */
const waitsPerInterval = 8;
/** Waits before problems in Block 0, or the silence of a node, count as final. */
const patientWaits = 4 * waitsPerInterval;
/** Rows that an error names at most. */
const maxProblems = 20;
/** Time without any progress after which a call does not wait any longer, in milliseconds. */
const stillMs = 60_000;

/** The nodes that have not reported yet which version they use, each with the wait in which that was first seen. */
class Silences {
  readonly #since = new Map<number, number>();

  /** Whether all nodes that are silent in a wait may still report. Nodes that are not listed have reported. */
  mayGoOn(silent: readonly number[], waits: number): boolean {
    for (const nodeId of this.#since.keys()) if (!silent.includes(nodeId)) this.#since.delete(nodeId);
    for (const nodeId of silent) if (!this.#since.has(nodeId)) this.#since.set(nodeId, waits);
    return [...this.#since.values()].every((since) => waits - since < patientWaits);
  }
}

/** How long nothing has moved. */
class Stillness {
  readonly #environment: Environment;
  #state = '';
  #sinceMs = 0;
  /** Waits since the last move. */
  waits = 0;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** Takes note of the present state. */
  note(state: string): void {
    this.waits++;
    if (state === this.#state) return;
    this.#state = state;
    this.#sinceMs = this.#environment.monotonicMs();
    this.waits = 0;
  }

  get ms(): number {
    return this.#environment.monotonicMs() - this.#sinceMs;
  }
}

/** Ends the work that it paces once a signal is aborted. */
class EndingPacer extends Pacer {
  readonly #signal: AbortSignal;

  constructor(environment: Environment, signal: AbortSignal) {
    super(environment);
    this.#signal = signal;
  }

  override pause(): Promise<void> {
    this.#signal.throwIfAborted();
    return super.pause();
  }
}

export class Finishing {
  readonly #options: FinishingOptions;

  constructor(options: FinishingOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const { daemon, look, migration } = this.#options;
    if (await look((inner) => this.#mayLook(inner))) await this.#lookAtRows();
    await this.#ask();
    daemon.drive(migration.table);
    await this.#untilRetired();
  }

  /** The migration as Block 0 has it now; undefined once it has ended. */
  get #present(): StoredMigration | undefined {
    const { engine, migration } = this.#options;
    const present = engine.view.nextVersion(migration.table)?.migration;
    return present?.birth === migration.birth ? present : undefined;
  }

  async #wait(): Promise<void> {
    const { environment, engine, intervalMs, signal, look } = this.#options;
    await sleep(environment, Math.max(20, intervalMs / waitsPerInterval), signal);
    await look((inner) => engine.refresh(inner));
  }

  /** Waits before problems of rows count as final: each node with the code of the new version has its turn meanwhile. */
  get #patientWaits(): number {
    return patientWaits + waitsPerInterval * this.#options.engine.view.block0.nodes.length;
  }

  /**
   * Whether rows must be looked at before the end of the old version is asked for: not if that was done already. Throws if instances use
   * the old version, which may have to correct rows.
   */
  async #mayLook(signal: AbortSignal): Promise<boolean> {
    const { daemon, engine, force, migration } = this.#options;
    const { block0 } = await engine.register.refresh(signal);
    const present = block0.migrations.find(
      ({ table, birth }) => table === migration.table && birth === migration.birth,
    );
    if (present === undefined || present.target?.retire === 'asked') return false;
    if (present.phase !== 'switched') throw unfinished(migration.table, present.phase);
    await daemon.sayVersions(signal);
    const users = usersOfOld(block0, present);
    if (!force && users.some(({ version }) => version !== null)) throw stillUsed(migration, users);
    return !(await isRetiring(engine.view, present));
  }

  /**
   * Has rows brought in line that have changed. Throws if some cannot be migrated: once the end of the old version is recorded, nobody
   * could correct them by that version. Where others go on writing it, this waits for a while only.
   */
  async #lookAtRows(): Promise<void> {
    const { daemon, engine, environment, isKnown, migration, signal } = this.#options;
    const { table } = migration;
    await engine.checkpoint(signal);
    daemon.drive(table);
    const still = new Stillness(environment);
    const startedMs = environment.monotonicMs();
    for (let faulty = 0; ; ) {
      const present = this.#present;
      if (present === undefined) return;
      // Problems that Block 0 still names are solved then, except those of unique indexes.
      if (isInStep(engine.view, table)) break;
      still.note(await this.#stateOf(present));
      faulty = present.problems.length > 0 ? faulty + 1 : 0;
      if (faulty > this.#patientWaits) throw notCorrect(migration, present.problems);
      const isLate = still.waits >= this.#patientWaits || environment.monotonicMs() - startedMs >= stillMs;
      if (faulty === 0 && (!isKnown || isLate)) return;
      await this.#wait();
    }
    const rows = engine.view.nextVersion(table)?.rows;
    if (rows === undefined || !hasUniqueIndex(rows.shape)) return;
    const problems = await uniqueProblems(rows, new EndingPacer(environment, signal), maxProblems);
    if (problems.length > 0) throw notCorrect(migration, problems);
  }

  /** Asks for the end of the old version. Nodes that have just joined get time to report which version they use. */
  async #ask(): Promise<void> {
    const { daemon, look } = this.#options;
    const silences = new Silences();
    for (let waits = 0; ; waits++) {
      const isAsked = await look(async (inner) => {
        await daemon.sayVersions(inner);
        return this.#askForEnd((nodeIds) => silences.mayGoOn(nodeIds, waits), inner);
      });
      if (isAsked) return;
      await this.#wait();
    }
  }

  /**
   * Records in Block 0 the request to retire the old version. False: nothing was recorded, since a node that has just joined has yet to
   * report which version it uses, which it does in its next turn.
   */
  async #askForEnd(mayWaitFor: (silent: readonly number[]) => boolean, signal: AbortSignal): Promise<boolean> {
    const { engine, logger, force, migration: known } = this.#options;
    const { table, from, to, birth } = known;
    let isTooEarly = false;
    await engine.register.update((present) => {
      isTooEarly = false;
      const migration = present.migrations.find((other) => other.table === table && other.birth === birth);
      if (migration === undefined) return undefined;
      if (migration.phase !== 'switched') throw unfinished(table, migration.phase);
      if (migration.target?.retire === 'asked') return undefined;
      const users = usersOfOld(present, migration);
      isTooEarly = users.length > 0 && !force;
      if (isTooEarly) {
        const mayWait = mayWaitFor(users.filter(({ version }) => version === null).map(({ nodeId }) => nodeId));
        if (!mayWait || users.some(({ version }) => version !== null)) throw stillUsed(migration, users);
        return undefined;
      }
      const migrations = present.migrations.map((other) => (other === migration ? withEndAsked(other) : other));
      return { ...changeableOf(present), migrations };
    }, signal);
    if (isTooEarly) return false;
    engine.follower.advance(engine.register.current, []);
    logger.info(`Version ${from} of table ${table} is to be retired, since that was asked for`, { table, from, to });
    return true;
  }

  /** Waits until the old version is retired, for as long as there is progress. */
  async #untilRetired(): Promise<void> {
    const { engine, environment, intervalMs, isKnown, look, migration, signal } = this.#options;
    const { table } = migration;
    const still = new Stillness(environment);
    let faulty = 0;
    for (;;) {
      const present = this.#present;
      if (present === undefined) return;
      still.note(await this.#stateOf(present));
      // The rows with problems may have been corrected since they were recorded in Block 0.
      faulty = present.problems.length > 0 ? faulty + 1 : 0;
      if (faulty > this.#patientWaits) {
        const { view } = engine;
        throw stuck(migration, present.problems, await look(() => isRetiring(view, present)));
      }
      const { view } = engine;
      if (!isKnown && still.waits >= patientWaits && view.pending.length === 0 && !isInStep(view, table)) {
        throw outOfLine(migration);
      }
      // Each node with the code of the new version has its turn meanwhile.
      const patienceMs = Math.max(stillMs, (view.block0.nodes.length + 2) * intervalMs);
      if (still.ms >= patienceMs) throw unmoved(migration, isInStep(view, table), patienceMs);
      if (view.pending.length > 0) await engine.checkpoint(signal);
      await this.#wait();
    }
  }

  /** Returns a text that changes with every progress. */
  async #stateOf(present: StoredMigration): Promise<string> {
    const { engine, look } = this.#options;
    const { phase, base, built, problems } = present;
    const { view } = engine;
    const isCommitted = await look(() => isRetiring(view, present));
    return JSON.stringify([phase, base, built, problems, isCommitted]);
  }
}

export function unfinished(table: string, phase: MigrationPhase | undefined): MigrationActiveError {
  return new MigrationActiveError(
    table,
    `The migration of table '${table}' is in state '${stateOf(phase)}', and can be finished once it is 'switched': call ` +
      'setTargetSchemaVersion(), and wait until it is.',
  );
}

function stillUsed({ table, from, to }: StoredMigration, users: readonly OldVersionUser[]): MigrationActiveError {
  return new MigrationActiveError(
    table,
    `Version ${from} of table '${table}' may still be in use: ${describeUsers(users).join(' ')} Deploy code that registers version ` +
      `${to} there, and stop instances that do not. If these instances have died, call finishMigration() with { force: true }: ` +
      `later writes of version ${from} are refused. Replicas, and instances that have not looked at the store since the ` +
      'migration began, are not listed.',
  );
}

function describeRows(problems: readonly MigrationProblem[]): string {
  return problems.map(({ key, message }) => `Row ${key}: ${message}`).join(' ');
}

/** Nothing was recorded. */
function notCorrect({ table, from, to }: StoredMigration, problems: readonly MigrationProblem[]): MigrationActiveError {
  return new MigrationActiveError(
    table,
    `Version ${from} of table '${table}' cannot go yet, since some rows cannot be in version ${to}: ${describeRows(problems)} Nothing ` +
      `was changed. Correct or delete these rows, by version ${from} or ${to}, and call finishMigration() again; or go back with ` +
      'cancelMigration().',
  );
}

/** The end of the version is recorded. */
function stuck(
  { table, from, to }: StoredMigration,
  problems: readonly MigrationProblem[],
  isCommitted: boolean,
): MigrationActiveError {
  const wayBack = isCommitted ? '' : ' Or go back with cancelMigration().';
  return new MigrationActiveError(
    table,
    `The end of version ${from} of table '${table}' is recorded. It goes once all rows are in line with version ${to}, and some cannot ` +
      `be: ${describeRows(problems)} Replace these rows with an upsert() of version ${to}, or delete them there; version ${from} is then ` +
      `retired without another call.${wayBack}`,
  );
}

function outOfLine({ table, from, to }: StoredMigration): MigrationActiveError {
  return new MigrationActiveError(
    table,
    `Version ${from} of table '${table}' goes once all rows are in line with version ${to}, and rows have changed since. This ` +
      `instance has not registered version ${to}, and cannot make them. The request is recorded: an instance that has registered version ` +
      `${to}, with its \`migrate\` function, completes it.`,
  );
}

function unmoved({ table, from, to }: StoredMigration, isInLine: boolean, ms: number): MigrationActiveError {
  const what = isInLine
    ? `that instances that have registered version ${to} retire version ${from} in their turns`
    : `rows that have changed, which instances that have registered version ${to} bring in line in their turns`;
  return new MigrationActiveError(
    table,
    `The end of version ${from} of table '${table}' is recorded, and nothing has moved on for ${Math.round(ms / 1000)} s. It waits for ` +
      `${what}, and goes on in the background. See their logs for failures. To wait longer, call finishMigration() again.`,
  );
}
