/**
 * A rollout: four real processes with two versions of an application work on one database and are killed again and again,
 * to be followed by one of the other version. Meanwhile the table is migrated, the migration is cancelled and asked for again,
 * and in the end only the new version is left.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StoreDb } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { usual } from '../chaos/conductor.ts';
import { isRemote, openStore } from '../crash/crash-store.ts';
import type { CrashStore } from '../crash/crash-store.ts';
import { persistently } from '../crash/database-chain.ts';
import { bundleProgram } from '../crash/program-bundle.ts';
import { startProxy, throughProxy } from '../crash/store-proxy.ts';
import type { TcpProxy } from '../../servers/s3/tcp-proxy.ts';
import { judge } from './rollout-judge.ts';
import { RolloutLane } from './rollout-lane.ts';
import type { Told } from './rollout-lane.ts';
import { databaseOptions, fences, groups, items1, lanes, schemaOf, seededRows, sumRows } from './versions.ts';
import type { Version } from './versions.ts';

export interface RolloutOptions {
  readonly store: CrashStore;
  readonly dbPrefix: string;
  /** How long the parts last together that end by the clock; others last until something has happened. */
  readonly seconds: number;
  readonly seed: string;
  readonly intervalMs: number;
  readonly pauseMs: number;
  /** Rows a second that the first migration makes at most, so that it lasts. */
  readonly rowsPerSecond: number;
}

export interface RolloutResult extends Told {
  readonly kills: number;
  readonly lives: number;
  readonly summary: string;
}

/** How long a migration may take once everything works, in milliseconds. */
const patienceMs = 180_000;

export async function runRollout(options: RolloutOptions): Promise<RolloutResult> {
  const folder = mkdtempSync(path.join(tmpdir(), 'store-db-rollout-'));
  const rollout = new Rollout(options, bundleProgram(new URL('rollout-program.ts', import.meta.url), folder));
  try {
    return await rollout.run();
  } finally {
    await rollout.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

class Rollout {
  readonly #options: RolloutOptions;
  readonly #program: string;
  readonly #random: SeededRandom;
  readonly #told: Told = { operations: [], anomalies: [], states: [] };
  readonly #lanes: RolloutLane[] = [];
  readonly #proxies: TcpProxy[] = [];
  readonly #lines: string[] = [];
  #cancelledAt = 0;
  #fences = 0;

  constructor(options: RolloutOptions, program: string) {
    this.#options = options;
    this.#program = program;
    this.#random = new SeededRandom(options.seed);
  }

  get #isOver(): boolean {
    return this.#told.anomalies.length > 0;
  }

  async run(): Promise<RolloutResult> {
    const { seconds, rowsPerSecond } = this.#options;
    const partMs = (seconds * 1000) / 4;
    await this.#seed();
    await this.#startLanes();
    const goes = (ms: number): (() => boolean) => {
      const untilMs = performance.now() + ms;
      return () => performance.now() < untilMs;
    };
    await this.#torment(goes(partMs));
    await this.#ask(rowsPerSecond);
    await this.#torment(goes(partMs));
    await this.#cancel();
    await this.#torment(goes(partMs / 2));
    await this.#ask(10 * rowsPerSecond);
    const isBuilt = this.#isSeen('switched');
    await this.#torment(() => !isBuilt(), 3000);
    await this.#torment(goes(partMs / 2));
    await this.#heldBy(this.#lanes, () => this.#compare(1));
    await this.#renew(partMs);
    await this.#compareAll();
    const { operations, states } = this.#told;
    const [kills, lives] = [this.#sum('kills'), this.#sum('lives')];
    const count = (outcome: string): number => operations.filter((operation) => operation.outcome === outcome).length;
    const seen = [...new Set(states.map(({ state }) => state))].join(', ');
    const summary =
      `${lives} processes, ${kills} kills; ${count('ok')} operations, ${count('failed')} failed, ${count('unknown')} ` +
      `unknown; seen: ${seen}\n${this.#lines.join('\n')}`;
    return { ...this.#told, kills, lives, summary };
  }

  #sum(what: 'kills' | 'lives'): number {
    return this.#lanes.reduce((sum, lane) => sum + lane[what], 0);
  }

  async end(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.kill()));
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
  }

  #note(text: string): void {
    this.#lines.push(`${(performance.now() / 1000).toFixed(1)} s: ${text}`);
  }

  /** An instance of the parent's own, which takes hardly any turns. */
  async #withDatabase<T>(version: Version, call: (db: Database) => Promise<T>): Promise<T> {
    const { store, dbPrefix } = this.#options;
    const base = { ...databaseOptions, dbPrefix, nodeId: 200, driver: openStore(store) };
    // It goes on writing fences with the version that is retired in the end.
    const db = StoreDb({ ...base, writeForwardInterval: 60_000, retiredVersions: 'allow' });
    for (const schema of [schemaOf(version), fences]) db.registerSchema(schema);
    await db.start();
    try {
      return await call(db);
    } finally {
      await db.stop();
    }
  }

  async #seed(): Promise<void> {
    await this.#withDatabase(1, async (db) => {
      const batch = db.batch();
      for (let id = 0; id < seededRows; id++) void batch.insert(items1.name, { id, group: id % groups });
      for (const id of sumRows) void batch.insert(items1.name, { id, group: groups });
      await batch.flush();
    });
  }

  async #startLanes(): Promise<void> {
    const { store, dbPrefix, intervalMs, pauseMs, seed } = this.#options;
    for (const lane of lanes) {
      let proxy: TcpProxy | undefined;
      let ownStore = store;
      if (isRemote(store)) {
        proxy = await startProxy(store, { seed: `${seed} ${lane}`, rules: usual });
        ownStore = throughProxy(store, proxy);
        this.#proxies.push(proxy);
      }
      const task = { store: ownStore, dbPrefix, intervalMs, pauseMs };
      this.#lanes.push(new RolloutLane(lane, this.#program, task, this.#told, proxy));
    }
    for (const lane of this.#lanes) lane.start(lane.number < laneOfNew ? 1 : 2);
  }

  /** Kills one process after the other. The first lane keeps the old version and the last one the new one. */
  async #torment(goesOn: () => boolean, restMs = 0): Promise<void> {
    const untilMs = performance.now() + patienceMs;
    while (goesOn() && !this.#isOver) {
      const untilKillMs = performance.now() + restMs + this.#random.between(200, 2500);
      while (goesOn() && performance.now() < untilKillMs) await sleep(50);
      const lane = this.#random.pick(this.#lanes);
      if (lane.isReady) {
        await lane.kill();
        await sleep(this.#random.between(0, 300));
        const other = lane.version === 1 ? 2 : 1;
        const isFixed = lane === this.#lanes[0] || lane === this.#lanes.at(-1);
        lane.start(isFixed ? lane.version : other);
      }
      if (performance.now() > untilMs) {
        this.#told.anomalies.push(`Nothing has come of it: ${JSON.stringify(this.#told.states.slice(-5))}`);
      }
    }
  }

  /** Whether a process has told of a state from now on. */
  #isSeen(state: string): () => boolean {
    const from = this.#told.states.length;
    return () => this.#told.states.slice(from).some((told) => told.state === state);
  }

  async #ask(rowsPerSecond: number): Promise<void> {
    if (this.#isOver) return;
    await this.#persistently(2, (db) => db.setTargetSchemaVersion('items', 2, { rowsPerSecond }));
    this.#note('asked for version 2');
  }

  #persistently<T>(version: Version, call: (db: Database) => Promise<T>): Promise<T> {
    return persistently(
      () => this.#withDatabase(version, call),
      () => undefined,
    );
  }

  /** Nothing is under way while `call` runs. */
  async #heldBy(held: readonly RolloutLane[], call: () => Promise<void>): Promise<void> {
    this.#quietly(true);
    await Promise.all(held.map((lane) => lane.hold()));
    if (!this.#isOver) await call();
    for (const lane of held) lane.go();
    this.#quietly(false);
  }

  #quietly(isQuiet: boolean): void {
    for (const proxy of this.#proxies) proxy.rules = isQuiet ? [] : usual;
  }

  async #cancel(): Promise<void> {
    const news = this.#lanes.filter(({ version }) => version === 2);
    await this.#heldBy(news, async () => {
      await this.#fence();
      const before = await this.#persistently(2, (db) => db.migrationStatus('items'));
      await this.#persistently(2, (db) => db.cancelMigration('items'));
      const writing = this.#told.operations.length;
      this.#cancelledAt = writing;
      this.#note(`cancelled when it was ${before.state}, with ${before.rowsDone} of ${before.rowsTotal} rows`);
    });
  }

  /** What killed processes sent last can only land in the next slot: once that is taken, it has landed or never will. */
  async #fence(): Promise<void> {
    const id = `fence ${++this.#fences}`;
    await this.#persistently(1, async (db) => {
      const batch = db.batch();
      void batch.upsert('fences', { id });
      await batch.flush();
    });
  }

  /** Reads everything in one version, and compares it with what was told. */
  async #compare(version: Version): Promise<void> {
    await this.#fence();
    const rows = await this.#persistently(version, (db) => db.query('items').execute());
    const { operations, anomalies } = this.#told;
    anomalies.push(...judge({ operations, cancelledAt: this.#cancelledAt }, { version, rows }));
    this.#note(`compared ${operations.length} operations with ${rows.length} rows of version ${version}`);
  }

  /** Every process is followed by one of the new version. */
  async #renew(ms: number): Promise<void> {
    if (this.#isOver) return;
    for (const lane of this.#lanes) {
      if (lane.version === 2) continue;
      await lane.kill();
      lane.start(2);
      await sleep(ms / 4);
    }
    await this.#ask(10_000);
    // What was killed has not said that it is gone.
    await this.#persistently(2, async (db) => {
      while ((await db.migrationStatus('items')).state === 'building') await sleep(50);
      await db.finishMigration('items', { force: true });
    });
    const isRetired = this.#isSeen('none');
    const untilMs = performance.now() + patienceMs;
    while (!isRetired() && !this.#isOver) {
      if (performance.now() > untilMs) {
        const status = await this.#persistently(2, (db) => db.migrationStatus('items'));
        this.#told.anomalies.push(`The old version is not retired: ${JSON.stringify(status)}`);
      }
      await sleep(50);
    }
    this.#note('version 1 is retired');
    this.#quietly(true);
    await Promise.all(this.#lanes.map((lane) => lane.finish()));
  }

  async #compareAll(): Promise<void> {
    if (this.#isOver) return;
    await this.#compare(2);
    const { anomalies } = this.#told;
    await this.#withDatabase(2, async (db) => {
      // What a run condemns or lists is removed by the next ones.
      for (let run = 0; run < 3; run++) {
        await db.checkpoint();
        await db.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 0 });
      }
      const { findings, garbage, tables } = await db.verify({ deep: true });
      anomalies.push(...findings.map(({ message }) => message));
      if (garbage !== undefined && Object.values(garbage).some((count) => count > 0))
        anomalies.push(`gc has left blocks: ${JSON.stringify(garbage)}`);
      const state = await db.migrationStatus('items');
      if (state.state !== 'none' || state.from !== 2) anomalies.push(`It ends with ${JSON.stringify(state)}`);
      this.#note(`the table has ${JSON.stringify(tables.find(({ name }) => name === 'items'))}`);
    });
    await this.#compare(2);
  }
}

/** The first lane that begins with the new version. */
const laneOfNew = 2;

/** Throws if anything was found. */
export function expectNoAnomalies({ anomalies, summary }: RolloutResult): void {
  if (anomalies.length > 0) throw new Error(`${anomalies.slice(0, 20).join('\n')}\n\n${summary}`);
}
