/**
 * Collects garbage. Safety does not depend on clocks (docs/protocol.md): a run works from one Block 0, and from listings that
 * begin after it.
 *
 * Invariants:
 * - Before anything is deleted, Block 0 announces it: `collected` is the generation that the run collects from. A pin of an
 *   earlier generation that is not in that Block 0 can never come to be.
 * - A block is deleted only if its birth is not after that generation and no kept state reaches it. A merge under way can refer
 *   only to blocks that the generation reaches and to blocks of later birth.
 * - A run collects from the state in force when it began. All later states stay whole, however long the run waits for loops.
 * - Loops of this instance read that state, a later one, or one that they have pinned before Block 0 announces anything.
 * - A staged run is deleted once the last slot whose commit may name it is at or under the log floor, and so applied.
 * - If any kept state cannot be read, nothing is deleted.
 * - Nothing is deleted for its age by a time that is doubted.
 * - A kept state may be unreadable because it is no longer kept: a snapshot has ended, or another run has collected past it.
 *   That is no damage. The run begins again, from a later Block 0.
 */
import { newAbortController } from '../../base/abort.ts';
import { sleep } from '../../base/env.ts';
import type { Environment } from '../../base/env.ts';
import { CorruptionError, StorageError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import type { Logger } from '../../base/logger.ts';
import { defined } from '../../base/options.ts';
import { Pacer } from '../../base/pacer.ts';
import { makeMember } from '../../batch/make-member.ts';
import type { MemberOptions } from '../../batch/make-member.ts';
import { deletedBlobsSchema } from '../../blob/blob-tables.ts';
import { Block0Reader } from '../../block0/block0-reader.ts';
import { changeableOf } from '../../block0/block0-register.ts';
import type { Block0Change, Block0Register } from '../../block0/block0-register.ts';
import type { NodeId } from '../../block0/node-identity.ts';
import { isListed } from '../../catalog/blob-lists.ts';
import type { Block0 } from '../../format/block0.ts';
import {
  block0Name,
  folders,
  historyName,
  parseBlockName,
  parseHistoryName,
  parseRootName,
  parseStagedName,
  probePrefix,
  rootName,
  parseCommitName,
} from '../../format/object-names.ts';
import type { FlushRequest } from '../../log/log-writer.ts';
import type { StorageDriver, ListEntry } from '../../storage/contract/driver.ts';
import { leadText } from '../../storage/contract/store-clock.ts';
import type { StoreClock } from '../../storage/contract/store-clock.ts';
import { View } from '../../view/view.ts';
import type { ViewContext } from '../../view/view.ts';
import { blobOperations, collectBlobs } from './gc-blobs.ts';
import type { CheckedGcOptions } from './gc-options.ts';
import { GarbageStore, ReachableBlocks } from './gc-store.ts';
import type { Garbage, GarbageKind } from './gc-store.ts';

/** The result of `db.gc()`; with `dryRun`, the result that a run would have. */
export interface GcReport {
  /** Number of blocks and blobs deleted; with `dryRun` 0. */
  readonly deletedCount: number;
  /** Number of objects of each kind that were deleted, or would be. */
  readonly counts: Readonly<Record<GarbageKind, number>>;
  /** Size of these objects, in bytes. */
  readonly freedBytes: number;
  /** Each object that would be deleted, with its kind and the reason. Only with `dryRun`, else empty. */
  readonly garbage: readonly Garbage[];
  /** Number of blobs that no row refers to and that this run condemned, for the next run to delete. */
  readonly condemnedBlobs: number;
  /** Number of snapshots that this run ended because their holders had abandoned them. */
  readonly expiredSnapshots: number;
  /** Objects that the store did not delete. The next run tries again. */
  readonly failed: readonly { readonly name: string; readonly message: string }[];
}

export interface CollectorOptions {
  readonly environment: Environment;
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly logger: Logger;
  readonly register: Block0Register;
  readonly clock: StoreClock;
  readonly context: ViewContext;
  /** The node that collects. */
  readonly node: NodeId;
  /** Whether instances that are in no list of nodes write the database. */
  readonly seesEphemeral: () => boolean;
  /** How long a run without option `loopGraceMs` waits for loops of other nodes. */
  readonly othersGraceMs: number;
  /** Resolves once all loops of this instance have pinned their states, except those on a state of at least `generation`. */
  readonly holdLoops: (generation: number, signal: AbortSignal | undefined) => Promise<void>;
  /** Commits the rows that gc writes to the system tables. */
  readonly append: (request: FlushRequest) => Promise<void>;
  readonly prepare: Omit<MemberOptions, 'slot'>;
}

/** How far the clocks of nodes may differ without a snapshot being taken for abandoned too early. */
const clockMarginMs = 300_000;
/** A clock that is further than this after the last write may be wrong. */
const maxLeadMs = 86_400_000;
/** The age after which no process can still need its probe of the store. */
const probeLifeMs = 86_400_000;
/** Roots of snapshots that are read at the same time. */
const readsAtOnce = 8;
/** Attempts before a run gives up because other runs collect past it: they do the work. */
const maxAttempts = 8;

export class Collector {
  readonly #options: CollectorOptions;
  readonly #settings: CheckedGcOptions;
  readonly #signal: AbortSignal | undefined;
  readonly #store: GarbageStore;
  readonly #reader: Block0Reader;
  #storeNowMs: Promise<number> | undefined;
  /** The doubted time, and the time of the last write of the database. Undefined where the time is believed. */
  #doubted: { readonly nowMs: number; readonly lastMs: number } | undefined;
  #hasWarned = false;
  #expired = 0;
  #condemned = 0;

  constructor(options: CollectorOptions, settings: CheckedGcOptions) {
    this.#options = options;
    this.#settings = settings;
    this.#signal = settings.signal;
    this.#reader = new Block0Reader(options.driver, options.prefix);
    this.#store = new GarbageStore({ ...options, dryRun: settings.dryRun, signal: settings.signal });
  }

  async run(): Promise<GcReport> {
    const { environment, logger } = this.#options;
    const { dryRun } = this.#settings;
    const startedMs = environment.monotonicMs();
    for (let attempt = 1; ; attempt++) {
      const from = await this.#untilGivenUp(this.#waitForLoops());
      const block0 = await this.#untilGivenUp(this.#announce(from.generation));
      try {
        await this.#untilGivenUp(this.#collectFrom(block0, from));
        break;
      } catch (error) {
        if (!(error instanceof CorruptionError) || attempt >= maxAttempts || !(await this.#isOutdated(block0, from))) {
          throw error;
        }
        this.#store.forget();
      }
    }
    const report = this.#report();
    const durationMs = Math.round(environment.monotonicMs() - startedMs);
    const { deletedCount, freedBytes } = report;
    if (dryRun) logger.debug('Looked for garbage', { freedBytes, durationMs });
    else logger.info(`Collected garbage: ${deletedCount} blocks and blobs deleted`, { freedBytes, durationMs });
    this.#warnOfFailed(report.failed);
    return report;
  }

  /** Throws the reason of the abort in place of the error of a request that failed because of it. */
  async #untilGivenUp<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (error instanceof StorageError) this.#signal?.throwIfAborted();
      throw error;
    }
  }

  /** Waits where other instances may have begun a loop. Returns the Block 0 that was in force before. */
  async #waitForLoops(): Promise<Block0> {
    const { environment, register, node, othersGraceMs, seesEphemeral, holdLoops } = this.#options;
    const { block0 } = await register.refresh(this.#signal);
    if (this.#settings.dryRun) return block0;
    const hasOthers = seesEphemeral() || block0.nodes.some((id) => id !== node.id);
    const { loopGraceMs = hasOthers ? othersGraceMs : 0 } = this.#settings;
    // No need to wait where no merge has replaced anything since an earlier run.
    if (loopGraceMs > 0 && block0.collected !== block0.generation) {
      await sleep(environment, loopGraceMs, this.#signal);
      await register.refresh(this.#signal);
    }
    await holdLoops(block0.generation, this.#signal);
    return block0;
  }

  /** `from`: the state to collect from, the present one or an earlier one. */
  async #collectFrom(block0: Block0, from: Block0): Promise<void> {
    const { environment, context, register } = this.#options;
    // All kept states are read before anything is deleted.
    const pinned = await this.#readPinned(block0);
    const history = await this.#readHistory(block0);
    const reach = new ReachableBlocks(context, new Pacer(environment));
    for (const kept of [block0, ...pinned, ...history]) await reach.add(kept, this.#signal);
    // Blocks that later states reach were either born after this state, or this state reaches them.
    if (from.generation !== block0.generation) await reach.add(from, this.#signal);
    await this.#collectBlocks(from, reach.names);
    await this.#collectRoots(block0);
    await this.#collectProbes();
    await this.#collectBlobs(from, pinned, history);
    await this.#removeUploads();
    const { logRetentionMs, dryRun } = this.#settings;
    const isOld = async (writtenMs: number): Promise<boolean> =>
      this.#mayGo(writtenMs <= (await this.#now()) - logRetentionMs, logRetentionMs);
    const log = { store: this.#store, register, isOld, dryRun, signal: this.#signal };
    await this.#collectStaged(await trimLog(block0, log));
  }

  /** Warns of objects that the store did not delete: they cost money, and their number grows. */
  #warnOfFailed(failed: GcReport['failed']): void {
    const [first] = failed;
    if (first === undefined) return;
    const others = failed.length === 1 ? '' : `, nor ${failed.length - 1} others`;
    this.#options.logger.warn(
      `Garbage stays: the store did not delete ${first.name} (${first.message})${others}. A later run tries again.`,
      { failed: failed.length },
    );
  }

  /** Whether a state that `block0` keeps is no longer kept. */
  async #isOutdated({ snapshots, history }: Block0, { generation }: Block0): Promise<boolean> {
    const { block0: present } = await this.#options.register.refresh(this.#signal);
    const pinned = new Set(present.snapshots.map(({ id }) => id));
    if (present.collected > generation || snapshots.some(({ id }) => !pinned.has(id))) return true;
    return history !== null && (present.history === null || present.history.floor > history.floor);
  }

  /**
   * Announces in Block 0 the generation to collect from, `from`, and ends abandoned snapshots.
   */
  async #announce(from: number): Promise<Block0> {
    const { register, clock } = this.#options;
    const { block0 } = register.current;
    if (this.#settings.dryRun) {
      this.#doubtOf(block0, clock.now());
      return block0;
    }
    const mayEnd = block0.snapshots.some(({ expiresMs }) => expiresMs + clockMarginMs <= clock.now());
    // Only the clock of the store gives the age of an object.
    const now = mayEnd || block0.history !== null ? await this.#now() : clock.now();
    const passed = await this.#historyFloor(block0, now);
    const isPassed = block0.history !== null && passed > block0.history.floor;
    // A store on another machine may know better: where the time is doubted, the store is asked.
    const seems = this.#doubtOf(block0, now);
    const doubt = seems === undefined ? undefined : this.#doubtOf(block0, await this.#now());
    if (mayEnd || isPassed) this.#warnOfDoubt();
    const floor = doubt === undefined ? passed : 0;
    let expired = 0;
    const announce = (present: Block0): Block0Change | undefined => {
      const snapshots = present.snapshots.filter(
        ({ expiresMs }) => doubt !== undefined || expiresMs + clockMarginMs > now,
      );
      expired = present.snapshots.length - snapshots.length;
      const history = present.history && { ...present.history, floor: Math.max(present.history.floor, floor) };
      const isKept = present.history?.floor === history?.floor && present.doubtedMs === doubt;
      const collected = Math.max(present.collected, from);
      const isSaid = present.collected === collected && isKept;
      if (isSaid && expired === 0) return undefined;
      return { ...changeableOf(present), collected, history, snapshots };
    };
    const announced = await register.update((present) => withDoubt(announce(present), doubt), this.#signal);
    this.#expired += expired;
    return announced;
  }

  /**
   * Since when the time is doubted; undefined where it is believed. The time of a store with its own clock is believed.
   * Any other time comes from this machine. If it is far after the last write, either nobody has written, or the clock is wrong.
   */
  #doubtOf({ doubtedMs, changedMs, writer }: Block0, now: number): number | undefined {
    this.#doubted = undefined;
    if (this.#settings.trustClock || this.#options.clock.isOfStore) return undefined;
    const isDoubted = doubtedMs !== undefined && now >= doubtedMs - clockMarginMs;
    if (isDoubted && now - doubtedMs >= maxLeadMs) return undefined;
    const last = Math.max(changedMs, writer.atMs);
    if (!isDoubted && now - last <= maxLeadMs) return undefined;
    this.#doubted = { nowMs: now, lastMs: last };
    return isDoubted ? doubtedMs : Math.floor(now);
  }

  /** Warns, once, that something stays that would be deleted if the time were believed. */
  #warnOfDoubt(): void {
    if (this.#doubted === undefined || this.#hasWarned) return;
    this.#hasWarned = true;
    const { nowMs, lastMs } = this.#doubted;
    this.#options.logger.warn(
      `The clock is ${leadText(nowMs - lastMs)} the last write of the database, so that it may be wrong: no snapshot and no ` +
        'history ends in this run, and no commit and no upload goes for its age. They do once the clock has said so for a day, ' +
        'or with option trustClock (--trust-clock).',
      { nowMs, lastWriteMs: lastMs },
    );
  }

  /** Whether an object may be deleted for its age. If the time is doubted none may, except that an age of 0 needs no clock. */
  #mayGo(isOld: boolean, ageMs: number): boolean {
    if (!isOld) return false;
    if (this.#doubted === undefined || ageMs === 0) return true;
    this.#warnOfDoubt();
    return false;
  }

  /** Finds the first generation that is still within the window of the history. */
  async #historyFloor({ history }: Block0, now: number): Promise<number> {
    if (history === null) return 0;
    const before = now - history.windowMs;
    let floor = 0;
    for await (const { name, lastModifiedMs } of this.#store.list(folders.history)) {
      const generation = parseHistoryName(name);
      // The object was written when the generation was replaced: the generation was in force until then.
      if (generation !== undefined && lastModifiedMs < before) floor = Math.max(floor, generation + 1);
    }
    return floor;
  }

  async #readKept(name: string): Promise<Block0> {
    const kept = await this.#reader.readKept(name, defined({ signal: this.#signal }));
    if (kept === undefined) {
      throw new CorruptionError(name, 'The root of a state that must be kept is missing, so nothing was deleted');
    }
    return kept;
  }

  async #readPinned({ snapshots }: Block0): Promise<Block0[]> {
    const kept: Block0[] = [];
    for (let at = 0; at < snapshots.length; at += readsAtOnce) {
      const some = snapshots.slice(at, at + readsAtOnce);
      kept.push(...(await Promise.all(some.map(({ id }) => this.#readKept(rootName(id))))));
    }
    return kept;
  }

  /** Reads the kept states of the history, ascending. */
  async #readHistory({ history, generation: present }: Block0): Promise<Block0[]> {
    const kept: Block0[] = [];
    if (history === null) return kept;
    for await (const { name } of this.#store.list(folders.history)) {
      const generation = parseHistoryName(name);
      if (generation === undefined || generation < history.floor || generation >= present) continue;
      kept.push(await this.#readKept(historyName(generation)));
    }
    if (kept.length < present - history.floor) {
      throw new CorruptionError(folders.history, 'A state of the history is missing, so nothing was deleted');
    }
    return kept;
  }

  async #collectBlocks({ generation }: Block0, reached: ReadonlyMap<string, number>): Promise<void> {
    const reason = `no kept state reaches it, and no merge after generation ${generation} can`;
    for (const folder of [folders.data, folders.indexes]) {
      for await (const { name, sizeBytes } of this.#store.list(folder)) {
        const birth = parseBlockName(name)?.birth;
        if (birth === undefined || birth > generation || reached.has(name)) continue;
        await this.#store.delete({ kind: 'block', name, sizeBytes, reason });
      }
    }
    await this.#store.finish();
  }

  /** Deletes roots without a pin, of generations that can no longer be pinned, and history before its floor. */
  async #collectRoots({ collected, history, snapshots }: Block0): Promise<void> {
    const pinned = new Set(snapshots.map(({ id }) => rootName(id)));
    const floor = Math.min(collected, history?.floor ?? collected);
    for await (const { name, sizeBytes } of this.#store.list(folders.roots)) {
      const generation = parseRootName(name)?.generation;
      if (generation === undefined || generation >= floor || pinned.has(name)) continue;
      await this.#store.delete({ kind: 'root', name, sizeBytes, reason: 'its snapshot has ended' });
    }
    for await (const { name, sizeBytes } of this.#store.list(folders.history)) {
      const generation = parseHistoryName(name);
      if (generation === undefined || generation >= (history === null ? collected : history.floor)) continue;
      await this.#store.delete({
        kind: 'history',
        name,
        sizeBytes,
        reason: 'it is older than the history that is kept',
      });
    }
    await this.#store.finish();
  }

  /** Deletes staged runs for slots at or under the floor. Others stay, as do the commits that may name them. */
  async #collectStaged(logFloor: number): Promise<void> {
    for await (const { name, sizeBytes } of this.#store.list(folders.staged)) {
      const slot = parseStagedName(name);
      if (slot === undefined || slot > logFloor) continue;
      const reason = `only the commit in slot ${slot} can name it, and the log's floor is ${logFloor}`;
      await this.#store.delete({ kind: 'staged', name, sizeBytes, reason });
    }
    await this.#store.finish();
  }

  /** Deletes probes of gc and of the store whose process ended before it could remove them. */
  async #collectProbes(): Promise<void> {
    for await (const { name, sizeBytes, lastModifiedMs } of this.#store.list(probePrefix)) {
      if (!this.#mayGo(lastModifiedMs <= (await this.#now()) - probeLifeMs, probeLifeMs)) continue;
      await this.#store.delete({
        kind: 'probe',
        name,
        sizeBytes,
        reason: 'the process that probed the store has long ended',
      });
    }
    await this.#store.finish();
  }

  async #collectBlobs(block0: Block0, pinned: readonly Block0[], history: readonly Block0[]): Promise<void> {
    const { context, environment, append, prepare } = this.#options;
    const { dryRun, graceMs } = this.#settings;
    const signal = this.#signal;
    const snapshots = pinned.map((kept) => View.ofBlock0(context, kept));
    const oldest = history[0] && View.ofBlock0(context, history[0]);
    const verdicts = await collectBlobs({
      store: this.#store,
      view: View.ofBlock0(context, block0),
      isKept: async (blob) => {
        for (const view of snapshots) if (await isListed(view, '_blobs', blob)) return true;
        // A blob that the oldest state of the history lists as deleted is shown by no later state.
        return oldest !== undefined && !(await isListed(oldest, '_deleted_blobs', blob));
      },
      isOld: async (writtenMs) => this.#mayGo(writtenMs < (await this.#now()) - graceMs, graceMs),
      signal,
    });
    this.#condemned = verdicts.condemned.length;
    if (dryRun || verdicts.deleted.length + verdicts.condemned.length === 0) return;
    await append({
      signal: signal ?? newAbortController().signal,
      sizeBytes: 64 * (verdicts.deleted.length + verdicts.condemned.length),
      prepare: async (view) => {
        const { operations, condemned } = await blobOperations(verdicts, view, environment);
        this.#condemned = condemned;
        const state = view.table(deletedBlobsSchema.name) ?? view.emptyTable(deletedBlobsSchema);
        const table = { state, isWhole: true, isSole: false, active: undefined, checked: [] };
        return makeMember(operations, new Map(), () => table, {
          ...prepare,
          slot: view.tail + 1,
        });
      },
    });
  }

  /** Removes the parts of uploads that nobody will complete. If it aborts an upload under way, that upload fails, and no more. */
  async #removeUploads(): Promise<void> {
    const { driver, prefix, logger } = this.#options;
    const { dryRun, graceMs } = this.#settings;
    if (dryRun || driver.removeUploads === undefined) return;
    // A store that lists parts has its own clock.
    const startedBeforeMs = async (): Promise<number> =>
      this.#mayGo(true, graceMs) ? (await this.#now()) - graceMs : Number.NEGATIVE_INFINITY;
    try {
      await driver.removeUploads(`${prefix}/`, { startedBeforeMs, ...defined({ signal: this.#signal }) });
    } catch (error) {
      // Such parts cost a little and harm nothing.
      if (!(error instanceof StorageError) || error.reason !== 'forbidden') throw error;
      logger.warn(`Parts of uploads could not be looked for: ${error.message}`);
    }
  }

  /** The time of the store, asked for at most once, when it is first needed. */
  #now(): Promise<number> {
    this.#storeNowMs ??= this.#askStore();
    return this.#storeNowMs;
  }

  async #askStore(): Promise<number> {
    const { environment, register, driver, prefix } = this.#options;
    const now = await this.#store.now(`${probePrefix}${newId(environment, 8)}`);
    if (now !== undefined) return now;
    // On a full disk there is only room for a new Block 0 in place of the old one.
    await register.replace(register.current, changeableOf(register.current.block0), this.#signal);
    const found = await driver.get(`${prefix}/${block0Name}`, {
      range: { start: 0, end: 0 },
      ...defined({ signal: this.#signal }),
    });
    return found.status === 'found' ? found.lastModifiedMs : 0;
  }

  #report(): GcReport {
    const { deleted, failed } = this.#store;
    const counts: Record<GarbageKind, number> = {
      block: 0,
      blob: 0,
      staged: 0,
      commit: 0,
      root: 0,
      history: 0,
      probe: 0,
    };
    let freedBytes = 0;
    for (const { kind, sizeBytes } of deleted) {
      counts[kind]++;
      freedBytes += sizeBytes;
    }
    const { dryRun } = this.#settings;
    return {
      deletedCount: dryRun ? 0 : counts.block + counts.blob,
      counts,
      freedBytes,
      garbage: dryRun ? deleted : [],
      condemnedBlobs: this.#condemned,
      expiredSnapshots: this.#expired,
      failed,
    };
  }
}

function withDoubt(change: Block0Change | undefined, doubt: number | undefined): Block0Change | undefined {
  if (change === undefined) return undefined;
  const { doubtedMs: _, ...rest } = change;
  return doubt === undefined ? rest : { ...rest, doubtedMs: doubt };
}

export interface LogTrimOptions {
  readonly store: GarbageStore;
  readonly register: Block0Register;
  readonly dryRun: boolean;
  /** Whether a commit written at that time is older than the retention. */
  readonly isOld: (writtenMs: number) => Promise<boolean>;
  readonly signal: AbortSignal | undefined;
}

type Slot = ListEntry & { readonly name: string; readonly slot: number };

/**
 * Trims the log: raises its floor over slots that are applied and older than the retention, and deletes the commits under the
 * floor. The commit in the slot at the floor stays: it refuses a put that comes late, right before the first slot that counts. The
 * retention serves slow readers, not safety, and is measured by the store's own clock. Commits that a pin reads stay. Returns the floor.
 */
async function trimLog(block0: Block0, options: LogTrimOptions): Promise<number> {
  const { store, register, isOld, dryRun, signal } = options;
  const slots: Slot[] = [];
  for await (const entry of store.list(folders.commits)) {
    const slot = parseCommitName(entry.name);
    // Commits that are applied later are left to a later run.
    if (slot !== undefined && slot <= block0.appliedSeq) slots.push({ ...entry, slot });
  }
  if (slots.every(({ slot }) => slot === block0.logFloor)) return block0.logFloor;
  // Slots are trimmed in order: the first slot that is too young keeps all slots after it.
  let wanted = block0.appliedSeq;
  for (const { slot, lastModifiedMs } of slots) {
    if (slot <= block0.logFloor || (await isOld(lastModifiedMs))) continue;
    wanted = slot - 1;
    break;
  }
  let floor = floorBelowPins(wanted, block0);
  if (!dryRun) {
    await register.update((present) => {
      const logFloor = floorBelowPins(wanted, present);
      return present.logFloor >= logFloor ? undefined : { ...changeableOf(present), logFloor };
    }, signal);
    // Read back, so that only commits under a floor that is stored for certain are deleted.
    floor = (await register.refresh(signal)).block0.logFloor;
  }
  for (const { name, slot, sizeBytes } of slots) {
    if (slot >= floor) continue;
    await store.delete({
      kind: 'commit',
      name,
      sizeBytes,
      reason: `applied, and under the log's floor ${floor}`,
    });
  }
  await store.finish();
  return floor;
}

/** The highest floor up to `wanted` under which no pin reads a commit. */
function floorBelowPins(wanted: number, { snapshots }: Block0): number {
  return Math.min(wanted, ...snapshots.flatMap(({ readsLog, appliedSeq }) => (readsLog ? [appliedSeq] : [])));
}
