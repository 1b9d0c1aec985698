/**
 * Runs migrations in the background, in the turns that this node has among the nodes with the code of the new version. It works
 * chunk by chunk, and each chunk is one generation. All state is in Block 0, so the instance with the next turn continues from
 * there. If two instances work at once, one chunk is lost.
 */
import type { Environment } from '../base/env.ts';
import type { Logger } from '../base/logger.ts';
import { Pacer } from '../base/pacer.ts';
import { untilNextTurn } from '../coordination/merge-rotation.ts';
import type { Engine } from '../engine/engine.ts';
import { longestPauseMs } from '../coordination/polling-pace.ts';
import type { Polling } from '../coordination/polling-pace.ts';
import type { Role } from '../coordination/membership.ts';
import type { StoredMigration } from '../format/stored-table.ts';
import { changeableOf } from '../block0/block0-register.ts';
import type { Registry } from '../catalog/registry.ts';
import { isOtherCode } from '../catalog/migration-code.ts';
import { isRetiring, retirementOf } from '../catalog/retired-versions.ts';
import type { TableShape } from '../schema/table-shape.ts';
import { View } from '../view/view.ts';
import { isInStep, withEndAsked, MigrationRates, usersOfOld } from './migration-status.ts';
import { ChunkWork } from './chunk-work.ts';
import type { Step } from './chunk-work.ts';
import { nextChunk } from './chunk.ts';
import type { Chunk } from './chunk.ts';
import { RowTranslation } from './row-translation.ts';
import { canMakeAhead, makeAhead, storeAhead } from './rows-ahead.ts';
import type { AheadLimits } from './rows-ahead.ts';
import { hasUniqueIndex, uniqueProblems } from './index-daemon.ts';

export interface MigrationDaemonOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly registry: Registry;
  /** A replica does no such work. */
  readonly role: Role;
  readonly intervalMs: number;
  readonly polling: Polling;
}

/** The most rows of a chunk. */
const maxRows = 20_000;
/**
 * Chunks with fewer rows than this do not shrink for being slow: an index in another order than the keys is rewritten almost
 * whole for every chunk, however few rows it has.
 */
const steadyRows = 8000;
/** Longest time in which rows are made ahead, in milliseconds: so much is lost if the process dies. */
const longestAheadMs = 30_000;
/** Rows that are made ahead at most, as a multiple of the rows that a chunk makes. */
const aheadChunks = 16;
/** Bytes of a buffer for rows made ahead, at most. */
const maxBufferBytes = 1024 * 1024;
/** Generations that may pass while rows are made ahead: first, and after too many have passed several times. */
const firstGenerations = 16;
const mostGenerations = 256;
/** Attempts at storing rows made ahead, while others merge. */
const maxAttempts = 8;
/** Intervals in which an instance that has seen a migration reports which version it uses. */
const intervalsToSay = 3;

export class MigrationDaemon {
  readonly #options: MigrationDaemonOptions;
  readonly rates: MigrationRates = new MigrationRates();
  /** Tables whose migration this instance has requested. With polling on demand it works on these only. */
  readonly #asked = new Set<string>();
  /** For each table, the situation in which there was no work. */
  readonly #idleSituations = new Map<string, string>();
  /** For each table, the tenth of the rows that was logged last. */
  readonly #told = new Map<string, number>();
  /** For each table, the migration that has switched, and since when this instance knows it. */
  readonly #switched = new Map<string, { readonly birth: number; readonly sinceMs: number }>();
  /** Generations that may pass while rows are made ahead. */
  #generations = firstGenerations;
  /** Tables whose rows were last made ahead in vain: a chunk comes next. */
  readonly #inVain = new Set<string>();
  readonly #chunks: ChunkWork;

  constructor(options: MigrationDaemonOptions) {
    this.#options = options;
    this.#chunks = new ChunkWork(options, {
      name: 'A migration',
      maxRows,
      steadyRows,
      delayMs: (atOnce) => this.#delayMs(atOnce),
      work: () => this.#work(),
    });
  }

  stop(): void {
    this.#chunks.stop();
  }

  /** Called when this instance has requested a migration. */
  drive(table: string): void {
    this.#asked.add(table);
    this.#idleSituations.delete(table);
    this.viewChanged();
    // Not only once the versions of this instance are reported, for which there may be a timer.
    this.#chunks.lookAtOnce();
  }

  /** Looks for work: the view has moved on. */
  viewChanged(view: View = this.#options.engine.view): void {
    const { environment } = this.#options;
    const { migrations } = view.block0;
    if (migrations.length === 0) return;
    for (const { table } of migrations) {
      const rows = view.nextVersion(table)?.rows.tree.count ?? 0;
      this.rates.note(table, environment.monotonicMs(), rows);
    }
    this.#chunks.look();
  }

  get #migrations(): readonly StoredMigration[] {
    return this.#options.engine.view.block0.migrations;
  }

  #delayMs(atOnce: boolean): number | undefined {
    const { environment, intervalMs } = this.#options;
    const delays = this.#migrations
      .filter((migration) => this.#hasWork(migration))
      .map((migration) => this.#chunks.untilTurn(atOnce, this.#coded(migration)));
    // If many nodes learn of a migration at the same moment, they should not all write Block 0 at the next one.
    if (this.#isUnknown)
      delays.push(untilNextTurn(environment.now(), intervalMs) + (environment.random() * intervalMs) / 2);
    for (const migration of this.#migrations) {
      if (migration.phase !== 'switched' || migration.target?.retire !== 'unused') continue;
      const patienceMs = this.#patienceMs(migration);
      if (patienceMs > 0 && this.#mayWork(migration)) delays.push(patienceMs);
    }
    return delays.length === 0 ? undefined : Math.min(...delays);
  }

  /** The nodes that can do the work, including this one. */
  #coded({ to, users }: StoredMigration): number[] {
    const { engine } = this.#options;
    const { nodes } = engine.view.block0;
    const coded = users.filter((user) => user.version === to && nodes.includes(user.nodeId));
    return [...coded.map((user) => user.nodeId), engine.node.id];
  }

  /** Whether this node has work for a migration, according to the present view. */
  #hasWork(migration: StoredMigration): boolean {
    const { table, phase } = migration;
    if ((phase !== 'building' && phase !== 'switched') || !this.#mayWork(migration)) return false;
    if (this.#idleSituations.get(table) === this.#situation(migration)) return false;
    return phase === 'building' || !this.#isInStep(migration) || migration.target?.retire !== undefined;
  }

  /** Whether this node may work on a migration. */
  #mayWork(migration: StoredMigration): boolean {
    const { engine, polling } = this.#options;
    if (this.#shapes(engine.view, migration) === undefined) return false;
    return polling !== 'onDemand' || this.#asked.has(migration.table);
  }

  /** Returns a text that changes whenever there may be new work. */
  #situation(migration: StoredMigration): string {
    return `${this.#options.engine.view.block0.generation} ${this.#mayRetire(migration)}`;
  }

  #isInStep({ table }: StoredMigration): boolean {
    return isInStep(this.#options.engine.view, table);
  }

  #mayRetire(migration: StoredMigration): boolean {
    const { view, isRegistered } = this.#options.engine;
    const retire = migration.target?.retire;
    if (migration.phase !== 'switched' || retire === undefined) return false;
    if (retire === 'asked') return true;
    return isRegistered && usersOfOld(view.block0, migration).length === 0 && this.#patienceMs(migration) <= 0;
  }

  /**
   * Returns the time that other instances still have to report that they use the old version, before it may be retired as
   * unused.
   */
  #patienceMs({ table, birth }: StoredMigration): number {
    const { environment, intervalMs } = this.#options;
    const nowMs = environment.monotonicMs();
    const seen = this.#switched.get(table);
    const patienceMs = longestPauseMs(intervalMs) + intervalsToSay * intervalMs;
    if (seen?.birth === birth) return seen.sinceMs + patienceMs - nowMs;
    this.#switched.set(table, { birth, sinceMs: nowMs });
    return patienceMs;
  }

  /** Returns both versions; undefined if this node does not have the code of the new one. */
  #shapes(view: View, migration: StoredMigration): { from: TableShape; nextVersion: TableShape } | undefined {
    const { table, to } = migration;
    const { registry } = this.#options;
    const [from, nextVersion] = [view.table(table)?.shape, view.nextVersion(table)?.rows.shape];
    if (from === undefined || nextVersion === undefined) return undefined;
    const own = registry.versionShape(table, to);
    const isOwn = own?.canonical === nextVersion.canonical && !isOtherCode(nextVersion.schema, from.version, registry);
    return isOwn || this.#isDone(view, migration) ? { from, nextVersion } : undefined;
  }

  /**
   * Whether the old version can be retired without making a row, for the instance that requested it and has registered neither
   * version.
   */
  #isDone(view: View, { table, phase }: StoredMigration): boolean {
    if (phase !== 'switched' || !this.#asked.has(table) || this.#options.registry.shape(table) !== undefined)
      return false;
    return view.changesOf(table).length === 0 && isInStep(view, table);
  }

  #translation(view: View, migration: StoredMigration): RowTranslation | undefined {
    const { registry } = this.#options;
    const shapes = this.#shapes(view, migration);
    if (shapes === undefined) return undefined;
    const { from, nextVersion } = shapes;
    const forward = registry.migrateFunction(migration.table, migration.to);
    return new RowTranslation(from, nextVersion, forward, registry.migrateFunction(migration.table, from.version));
  }

  /** Whether this instance still has to report which version of some table it uses. */
  get #isUnknown(): boolean {
    return this.#options.engine.mustSayVersions((table) => this.#ownVersion(table));
  }

  #ownVersion(table: string): number | null {
    return this.#options.registry.shape(table)?.version ?? null;
  }

  async #work(): Promise<void> {
    if (this.#isUnknown) await this.sayVersions();
    for (const { table } of this.#migrations) await this.#chunks.repeat(() => this.#step(table));
  }

  /** Records in Block 0 which versions this instance uses, if that is still to be done. */
  async sayVersions(signal?: AbortSignal): Promise<void> {
    if (!this.#isUnknown) return;
    await this.#options.engine.sayVersions((table) => this.#ownVersion(table), signal);
  }

  /** Makes the next chunk of a migration, if it is this node's turn. */
  async #step(table: string): Promise<Step> {
    const { engine } = this.#options;
    const migration = engine.view.nextVersion(table)?.migration;
    if (migration === undefined || !this.#hasWork(migration) || !this.#chunks.isOwnTurn(this.#coded(migration)))
      return 'nothing';
    const situation = this.#situation(migration);
    // While rows are out of line, instances with the old version may have to correct them.
    const mayMark = this.#mayRetire(migration) && this.#isInStep(migration);
    if (mayMark && !(await isRetiring(engine.view, migration)) && (await this.#isUnique(table))) {
      await this.#giveUp(migration);
    }
    const ahead = await this.#ahead(table);
    if (ahead === 'lost') this.#inVain.add(table);
    const chunk = ahead ?? (await this.#chunk(table));
    if (chunk === 'lost') return chunk;
    return {
      rows: chunk.rows,
      isSized: ahead === undefined,
      fillMs: (chunk.built * 1000) / (migration.target?.rowsPerSecond ?? 1),
      tell: async () => {
        await this.#tell(table, migration, chunk);
        if (chunk.table === undefined) this.#idleSituations.set(table, situation);
      },
    };
  }

  /**
   * Whether no two rows agree in a unique index of the new version. This is checked before the old version is retired, which
   * cannot be undone.
   */
  async #isUnique(table: string): Promise<boolean> {
    const { engine, environment } = this.#options;
    const nextVersion = engine.view.nextVersion(table);
    if (nextVersion === undefined || !hasUniqueIndex(nextVersion.rows.shape)) return true;
    return (await uniqueProblems(nextVersion.rows, new Pacer(environment), 1)).length === 0;
  }

  /** The rows that a chunk of a migration makes at most. */
  #mostBuilt({ target }: StoredMigration): number {
    return Math.ceil(((target?.rowsPerSecond ?? 1) * this.#options.intervalMs) / 4000);
  }

  /**
   * Makes many rows ahead and stores them. Undefined if the next rows must be made by a chunk; `lost` if the rows could not be stored,
   * for example because another node has worked on the migration.
   */
  async #ahead(table: string): Promise<Chunk | 'lost' | undefined> {
    const { engine } = this.#options;
    const view = View.ofBlock0(engine.context, engine.view.block0);
    const migration = view.nextVersion(table)?.migration;
    const translation = migration && this.#translation(view, migration);
    if (this.#inVain.delete(table) || migration === undefined || translation === undefined) return undefined;
    const most = this.#mostBuilt(migration);
    const missing = (view.table(table)?.tree.count ?? 0) - (view.nextVersion(table)?.rows.tree.count ?? 0);
    // At a low rate the rows of a chunk are few, and so are the rows that are made ahead in their place.
    if (most < Math.min(maxRows, missing / 4) || !canMakeAhead(view, table, translation)) return undefined;
    const limits = this.#aheadLimits(migration, most * aheadChunks);
    const written = await engine.merger.ahead(view.block0, this.#generations, (context) => {
      return makeAhead(view, table, translation, limits, context);
    });
    if (written === undefined) return 'lost';
    const { made, birth } = written;
    if (made === undefined) return undefined;
    for (let attempt = 1; ; attempt++) {
      const chunk = await this.#chunks.store(async (block0, { bytes }, context) => {
        const present = View.ofBlock0(engine.context, block0);
        return storeAhead(present, table, made, translation, bytes, context);
      });
      // A merge that came first costs only another look at what has changed.
      if (chunk === 'lost' && attempt < maxAttempts) continue;
      if (engine.view.block0.generation >= birth) this.#generations = Math.min(this.#generations * 4, mostGenerations);
      return chunk ?? 'lost';
    }
  }

  /** The limits of rows made ahead. The next node with the code begins in its turn: half of this turn is left to store the rows. */
  #aheadLimits(migration: StoredMigration, rows: number): AheadLimits {
    const { environment, intervalMs } = this.#options;
    const isAlone = new Set(this.#coded(migration)).size === 1;
    const turnMs = isAlone ? longestAheadMs : untilNextTurn(environment.now(), intervalMs) / 2;
    const untilMs = environment.monotonicMs() + Math.min(turnMs, longestAheadMs);
    const bytes = Math.min(maxBufferBytes, this.#chunks.bytes);
    return { rows, bytes, isOver: () => environment.monotonicMs() > untilMs || this.#chunks.isStopped };
  }

  /** Computes a chunk and stores it. Returns `lost` if another node was faster. */
  async #chunk(table: string): Promise<Chunk | 'lost'> {
    const { engine } = this.#options;
    const chunk = await this.#chunks.store(async (block0, limits, context) => {
      const view = View.ofBlock0(engine.context, block0);
      const migration = view.nextVersion(table)?.migration;
      const translation = migration && this.#translation(view, migration);
      if (migration === undefined || translation === undefined) return undefined;
      const built = this.#mostBuilt(migration);
      const mayRetire = this.#mayRetire(migration);
      const retirement = (await isRetiring(view, migration)) ? 'now' : mayRetire ? 'soon' : 'no';
      return nextChunk(view, table, translation, { ...limits, built }, context, retirement);
    });
    return chunk ?? { table: undefined, rows: 0, built: 0, problems: [], phase: 'beside' };
  }

  /**
   * Records in Block 0 that the old version will be retired, if no user of it is listed there. An instance that starts later
   * with the old version reads that, and is refused.
   */
  async #announceEnd({ table, birth }: StoredMigration): Promise<void> {
    const { engine } = this.#options;
    await engine.register.update((present) => {
      const migration = present.migrations.find((other) => other.table === table && other.birth === birth);
      const { phase, target } = migration ?? {};
      if (migration === undefined || phase !== 'switched' || target?.retire !== 'unused') return undefined;
      if (usersOfOld(present, migration).length > 0) return undefined;
      const migrations = present.migrations.map((other) => (other === migration ? withEndAsked(other) : other));
      return { ...changeableOf(present), migrations };
    }, engine.stopping);
    engine.follower.advance(engine.register.current, []);
  }

  /** Commits that the old version is retired: later commits of that version alone are refused. */
  async #giveUp(migration: StoredMigration): Promise<void> {
    const { engine } = this.#options;
    if (migration.target?.retire === 'unused') await this.#announceEnd(migration);
    await engine.append({
      signal: engine.stopping,
      sizeBytes: 256,
      prepare: async (view) => {
        const present = view.nextVersion(migration.table)?.migration;
        const isSame = present?.birth === migration.birth && present.from === migration.from;
        if (
          present === undefined ||
          !isSame ||
          this.#shapes(view, present) === undefined ||
          present.target?.retire !== 'asked' ||
          !this.#mayRetire(present) ||
          (await isRetiring(view, present))
        ) {
          return { changes: [] };
        }
        return { changes: [retirementOf(present)] };
      },
    });
  }

  /** Logs the result of a chunk, and records problems of rows in Block 0 if the chunk has not done so. */
  async #tell(table: string, before: StoredMigration, chunk: Chunk): Promise<void> {
    const { engine, logger } = this.#options;
    const { from, to } = before;
    const details = { table, from, to };
    const problems = JSON.stringify(chunk.problems);
    if (problems !== JSON.stringify(before.problems) && chunk.table === undefined && chunk.phase === before.phase) {
      await engine.register.update((present) => {
        const migrations = present.migrations.map((migration) => {
          const isSame = migration.table === table && migration.birth === before.birth;
          return isSame ? { ...migration, problems: chunk.problems } : migration;
        });
        return { ...changeableOf(present), migrations };
      }, engine.stopping);
      engine.follower.advance(engine.register.current, []);
    }
    if (chunk.problems.length > 0 && problems !== JSON.stringify(before.problems)) {
      const rows = chunk.problems.map(({ key, message }) => `${key}: ${message}`).join(' ');
      const message = `The migration of table ${table} to version ${to} cannot migrate some rows. ${rows}`;
      logger.warn(message, { ...details, problems: chunk.problems });
    }
    if (chunk.phase === undefined) logger.info(`Version ${from} of table ${table} is retired`, details);
    else if (chunk.phase === 'switched' && before.phase !== 'switched') {
      logger.info(`Table ${table} has switched from version ${from} to version ${to}`, details);
    } else if (chunk.phase === 'building') this.#tellProgress(table, details);
  }

  #tellProgress(table: string, details: { readonly to: number }): void {
    const { engine, logger } = this.#options;
    const { view } = engine;
    const [done, total] = [view.nextVersion(table)?.rows.tree.count ?? 0, view.table(table)?.tree.count ?? 0];
    const tenths = total === 0 ? 0 : Math.floor((done * 10) / total);
    if (tenths === (this.#told.get(table) ?? 0)) return;
    this.#told.set(table, tenths);
    const message = `The migration of table ${table} to version ${details.to} has made ${done} of ${total} rows`;
    logger.info(message, { ...details, rowsDone: done, rowsTotal: total });
  }
}
