/**
 * Collects garbage without clocks (docs/protocol.md): from one Block 0 and listings that begin after it.
 *
 * Invariants:
 * - Before anything is deleted, Block 0 says so: `collected` is the generation that is collected from. A pin of an earlier
 *   generation that is not in that Block 0 can never come to be.
 * - A block goes only if its birth is not after that generation and nothing that is kept reaches it: a merge under way can
 *   refer to what the generation reaches and to blocks of later birth, and to nothing else.
 * - A run collects from the state that was in force when it began: all later ones are left whole, however long it waits for loops.
 * - Loops of this instance read that state, a later one, or one that they have pinned before Block 0 announces anything.
 * - A staged run goes once the only slot whose commit may name it is at or under the log's floor, and so applied.
 * - If any kept state cannot be read, nothing is deleted.
 * - Nothing goes for its age by a time that is doubted.
 * - A kept state that cannot be read because it is kept no longer, since a snapshot has ended or another run has collected
 *   past it, is no damage: the run begins anew, from a later Block 0.
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

/** What `db.gc()` did, or would do. */
export interface GcReport {
  /** Blocks and blobs that were deleted; with `dryRun` 0. */
  readonly deletedCount: number;
  /** Everything that was deleted, or would be, by its kind. */
  readonly counts: Readonly<Record<GarbageKind, number>>;
  /** Bytes that this frees. */
  readonly freedBytes: number;
  /** Each object, what it is, and why nothing needs it. Only with `dryRun`, else empty. */
  readonly garbage: readonly Garbage[];
  /** Blobs that no row refers to and that are listed now, to be deleted by the next run. */
  readonly condemnedBlobs: number;
  /** Snapshots that were abandoned by their holders, and ended. */
  readonly expiredSnapshots: number;
  /** Objects that the store would not delete; the next run tries them again. */
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
  /** How long a run that is not told how long waits for loops of other nodes. */
  readonly othersGraceMs: number;
  /** Resolves once all loops of this instance, but those that begin on a state of at least `generation`, hold on to their states. */
  readonly holdLoops: (generation: number, signal: AbortSignal | undefined) => Promise<void>;
  /** Commits what gc writes to the system tables. */
  readonly append: (request: FlushRequest) => Promise<void>;
  readonly prepare: Omit<MemberOptions, 'slot'>;
}

/** How far clocks of nodes may differ before a snapshot is taken for abandoned too early. */
const clockMarginMs = 300_000;
/** So long after the last write a clock may be wrong. */
const maxLeadMs = 86_400_000;
/** After so long nobody waits for what a probe of the store would tell. */
const probeLifeMs = 86_400_000;
/** Roots of snapshots that are read at the same time. */
const readsAtOnce = 8;
/** Runs that are overtaken so often by others give up: those do the work. */
const maxAttempts = 8;

export class Collector {
  readonly #options: CollectorOptions;
  readonly #settings: CheckedGcOptions;
  readonly #signal: AbortSignal | undefined;
  readonly #store: GarbageStore;
  readonly #reader: Block0Reader;
  #storeNowMs: Promise<number> | undefined;
  /** The time that is doubted, and when the database was last written. */
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
        if (!(error instanceof CorruptionError) || attempt >= maxAttempts || !(await this.#isOvertaken(block0, from))) {
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

  /** A request that fails because the run was given up: why it was says more. */
  async #untilGivenUp<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (error instanceof StorageError) this.#signal?.throwIfAborted();
      throw error;
    }
  }

  /** Lets time pass where others may have begun a loop, and gives the Block 0 that was in force before. */
  async #waitForLoops(): Promise<Block0> {
    const { environment, register, node, othersGraceMs, holdLoops } = this.#options;
    const { block0 } = await register.refresh(this.#signal);
    if (this.#settings.dryRun) return block0;
    const hasOthers = block0.nodes.some((id) => id !== node.id);
    const { loopGraceMs = hasOthers ? othersGraceMs : 0 } = this.#settings;
    // Unless no merge has replaced anything that an earlier run has left.
    if (loopGraceMs > 0 && block0.collected !== block0.generation) {
      await sleep(environment, loopGraceMs, this.#signal);
      await register.refresh(this.#signal);
    }
    await holdLoops(block0.generation, this.#signal);
    return block0;
  }

  /** `from`: the state that is collected from, the present one or an earlier one. */
  async #collectFrom(block0: Block0, from: Block0): Promise<void> {
    const { environment, context, register } = this.#options;
    // Everything that is kept is read before anything goes.
    const pinned = await this.#readPinned(block0);
    const history = await this.#readHistory(block0);
    const reach = new ReachableBlocks(context, new Pacer(environment));
    for (const kept of [block0, ...pinned, ...history]) await reach.add(kept, this.#signal);
    // Of what all states since then reach, this one reaches what was born by then.
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

  /** Garbage that stays costs, and grows, where the store does not let it go. */
  #warnOfFailed(failed: GcReport['failed']): void {
    const [first] = failed;
    if (first === undefined) return;
    const others = failed.length === 1 ? '' : `, nor ${failed.length - 1} others`;
    this.#options.logger.warn(
      `Garbage stays: the store did not delete ${first.name} (${first.message})${others}. A later run tries again.`,
      { failed: failed.length },
    );
  }

  /** Whether something that `block0` keeps is kept no longer. */
  async #isOvertaken({ snapshots, history }: Block0, { generation }: Block0): Promise<boolean> {
    const { block0: present } = await this.#options.register.refresh(this.#signal);
    const pinned = new Set(present.snapshots.map(({ id }) => id));
    if (present.collected > generation || snapshots.some(({ id }) => !pinned.has(id))) return true;
    return history !== null && (present.history === null || present.history.floor > history.floor);
  }

  /**
   * Says in Block 0 that what `collected` does not need will go, and ends abandoned snapshots. `from`: the generation to collect
   * from.
   */
  async #announce(from: number): Promise<Block0> {
    const { register, clock } = this.#options;
    const { block0 } = register.current;
    if (this.#settings.dryRun) {
      this.#doubtOf(block0, clock.now());
      return block0;
    }
    const mayEnd = block0.snapshots.some(({ expiresMs }) => expiresMs + clockMarginMs <= clock.now());
    // No other clock than the store's says for how long something has been there.
    const now = mayEnd || block0.history !== null ? await this.#now() : clock.now();
    const passed = await this.#historyFloor(block0, now);
    const isPassed = block0.history !== null && passed > block0.history.floor;
    // A store that is not this machine may know better, and is asked where that is of use.
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
   * Since when the time is doubted; undefined where it is believed. A store that tells its own time is believed. Any other
   * time comes from this machine, and if it is far after the last write, either nobody has written, or the clock is wrong.
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

  /** Something stays that would go if the time were right. */
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

  /** Whether something may go for its age. If the time is doubted nothing may, but an age of 0 takes no clock. */
  #mayGo(isOld: boolean, ageMs: number): boolean {
    if (!isOld) return false;
    if (this.#doubted === undefined || ageMs === 0) return true;
    this.#warnOfDoubt();
    return false;
  }

  /** The first generation that is still within the window of the history. */
  async #historyFloor({ history }: Block0, now: number): Promise<number> {
    if (history === null) return 0;
    const before = now - history.windowMs;
    let floor = 0;
    for await (const { name, lastModifiedMs } of this.#store.list(folders.history)) {
      const generation = parseHistoryName(name);
      // Written when the generation was replaced, until when it was in force.
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

  /** The kept states of the history, ascending. */
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

  /** Roots without a pin, of generations that no pin can come to; and history before its floor. */
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

  /** What the log may still be read for stays, as the commits that name it do. */
  async #collectStaged(logFloor: number): Promise<void> {
    for await (const { name, sizeBytes } of this.#store.list(folders.staged)) {
      const slot = parseStagedName(name);
      if (slot === undefined || slot > logFloor) continue;
      const reason = `only the commit in slot ${slot} can name it, and the log's floor is ${logFloor}`;
      await this.#store.delete({ kind: 'staged', name, sizeBytes, reason });
    }
    await this.#store.finish();
  }

  /** What is left of probes, of gc and of the store, whose process has ended before it could remove them. */
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
        // What was listed as deleted in the oldest state that is kept is shown by none after it.
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

  /** Parts of uploads that nobody will complete. An upload that is aborted although it is under way only fails. */
  async #removeUploads(): Promise<void> {
    const { driver, prefix, logger } = this.#options;
    const { dryRun, graceMs } = this.#settings;
    if (dryRun || driver.removeUploads === undefined) return;
    // Where parts are told of, the store tells the time.
    const startedBeforeMs = async (): Promise<number> =>
      this.#mayGo(true, graceMs) ? (await this.#now()) - graceMs : Number.NEGATIVE_INFINITY;
    try {
      await driver.removeUploads(`${prefix}/`, { startedBeforeMs, ...defined({ signal: this.#signal }) });
    } catch (error) {
      // They cost a little and harm nothing.
      if (!(error instanceof StorageError) || error.reason !== 'forbidden') throw error;
      logger.warn(`Parts of uploads could not be looked for: ${error.message}`);
    }
  }

  /** The store's time, asked for once and only if it is needed. */
  #now(): Promise<number> {
    this.#storeNowMs ??= this.#askStore();
    return this.#storeNowMs;
  }

  async #askStore(): Promise<number> {
    const { environment, register, driver, prefix } = this.#options;
    const now = await this.#store.now(`${probePrefix}${newId(environment, 8)}`);
    if (now !== undefined) return now;
    // On a full disk there is room for Block 0 alone, in place of an old version of it.
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

// Trims the log: raises its floor over slots that are applied and have been there for a while, and deletes what lies at
// or under the floor. The retention serves slow readers, not safety, and goes by the store's own clock. What a pin reads stays.

export interface LogTrimOptions {
  readonly store: GarbageStore;
  readonly register: Block0Register;
  readonly dryRun: boolean;
  /** Whether a commit that was written then has been there for long enough. */
  readonly isOld: (writtenMs: number) => Promise<boolean>;
  readonly signal: AbortSignal | undefined;
}

type Slot = ListEntry & { readonly name: string; readonly slot: number };

/** Returns the floor. */
async function trimLog(block0: Block0, options: LogTrimOptions): Promise<number> {
  const { store, register, isOld, dryRun, signal } = options;
  const slots: Slot[] = [];
  for await (const entry of store.list(folders.commits)) {
    const slot = parseCommitName(entry.name);
    // What is applied later is for a later run.
    if (slot !== undefined && slot <= block0.appliedSeq) slots.push({ ...entry, slot });
  }
  if (slots.length === 0) return block0.logFloor;
  // Slots are trimmed in order: the first that is too young keeps all after it.
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
    // Read back: what is deleted next rests on a floor that is stored for certain.
    floor = (await register.refresh(signal)).block0.logFloor;
  }
  for (const { name, slot, sizeBytes } of slots) {
    if (slot > floor) continue;
    await store.delete({
      kind: 'commit',
      name,
      sizeBytes,
      reason: `applied, and at or under the log's floor ${floor}`,
    });
  }
  await store.finish();
  return floor;
}

/** The highest floor, up to one that is wanted, under which nothing lies that a pin reads. */
function floorBelowPins(wanted: number, { snapshots }: Block0): number {
  return Math.min(wanted, ...snapshots.flatMap(({ readsLog, appliedSeq }) => (readsLog ? [appliedSeq] : [])));
}
