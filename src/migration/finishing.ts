/** The end of a migration that is asked for: `db.finishMigration()` has the old version retired, and waits until that is done. */
import { sleep } from '../base/env.ts';
import type { Environment } from '../base/env.ts';
import { MigrationActiveError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { changeableOf } from '../block0/block0-register.ts';
import { isRetiring } from '../catalog/retired-versions.ts';
import type { Engine } from '../engine/engine.ts';
import type { MigrationPhase, MigrationProblem, StoredMigration } from '../format/stored-table.ts';
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

/** Waits, of an eighth of an interval each, before problems in Block 0, or the silence of a node, count as final. */
const patientWaits = 32;
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

export class Finishing {
  readonly #options: FinishingOptions;

  constructor(options: FinishingOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const { daemon, migration } = this.#options;
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
    await sleep(environment, Math.max(20, intervalMs / 8), signal);
    await look((inner) => engine.refresh(inner));
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
    const { engine, environment, intervalMs, isKnown, migration, signal } = this.#options;
    const { table } = migration;
    const still = new Stillness(environment);
    let faulty = 0;
    for (;;) {
      const present = this.#present;
      if (present === undefined) return;
      still.note(await this.#stateOf(present));
      // The rows with problems may have been corrected since they were recorded in Block 0.
      faulty = present.problems.length > 0 ? faulty + 1 : 0;
      if (faulty > patientWaits) throw stuck(migration, present.problems);
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

function stuck({ table, from, to }: StoredMigration, problems: readonly MigrationProblem[]): MigrationActiveError {
  const rows = problems.map(({ key, message }) => `Row ${key}: ${message}`).join(' ');
  return new MigrationActiveError(
    table,
    `Version ${from} of table '${table}' goes once all rows are in line with version ${to}, and some cannot be: ${rows} ` +
      'Correct these rows; the version is then retired without another call.',
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
