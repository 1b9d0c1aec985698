/**
 * One life of a simulated process: a real instance on a driver that fails, in an environment that can be paused and
 * killed, and an application that uses it. Everything that the instance says is held against the oracle.
 */
import { inspect } from 'node:util';
import { sleep } from '../../../src/base/env.ts';
import { StoreDbError } from '../../../src/base/errors.ts';
import { Database } from '../../../src/api/database.ts';
import { Instance } from '../../../src/instance/instance.ts';
import { checkOptions } from '../../../src/instance/options.ts';
import type { Role } from '../../../src/coordination/membership.ts';
import type { Polling } from '../../../src/coordination/polling-pace.ts';
import type { Query } from '../../../src/query/query.ts';
import { FaultyDriver } from '../../../src/testing/faulty-driver.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';
import { mapBlobs } from './blob-ledger.ts';
import { buildQuery } from './build-query.ts';
import { mayRewrite, rewriteSome, storageOptions } from './encryption.ts';
import { expectedCodes } from './expected-codes.ts';
import { FunctionUser, schemasOf } from './functions.ts';
import { bulkOps, randomGet, randomOp, randomQuery } from './generate.ts';
import type { Habits } from './config.ts';
import type { Segment } from './ledger.ts';
import { applyOps, rowsOf, runQuery, sortedRows, textOf } from './model.ts';
import type { ModelQuery, Op, State } from './model.ts';
import { IndexUser } from './index-user.ts';
import { DropUser } from './drop-user.ts';
import { ArticleUser } from './article-user.ts';
import { ExpiryUser } from './expiry-user.ts';
import { LiveUser } from './live-user.ts';
import { LoadUser } from './load-user.ts';
import { PageUser } from './page-user.ts';
import type { Asker } from './query-maker.ts';
import { Reader } from './reader.ts';
import { SeatUser } from './seat-user.ts';
import { SimBatch } from './sim-batch.ts';
import { runTransaction } from './sim-transaction.ts';
import { SnapshotHolder } from './snapshot-holder.ts';
import { blobFieldsOf, engineKey, tablesIn } from './tables.ts';
import type { Row } from './tables.ts';
import { VersionUser } from './version-user.ts';
import { people, tableName } from './versions.ts';
import { WatchedDriver } from './watched-driver.ts';
import type { World } from './world.ts';

function hasBlobs({ ops }: Segment): boolean {
  return ops.some(
    (op) => op.kind !== 'delete' && blobFieldsOf(op.table).some((field) => (op.document[field] ?? null) !== null),
  );
}

/** A log that is still looked at when the instance has started: what is in it by then is shown unless it is trimmed meanwhile. */
interface Opening {
  /** The last slot when it was called. */
  readonly tail: number;
  readonly floor: number;
  /** From then on reads refresh a view that would be older. */
  readonly untilMs: number;
}

/** A read under way: the instance's life that it began in, and the first slot that it may show. */
interface BegunRead {
  readonly reader: Reader;
  readonly least: number;
  /** What it may show besides, if nothing of the log is trimmed meanwhile. */
  readonly opening: Opening | undefined;
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof StoreDbError && error.code === code;
}

export class SimNode {
  readonly name: string;
  readonly nodeId: number | 'auto';
  /** Whether it only reads. */
  readonly isReplica: boolean;
  /** Whether it lives as long as a request. */
  readonly isEphemeral: boolean;
  readonly environment: VirtualEnvironment;
  readonly db: Database;
  readonly faulty: FaultyDriver;
  /** Resolves when the process is killed. */
  readonly died: Promise<void>;
  stopFailed = false;
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #chaos: SeededRandom;
  readonly #retiredVersions: 'refuse' | 'allow';
  readonly #polling: Polling;
  readonly #snapshots: SnapshotHolder;
  /** Undefined: there is no table in several versions. */
  readonly #versions: VersionUser | undefined;
  /** Undefined: there is no index on a function. */
  readonly #functions: FunctionUser | undefined;
  /** Undefined: there is no table with unique indexes. */
  readonly #seats: SeatUser | undefined;
  /** Undefined: there is no table whose key is made of several fields. */
  readonly #pages: PageUser | undefined;
  /** Undefined: the indexes of that table stay as they are. */
  readonly #indexes: IndexUser | undefined;
  /** Undefined: nothing is loaded. */
  readonly #loads: LoadUser | undefined;
  /** Undefined: nothing is watched. */
  readonly #live: LiveUser | undefined;
  readonly #drops: DropUser | undefined;
  readonly #expiry: ExpiryUser | undefined;
  readonly #articles: ArticleUser | undefined;
  readonly #flushes = new Set<Promise<void>>();
  readonly #collections = new Set<Promise<void>>();
  /** Batches that may be flushed again some time, or never. */
  #kept: SimBatch[] = [];
  #reader: Reader;
  #die: () => void = () => undefined;
  #started = false;
  /** How often it was stopped. */
  #stops = 0;
  /** From when on the instance promises that its view is not older than two intervals. */
  #freshFromMs = 0;
  #opening: Opening | undefined;
  /** What was acknowledged at the first attempt, in the order of the calls. */
  readonly #inOrder: Segment[] = [];

  /** `draws`: what the engine's random numbers come from, if not from the seed. */
  constructor(world: World, name: string, index: number, seed: string, draws?: string) {
    const { config, root, store, prefix, trace } = world;
    const { isReplica = false, isEphemeral = false, ...habits } = config.habits[index] as Habits;
    const { nodes, asksForNodes = false, polling, mergePolicy, history } = habits;
    this.isReplica = isReplica;
    this.isEphemeral = isEphemeral;
    this.#polling = polling;
    this.#world = world;
    this.name = name;
    // Who is told with whom to share is told its own id as well.
    this.nodeId = config.autoIds && nodes === undefined ? 'auto' : (config.nodeIds[index] as number);
    this.#random = new SeededRandom(`${seed} work`);
    this.#chaos = new SeededRandom(`${seed} chaos`);
    this.environment = root.fork({ seed: draws ?? `${seed} environment`, lookMs: config.lookMs });
    if (config.wrongClocks) this.jumpClock();
    this.died = new Promise((resolve) => {
      this.#die = resolve;
    });
    this.#reader = new Reader(world.judge, world.ledger, name);
    this.faulty = new FaultyDriver(store, { seed: `${seed} faults`, faults: config.faults, environment: root });
    const hooks = { name, trace, beforeSend: () => this.#mishap(), afterSend: () => this.#mishap() };
    this.#retiredVersions = new SeededRandom(`${seed} retired`).pick(['refuse', 'allow'] as const);
    const options = {
      ...storageOptions(config.encrypted, new SeededRandom(`${seed} storage`)),
      ...(isEphemeral ? {} : { polling, nodeId: this.nodeId }),
      mergePolicy,
      retiredVersions: this.#retiredVersions,
      ...(history === undefined ? {} : { history }),
      ...(nodes === undefined ? {} : { nodes: asksForNodes ? () => this.#nodesFor(nodes) : nodes }),
      dbPrefix: prefix,
      driver: new WatchedDriver(this.environment.connect(this.faulty), hooks),
      writeForwardInterval: config.intervalMs,
      blockSizeBytes: config.blockSizeBytes,
      role: this.#role,
      logLevel: 'silent',
    };
    const checked = checkOptions(options, () => undefined);
    const { maxMemoryBytes } = config;
    this.db = new Database(new Instance({ ...checked, maxMemoryBytes }, this.environment, config.maxCommitBytes));
    for (const schema of schemasOf(config)) this.db.registerSchema(schema);
    if (config.functions) this.#functions = new FunctionUser(this.db, new SeededRandom(`${seed} functions`));
    const expect = (what: string, error: unknown): void => this.#expect(what, error);
    if (config.migrationChance > 0) {
      const ofVersions = new SeededRandom(`${seed} versions`);
      this.#versions = new VersionUser({ world, name, db: this.db, random: ofVersions, expect });
    }
    if (config.seatChance > 0) this.#seats = new SeatUser(world, new SeededRandom(`${seed} seats`));
    if (config.pageChance > 0) this.#pages = new PageUser(world, new SeededRandom(`${seed} pages`));
    const random = new SeededRandom(`${seed} snapshots`);
    const { db, environment } = this;
    if (config.pageChance > 0 && config.indexChance > 0) {
      const ofIndexes = new SeededRandom(`${seed} indexes`);
      this.#indexes = new IndexUser({ world, name, db: this.db, random: ofIndexes, expect });
    }
    if (config.loadChance > 0) {
      const pause = (ms: number): Promise<void> => this.#sleep(ms);
      const ofLoads = new SeededRandom(`${seed} loads`);
      this.#loads = new LoadUser({ world, name, db, random: ofLoads, pause, expect });
    }
    if (config.liveChance > 0 && !isEphemeral) {
      const ofLive = new SeededRandom(`${seed} live`);
      const query = (): ModelQuery => this.#anyQuery(ofLive);
      this.#live = new LiveUser({ world, name, db, environment, random: ofLive, query, expect });
    }
    if (config.dropChance > 0 && !this.isReplica) {
      const ofDrops = new SeededRandom(`${seed} drops`);
      const stops = (): number => this.#stops;
      this.#drops = new DropUser({ world, name, db, random: ofDrops, stops, expect });
    }
    if (config.expiryChance > 0) {
      const ofExpiry = new SeededRandom(`${seed} expiry`);
      this.#expiry = new ExpiryUser({ world, name, db, environment, random: ofExpiry, expect });
    }
    if (config.articleChance > 0) {
      this.#articles = new ArticleUser({ world, name, db, random: new SeededRandom(`${seed} articles`), expect });
    }
    const users = { versions: this.#versions, seats: this.#seats, pages: this.#pages };
    this.#snapshots = new SnapshotHolder({ world, name, db, random, environment, expect, ...users });
  }

  get #role(): Role {
    if (this.isReplica) return 'replica';
    return this.isEphemeral ? 'ephemeral' : 'writer';
  }

  /** Whether another life is to follow this one, which has ended by itself. */
  get isReplaced(): boolean {
    return this.#versions?.isDone === true;
  }

  get isDead(): boolean {
    return this.environment.isFrozen;
  }

  jumpClock(): void {
    this.environment.skewMs = this.#chaos.between(-1, 1) * this.#chaos.pick([100, 10_000, 86_400_000]);
  }

  /** From now on puts land long after their senders have given up; everything else works. */
  beginOutage(): void {
    if (this.isDead || this.#world.ending) return;
    this.#world.trace.add(this.name, 'has an outage');
    this.faulty.faults = { latencyMs: [50, 500], lateEffect: 1, lateMs: [33_000, 38_000] };
  }

  endOutage(): void {
    if (!this.#world.ending) this.faulty.faults = this.#world.config.faults;
  }

  kill(): void {
    if (this.isDead) return;
    this.#world.trace.add(this.name, 'dies');
    this.#world.ledger.versions?.ended(this.name);
    this.environment.freeze();
    this.#die();
  }

  /** What may happen to a process at any request. */
  #mishap(): void {
    const { config, ending } = this.#world;
    if (ending) return;
    // What it sent just now may land, the next one is never sent.
    if (this.#chaos.chance(config.crashChance / 2)) return this.kill();
    if (!this.#chaos.chance(config.pauseChance / 2)) return;
    this.environment.pause(this.#chaos.between(...config.pauseMs));
    if (config.wrongClocks && this.#chaos.chance(0.3)) this.jumpClock();
  }

  #sleep(ms: number): Promise<void> {
    return sleep(this.environment, ms);
  }

  /** A failed call: an error that this run has no reason for is a violation. */
  #expect(what: string, error: unknown): void {
    const { trace, judge, config } = this.#world;
    const code = error instanceof StoreDbError ? error.code : undefined;
    trace.add(this.name, `${what} failed: ${code ?? String(error)}`);
    if (code !== undefined && expectedCodes.has(code)) return;
    if (this.#versions?.explains(error) === true) return;
    // Where it is the byte with the version that is damaged, a block seems to be of a later one.
    const isOfDamage = code === 'CORRUPTION' || code === 'UNKNOWN_FORMAT';
    if (isOfDamage && (config.faults.damaged ?? 0) > 0) return;
    judge.fail('unexpected error', `${this.name}: ${what}: ${inspect(error)}`);
  }

  /** Starts the instance, however often that takes. */
  async start(): Promise<void> {
    const { ledger, trace, config, root } = this.#world;
    for (;;) {
      const calledMs = root.timeline.nowMs;
      const { tail } = ledger;
      const floor = ledger.block0?.logFloor ?? 0;
      const applied = ledger.block0?.appliedSeq ?? 0;
      const { block0 } = ledger;
      const stops = this.#stops;
      try {
        await this.db.start();
      } catch (error) {
        // Nobody has created the database yet.
        const isEarly = this.isReplica && block0 === undefined && isCode(error, 'NOT_A_DATABASE');
        if (!isEarly) this.#expect('start', error);
        if (this.#versions?.isTooLate(error) === true) return;
        await this.#sleep(100);
        continue;
      }
      // Slots that are trimmed while the log is read are passed over, until the view is refreshed; all that Block 0 had
      // applied is shown.
      const trimmed = (ledger.block0?.logFloor ?? 0) !== floor;
      const untilMs = calledMs + 2 * config.intervalMs;
      const looksOn = !trimmed && this.#polling === 'onDemand';
      this.#reader.promised(trimmed || looksOn ? applied : tail);
      this.#opening = looksOn ? { tail, floor, untilMs } : undefined;
      this.#freshFromMs = trimmed ? untilMs : 0;
      this.#started = true;
      // Another flush of this process may have stopped it again.
      const isRunning = !this.isDead && this.#stops === stops;
      if (this.#versions !== undefined && isRunning && !this.isReplica && !this.#knowsOfEnd())
        ledger.versions?.started(this.name, this.#versions.version, block0);
      trace.add(this.name, 'started');
      return;
    }
  }

  /** Whether it was told to start although its version may be going, and it is: it can use other tables, and not that one. */
  #knowsOfEnd(): boolean {
    const { block0 } = this.#world.ledger;
    const isEnding = block0?.migrations.some(({ table, target }) => table === people && target?.retire === 'asked');
    return this.#retiredVersions === 'allow' && isEnding === true;
  }

  /** Uses the instance: so many actions. */
  async work(actions: number, onAction: () => void): Promise<void> {
    await this.start();
    for (let i = 0; i < actions && !this.#world.ending && !this.isReplaced; i++) {
      onAction();
      await this.#act();
      if (this.#random.chance(0.7)) await this.#sleep(this.#random.between(0, 2) * this.#world.config.thinkMs);
    }
  }

  /** The answer of whoever knows the nodes: mostly what it was told, sometimes another one, or none. */
  #nodesFor(nodes: readonly number[]): readonly number[] {
    const dice = this.#chaos.next();
    if (dice < 0.05) throw new Error('Nobody knows the nodes');
    return dice < 0.3 ? [...new Set(this.#world.config.nodeIds)] : nodes;
  }

  /** Has done its work, and leaves the others to theirs. */
  async leave(): Promise<void> {
    await Promise.all([...this.#flushes, ...this.#collections]);
    await this.#stop();
  }

  async #act(): Promise<void> {
    if (this.#live?.mayAct() === true) return this.#live.act();
    if (this.isReplica) return this.#actAsReplica();
    const { config } = this.#world;
    if (mayRewrite(config, this.#random)) return rewriteSome(this.db, this.#random, (e) => this.#expect('rewrite', e));
    if (this.#versions?.mayAct() === true) return this.#nextVersion(this.#versions.act());
    if (this.#indexes?.mayAct() === true) return this.#nextVersion(this.#indexes.act());
    if (this.#drops?.mayAct() === true) return this.#nextVersion(this.#drops.act());
    if (this.#expiry?.mayAct() === true) return this.#nextVersion(this.#expiry.act());
    if (this.#articles?.mayAct() === true) return this.#nextVersion(this.#articles.act());
    if (this.#loads?.mayAct() === true) return this.#nextVersion(this.#load(this.#loads));
    if (this.#random.chance(config.snapshotChance)) return this.#snapshots.act();
    if (this.#random.chance(config.gcChance)) return this.#collect();
    if (this.#random.chance(config.transactionChance)) return this.#transact();
    if (this.#kept.length > 0 && this.#random.chance(0.1)) return this.#flushKept();
    const dice = this.#random.next();
    if (dice < 0.5) await this.#write();
    else if (dice < 0.7) await this.#query();
    else if (dice < 0.82) await this.#get();
    else if (dice < 0.88) await this.#refresh();
    else if (dice < 0.94) await this.#checkpoint();
    else if (dice < 0.97) await this.#restart();
    else if (config.wrongClocks) this.jumpClock();
  }

  /** All that a replica can do. */
  async #actAsReplica(): Promise<void> {
    const dice = this.#random.next();
    if (dice < 0.5) await this.#query();
    else if (dice < 0.8) await this.#get();
    else if (dice < 0.95) await this.#refresh();
    else await this.#restart();
  }

  async #load(loads: LoadUser): Promise<void> {
    for (const { landed } of await loads.act()) this.#reader.promised(landed?.slot ?? 0);
  }

  /** Calls about migrations and indexes, and loads: mostly beside what else it does. */
  async #nextVersion(act: Promise<void>): Promise<void> {
    const call = act.finally(() => this.#flushes.delete(call));
    this.#flushes.add(call);
    if (this.#random.chance(0.5)) await call;
  }

  /** Collects garbage: mostly beside what else it does. */
  async #collect(): Promise<void> {
    const random = this.#random;
    const { graceMs, logRetentionMs } = this.#world.config;
    if (this.#collections.size > 1) return;
    const run = async (): Promise<void> => {
      try {
        const dryRun = random.chance(0.05);
        const { counts, condemnedBlobs } = await this.db.gc({ loopGraceMs: 0, graceMs, logRetentionMs, dryRun });
        this.#world.trace.add(this.name, `collected ${JSON.stringify(counts)}, condemned ${condemnedBlobs}`);
      } catch (error) {
        this.#expect('gc', error);
      }
    };
    const collection = run().finally(() => this.#collections.delete(collection));
    this.#collections.add(collection);
    if (random.chance(0.3)) await collection;
  }

  async #write(): Promise<void> {
    const random = this.#random;
    const { config, ledger } = this.#world;
    const work = new SimBatch(this.db, ledger);
    const [versions, seats, pages] = [this.#versions, this.#seats, this.#pages];
    const op = (): Op => versions?.op() ?? seats?.op() ?? pages?.op() ?? randomOp(random, ledger.state, config.scale);
    const bulk = (): Op[] => versions?.bulk() ?? seats?.bulk() ?? pages?.bulk() ?? bulkOps(random, config.scale);
    try {
      if (random.chance(config.bulkChance)) for (const each of bulk()) await work.add(each);
      else for (let i = random.pick([1, 1, 2, 3, 5]); i > 0; i--) await work.add(op());
      for (const each of seats?.pair() ?? []) await work.add(each);
      if (random.chance(0.2)) await work.addSub([op(), op()], random.chance(0.3));
      if (random.chance(0.2)) await this.#query(work);
    } catch (error) {
      this.#expect('batch', error);
    }
    if (work.isEmpty || random.chance(0.03)) return;
    await this.#begin(work);
  }

  async #flushKept(): Promise<void> {
    const [work] = this.#kept.splice(this.#random.integer(0, this.#kept.length - 1), 1);
    if (work !== undefined) await this.#begin(work);
  }

  /** Begins to flush a batch, and waits for it or not. */
  async #begin(work: SimBatch): Promise<void> {
    const flush = this.#flush(work).finally(() => this.#flushes.delete(flush));
    this.#flushes.add(flush);
    if (this.#random.chance(0.5) || this.#flushes.size > 5) await flush;
  }

  /** Runs a transaction, and waits for it or not. */
  async #transact(): Promise<void> {
    const { world, name, db } = { world: this.#world, name: this.name, db: this.db };
    const random = this.#random.fork();
    const { abortChance, thinkMs } = world.config;
    const controller = random.chance(abortChance) ? new AbortController() : undefined;
    const giveUp = (): void => controller?.abort(new Error('The application has changed its mind'));
    const timer = this.environment.setTimer(giveUp, random.between(0, 8) * thinkMs);
    const pause = (): Promise<void> => this.#sleep(random.between(0, 1) * thinkMs);
    const { reader } = this.#beginRead();
    // It begins with all that was committed before the call.
    const began = { reader, least: Math.max(reader.least, world.ledger.tailAt(world.root.timeline.nowMs)) };
    const run = async (): Promise<void> => {
      const signal = controller?.signal;
      const users = { versions: this.#versions, seats: this.#seats, pages: this.#pages };
      const options = { world, name, db, random, signal, sleep: pause, ...users };
      const { error, acked, attempts } = await runTransaction(options);
      timer.cancel();
      if (error !== undefined) this.#expect('transaction', error);
      for (const reads of attempts)
        reader.judgeTogether('a transaction', reader === this.#reader ? began.least : 0, reads);
      if (acked !== undefined) this.#reader.promised(acked.landed?.slot ?? 0);
    };
    const transaction = run().finally(() => this.#flushes.delete(transaction));
    this.#flushes.add(transaction);
    if (random.chance(0.5) || this.#flushes.size > 5) await transaction;
  }

  /** Flushes a batch as an application would: again where the outcome is unknown, sometimes again where it is not. */
  async #flush(work: SimBatch): Promise<void> {
    const random = this.#random;
    const { trace, config, ledger } = this.#world;
    for (let attempt = 1; ; attempt++) {
      const controller = random.chance(config.abortChance) ? new AbortController() : undefined;
      const giveUp = (): void => controller?.abort(new Error('The application has changed its mind'));
      const timer = this.environment.setTimer(giveUp, random.between(0, 4) * config.thinkMs);
      const { outcome, error, acked, isFirst } = await work.flush(controller?.signal);
      timer.cancel();
      trace.add(this.name, `flush ${outcome}`);
      if (error !== undefined) this.#expect('flush', error);
      if (outcome === 'acked') {
        this.#noteAcked(acked, isFirst);
        return;
      }
      const patience = this.#world.ending ? 3 : 6;
      const again = outcome === 'unknown' ? random.chance(0.9) : random.chance(0.3);
      if (outcome === 'none' && random.chance(config.keepChance)) return void this.#kept.push(work);
      if (!again || attempt >= patience) return work.clear();
      // An instance that was started anew knows nothing of its old flushes.
      if (outcome === 'unknown' && random.chance(config.restartChance) && !this.#world.ending) await this.#restart();
      await this.#sleep(random.between(0, 3) * config.thinkMs);
      if (random.chance(0.2)) {
        await work.add(randomOp(random, ledger.state, config.scale)).catch((cause: unknown) => {
          this.#expect('batch', cause);
        });
      }
    }
  }

  /** Own flushes keep their order, and are visible from now on. */
  #noteAcked(acked: readonly Segment[], isFirst: boolean): void {
    const place = ({ landed }: Segment): number => (landed?.slot ?? 0) * 1000 + (landed?.member ?? 0);
    for (const segment of acked) this.#reader.promised(segment.landed?.slot ?? 0);
    const [segment] = acked;
    // A flush that brings blobs takes its place once they are uploaded: others need not wait for that.
    if (!isFirst || segment === undefined || hasBlobs(segment)) return;
    for (const other of this.#inOrder) {
      if (other.number < segment.number === place(other) < place(segment)) continue;
      const message = `${this.name}: flushes ${other.mark} and ${segment.mark} are in the log the other way round`;
      this.#world.judge.fail('I4 total order', message);
    }
    this.#inOrder.push(segment);
  }

  /** A read begins: what it may show. A view that is older than two intervals is refreshed first. */
  #beginRead(): BegunRead {
    const { root, ledger, config } = this.#world;
    const reader = this.#reader;
    const { nowMs } = root.timeline;
    if (this.#opening !== undefined && nowMs > this.#opening.untilMs) this.#opening = undefined;
    const opening = this.#opening;
    if (nowMs <= this.#freshFromMs || opening !== undefined) return { reader, least: reader.least, opening };
    return { reader, least: Math.max(reader.least, ledger.tailAt(nowMs - 2 * config.intervalMs)), opening };
  }

  /** The first slot that a read may show that comes to its end now. */
  #leastOf({ least, opening }: BegunRead): number {
    if (opening === undefined) return least;
    const isTrimmed = (this.#world.ledger.block0?.logFloor ?? 0) !== opening.floor;
    return isTrimmed ? least : Math.max(least, opening.tail);
  }

  #judge(began: BegunRead, what: string, table: string, found: string, resultAt: (state: State) => string): void {
    // Stopped and started meanwhile: which of its lives answered is not known.
    const least = began.reader === this.#reader ? this.#leastOf(began) : 0;
    this.#reader.judge(what, table, least, found, resultAt);
  }

  /** Asks a query for something else than its rows. */
  async #ask(asker: Asker, over?: SimBatch): Promise<void> {
    const overlay = over?.overlay;
    const { table, given } = asker.ask((name) => {
      const query = this.db.query(name) as Query;
      return over === undefined || overlay === undefined ? query : query.overlay(over.batch);
    });
    try {
      for (;;) {
        const began = this.#beginRead();
        const { value: answer, done } = await given.next();
        if (done === true) return;
        this.#world.trace.add(this.name, `${answer.what}: ${answer.found}`);
        this.#judge(began, answer.what, table, answer.found, (state) => {
          const shown = overlay === undefined ? state : (applyOps(state, overlay, true) as State);
          return answer.expected(rowsOf(shown, table));
        });
      }
    } catch (error) {
      this.#expect('query', error);
    }
  }

  #anyQuery(random: SeededRandom): ModelQuery {
    return (
      this.#versions?.query() ??
      this.#seats?.query() ??
      this.#pages?.query() ??
      this.#functions?.query() ??
      randomQuery(random, this.#world.config.scale)
    );
  }

  async #query(over?: SimBatch): Promise<void> {
    const seats = this.#seats;
    if (seats?.chance() === true) return this.#ask(seats, over);
    const pages = this.#pages;
    if (pages?.chance() === true) return this.#ask(pages, over);
    const random = this.#random;
    const { ledger, trace, config } = this.#world;
    const query = this.#anyQuery(random);
    const overlay = over?.overlay;
    const stored = buildQuery(this.db.query(tableName(query.table)), query);
    const built = over === undefined || overlay === undefined ? stored : stored.overlay(over.batch);
    const streamed = overlay === undefined && random.chance(0.25);
    const began = this.#beginRead();
    const rows: Row[] = [];
    try {
      if (streamed) {
        for await (const row of built) {
          rows.push(row as Row);
          if (random.chance(0.3)) await this.#sleep(random.between(0, 1) * config.thinkMs);
        }
      } else rows.push(...((await built.execute()) as Row[]));
    } catch (error) {
      // What a loop reads may be collected before it comes to its end.
      const isOutdated = streamed && error instanceof StoreDbError && error.code === 'SNAPSHOT_EXPIRED';
      if (isOutdated && (ledger.block0?.collected ?? 0) > 0) trace.add(this.name, 'query outdated');
      else this.#expect('query', error);
      return;
    }
    const found = textOf(this.#modelled(query.table, rows, overlay !== undefined));
    trace.add(this.name, `query ${JSON.stringify(query)}: ${rows.length} rows`);
    this.#judge(began, `query ${JSON.stringify(query)}`, query.table, found, (state) => {
      if (overlay === undefined) return textOf(runQuery(rowsOf(state, query.table), query));
      const shown = applyOps(state, overlay, true) as State;
      return textOf(runQuery(rowsOf(shown, query.table), query).map((row) => mapBlobs(query.table, row, () => 'blob')));
    });
  }

  /** Rows as the model has them. In a batch, blobs may be new: what is in them is not known before it is flushed. */
  #modelled(table: string, rows: readonly Row[], withBatch = false): Row[] {
    const { blobs } = this.#world.ledger;
    return rows.map((row) => (withBatch ? mapBlobs(table, row, () => 'blob') : blobs.read(table, row)));
  }

  async #get(): Promise<void> {
    const { table, key } =
      this.#versions?.get() ?? this.#pages?.get() ?? randomGet(this.#random, this.#world.config.scale);
    const began = this.#beginRead();
    let row: Row | undefined;
    try {
      row = (await this.db.get(tableName(table), engineKey(table, key))) as Row | undefined;
    } catch (error) {
      this.#expect('get', error);
      return;
    }
    const found = textOf(this.#modelled(table, row === undefined ? [] : [row]));
    this.#judge(began, `get ${table} ${key}`, table, found, (state) => {
      const expected = rowsOf(state, table).get(key);
      return textOf(expected === undefined ? [] : [expected]);
    });
    for (const field of blobFieldsOf(table)) {
      const reference = row?.[field] ?? null;
      if (reference !== null) await this.#readBlob(reference as string);
    }
  }

  /** A blob that a row refers to, or did a moment ago. */
  async #readBlob(reference: string): Promise<void> {
    const { ledger, judge } = this.#world;
    const began = this.#beginRead();
    try {
      const found = await this.db.getBlob(reference).getString();
      const expected = ledger.blobs.contentOf(reference);
      if (found !== expected) judge.fail('blobs', `${this.name}: blob ${reference} is '${found}', not '${expected}'`);
    } catch (error) {
      const isGone = error instanceof StoreDbError && error.code === 'BLOB_NOT_FOUND';
      if (!isGone) return this.#expect('blob', error);
      let isShown = began.reader === this.#reader;
      for (let slot = this.#leastOf(began); slot <= ledger.tail; slot++)
        isShown &&= ledger.blobs.after(slot).live.has(reference);
      if (isShown) judge.fail('blobs', `${this.name}: blob ${reference} is not found, and there is a row that has it`);
    }
  }

  async #refresh(): Promise<void> {
    const { tail } = this.#world.ledger;
    const reader = this.#reader;
    try {
      await this.db.refresh();
      reader.promised(tail);
    } catch (error) {
      this.#expect('refresh', error);
    }
  }

  async #checkpoint(): Promise<void> {
    const { ledger, judge } = this.#world;
    const { tail } = ledger;
    const reader = this.#reader;
    try {
      await this.db.checkpoint();
      const applied = ledger.block0?.appliedSeq ?? 0;
      if (applied < tail) judge.fail('checkpoint', `${this.name}: slot ${tail} was there, and ${applied} is applied`);
      reader.promised(tail);
    } catch (error) {
      this.#expect('checkpoint', error);
    }
  }

  async #restart(): Promise<void> {
    await this.#stop();
    await this.start();
  }

  async #stop(): Promise<void> {
    this.#started = false;
    this.#stops++;
    this.#world.ledger.versions?.ended(this.name);
    this.#snapshots.letGo();
    try {
      await this.db.stop();
    } catch (error) {
      // It has waited for as long as it may; what it waited for goes on for a while.
      this.stopFailed = true;
      this.#expect('stop', error);
    }
    // What it shows after another start is judged anew; what it acknowledged is in the log.
    this.#reader = new Reader(this.#world.judge, this.#world.ledger, this.name);
  }

  /** The end: everything works again, so all that is under way must come to a result. */
  async settle(): Promise<void> {
    this.faulty.faults = { latencyMs: [0.5, 2] };
    await Promise.all([...this.#flushes, ...this.#collections]);
  }

  /** `refreshed`: the state when the view was brought up to date. Since then a version may have been given up. */
  async #checkVersion(versions: VersionUser, refreshed: State): Promise<void> {
    const { ledger, judge } = this.#world;
    const rows = await versions.rows();
    if (rows === undefined) return;
    const { table } = versions;
    const found = textOf(rows);
    const [before, expected] = [refreshed, ledger.state].map((state) =>
      textOf(sortedRows(table, rowsOf(state, table))),
    );
    if (found !== expected && found !== before)
      judge.fail('I13 migration', `${this.name}: ${table} at the end is\n${found}\nIn the model:\n${expected}`);
  }

  /** Now that nothing is flushed any more, nodes must show all; a commit that was given up may land while they look. */
  async finish(): Promise<void> {
    const { ledger, judge } = this.#world;
    if (!this.#started) await this.start();
    if (!this.#started) return;
    let refreshed = ledger.state;
    let { tail } = ledger;
    for (let tries = 1; ; tries++) {
      try {
        refreshed = ledger.state;
        ({ tail } = ledger);
        await this.db.refresh();
        break;
      } catch (error) {
        this.#expect('refresh', error);
        if (tries >= 5) return judge.fail('liveness', `${this.name} cannot refresh although everything works again`);
      }
    }
    for (const name of tablesIn(this.#world.config)) {
      const rows = (await this.db.query(name).execute()) as Row[];
      const found = textOf(this.#modelled(name, rows));
      this.#reader.judge(`table ${name} at the end`, name, tail, found, (state) => {
        return textOf(sortedRows(name, rowsOf(state, name)));
      });
    }
    if (this.#versions !== undefined) await this.#checkVersion(this.#versions, refreshed);
    await this.#drops?.read();
    await this.#expiry?.read();
    await this.#articles?.read();
    await this.#live?.finish();
    this.#live?.end();
    await this.#snapshots.finish();
    const held = this.#snapshots.letGo();
    await this.#stop();
    const left = this.stopFailed ? undefined : held.find((id) => ledger.isPinned(id));
    if (left !== undefined) judge.fail('stop', `${this.name} left snapshot ${left} behind`);
  }
}
