/**
 * Merges commits into blocks: reads a view of Block 0 (generation G) and the commits after it, writes the blocks of new
 * trees with birth G + 1, and replaces Block 0 if it is still the one that was read (docs/protocol.md, "Merge").
 *
 * Invariants:
 * - Every block that a merge writes is of birth G + 1 and referred to only by the Block 0 that follows generation G.
 * - If another generation came in between, the work is dropped: blocks are never carried over, and never deleted. Only blocks that
 *   were written ahead have a later birth, and may be referred to up to that generation.
 */
import type { Environment } from '../base/env.ts';
import { messageOf } from '../base/brands.ts';
import { NotSupportedError, ReadOnlyError } from '../base/errors.ts';
import { Later } from '../base/later.ts';
import type { Logger } from '../base/logger.ts';
import { defined } from '../base/options.ts';
import { merges } from '../base/tracing.ts';
import type { TracedMerge } from '../base/tracing.ts';
import type { VersionedBlock0 } from '../block0/block0-reader.ts';
import { changeableOf } from '../block0/block0-register.ts';
import type { Block0Change, Block0Register } from '../block0/block0-register.ts';
import { withNodes } from '../block0/node-identity.ts';
import type { NodeList } from '../block0/node-identity.ts';
import type { BlockCache } from '../cache/block-cache.ts';
import { encodeBlock0 } from '../format/block0.ts';
import type { AppliedCommit, Block0, StoredHistory } from '../format/block0.ts';
import { historyName } from '../format/object-names.ts';
import { dropsAfter } from '../format/stored-table.ts';
import type { EngineEvents } from '../log/engine-events.ts';
import type { LogFollower } from '../log/log-follower.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import { putRepeatedly } from '../storage/contract/retries.ts';
import { leadText, wrongMs } from '../storage/contract/store-clock.ts';
import type { StoreClock } from '../storage/contract/store-clock.ts';
import { BlockGone } from '../tree/block-source.ts';
import { dropsOf } from '../view/table-drops.ts';
import type { LoggedCommit, View } from '../view/view.ts';
import type { InlinedRoots } from './inlined-roots.ts';
import type { MergeStats } from './merge-policy.ts';
import type { TableMergeContext } from './growing-tree.ts';
import type { TreeBuild } from './merge-table.ts';
import type { WrittenAhead } from './new-trees.ts';

const writing = new Later('merging', () => import('./new-trees.ts'));

/** Block 0 names this many of the commits that were applied last. */
export const appliedListLength = 128;
/** Attempts at replacing a Block 0 in which only bookkeeping changes. */
const maxReplacements = 16;

export interface MergerOptions {
  readonly environment: Environment;
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly register: Block0Register;
  readonly follower: LogFollower;
  readonly cache: BlockCache;
  readonly logger: Logger;
  readonly clock: StoreClock;
  /** Whether this instance may write: if not, it does not merge. */
  readonly isReplica: boolean;
  readonly membership: MergeMembers;
  readonly events: EngineEvents;
  readonly blockSizeBytes: number;
  /** Memory that the changes of an index may take before they are applied, in bytes. */
  readonly indexBufferBytes: number;
  /** The functions that are registered here. */
  readonly functions: TableMergeContext['functions'];
}

/** The nodes that take turns. */
export interface MergeMembers {
  /** Returns the list of nodes that share write authority after a merge by this node. */
  afterMerge(present: Block0): NodeList;
}

/** Merges that failed one after the other. */
export interface FailingMerges {
  /** When the first one failed, by the monotonic clock. */
  readonly sinceMs: number;
  readonly count: number;
  /** Why the last one failed. */
  readonly message: string;
  /** Whether this process cannot make such a merge at all, so that trying again does not help. */
  readonly isLasting: boolean;
  /** The last slot that was merged then. */
  readonly appliedSeq: number;
}

export class Merger {
  readonly #options: MergerOptions;
  #running: Promise<boolean> | undefined;
  /** Whether the running work is a {@link rebuild}, not a merge. */
  #isRebuilding = false;
  /** The merges that failed since the last one that did not, by this node or another. */
  #failing: FailingMerges | undefined;
  readonly counters: MergeStats = { merges: 0, lostMerges: 0, blocksWritten: 0, splits: 0, joins: 0, rootSplits: 0 };

  constructor(options: MergerOptions) {
    this.#options = options;
  }

  /**
   * Merges the pending commits of the present view. False if another node was faster, or if the outcome is unknown. Rejects with
   * `ReadOnlyError` on a replica.
   */
  async merge(): Promise<boolean> {
    const { isReplica, events, follower } = this.#options;
    if (isReplica) throw new ReadOnlyError('Merging');
    try {
      return await this.#shared();
    } finally {
      events.looked.emit(follower.view);
    }
  }

  /** The merge that is under way, or else a new one. */
  #shared(): Promise<boolean> {
    // It applies no commit, and its outcome concerns only its caller.
    if (this.#isRebuilding) return this.idle().then(() => this.#shared());
    this.#running ??= this.#noting(this.#merge()).finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #noting(merging: Promise<boolean>): Promise<boolean> {
    try {
      const done = await merging;
      this.#failing = undefined;
      return done;
    } catch (error) {
      const { environment, follower } = this.#options;
      const { sinceMs = environment.monotonicMs(), count = 0 } = this.failingSince(follower.view) ?? {};
      const { appliedSeq } = follower.view.block0;
      const isLasting = error instanceof NotSupportedError;
      this.#failing = { sinceMs, count: count + 1, message: messageOf(error), isLasting, appliedSeq };
      throw error;
    }
  }

  /** Returns the merges that failed in a row; undefined once a merge has succeeded, by this node or, as `view` shows, by another. */
  failingSince({ block0 }: View): FailingMerges | undefined {
    return block0.appliedSeq > (this.#failing?.appliedSeq ?? 0) ? undefined : this.#failing;
  }

  /** Resolves once no merge is under way, even if it failed. */
  async idle(): Promise<void> {
    await this.#running?.catch(() => undefined);
  }

  /**
   * Replaces trees by others that hold the same rows, in a generation of its own: no commit is applied by it. This node
   * merges nothing meanwhile. False as for {@link merge}: then `build` must be called again, with the newer Block 0.
   * `rests`: most of the time is left to other work, if there is any.
   */
  async rebuild(build: TreeBuild, rests = false): Promise<boolean> {
    while (this.#running !== undefined) await this.idle();
    this.#isRebuilding = true;
    const rebuilding = this.#write(this.#options.follower.view, [], build, rests).finally(() => {
      this.#isRebuilding = false;
      this.#running = undefined;
    });
    this.#running = rebuilding;
    return rebuilding;
  }

  /**
   * Writes trees ahead, for one of the next `generations` (docs/protocol.md, "Written ahead"). This node goes on merging meanwhile.
   * Undefined if a block that the work reads was collected. `build` must make everything from the given Block 0, and store the roots.
   */
  async ahead<T>(
    block0: Block0,
    generations: number,
    build: (context: TableMergeContext) => Promise<T>,
  ): Promise<WrittenAhead<T> | undefined> {
    const { writeAhead } = writing.loaded ?? (await writing.load());
    try {
      return await writeAhead(block0, generations, build, { ...this.#options, counters: this.counters, rests: true });
    } catch (error) {
      if (!(error instanceof BlockGone) || !(await this.#isOutdated(block0))) throw error;
      return undefined;
    }
  }

  async #merge(): Promise<boolean> {
    const { follower, environment, logger } = this.#options;
    const { view } = follower;
    if (view.pending.length === 0) return true;
    const startedMs = environment.monotonicMs();
    const { mergeTables } = writing.loaded ?? (await writing.load());
    const write = (): Promise<boolean> => this.#write(view, view.pending, (_, context) => mergeTables(view, context));
    const { prefix: database } = this.#options;
    const { pending, tail: position } = view;
    const payloadOf = (began: number): TracedMerge => {
      return { database, startedMs: began, commits: pending.length, position };
    };
    const done = await merges.run(payloadOf, write);
    if (done) {
      this.counters.merges++;
      const milliseconds = Math.round(environment.monotonicMs() - startedMs);
      logger.debug(`Merged ${view.pending.length} commits in ${milliseconds} ms`, { appliedSeq: view.tail });
    }
    return done;
  }

  /** Replaces the Block 0 of a view by one with new trees, in which `applied` are applied: the commits that follow the present one's. */
  async #write({ block0 }: View, applied: readonly LoggedCommit[], build: TreeBuild, rests = false): Promise<boolean> {
    const { writeTrees } = writing.loaded ?? (await writing.load());
    const { follower, register } = this.#options;
    const { counters } = this;
    if (register.current.block0.generation !== block0.generation) {
      // Somebody merged just now; this view has not caught up.
      await follower.refresh();
      return false;
    }
    const done = await this.#unlessOutdated(block0, async () => {
      const roots = await writeTrees(block0, build, { ...this.#options, counters, rests });
      return this.#replace(block0, applied, roots);
    });
    if (done) {
      // The register holds the Block 0 that was just written, or a newer one: nothing has to be read.
      follower.advance(register.current, []);
    } else {
      this.counters.lostMerges++;
      await follower.refresh();
    }
    return done;
  }

  /** Returns false if a block that the work reads was collected, since another node has merged meanwhile: the work is lost. */
  async #unlessOutdated(block0: Block0, work: () => Promise<boolean>): Promise<boolean> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof BlockGone) || !(await this.#isOutdated(block0))) throw error;
      return false;
    }
  }

  /** Whether the store has a newer generation than a Block 0. */
  async #isOutdated({ generation }: Block0): Promise<boolean> {
    const { block0: present } = await this.#options.register.refresh();
    return present.generation !== generation;
  }

  async #replace(
    { generation }: Block0,
    applied: readonly LoggedCommit[],
    { tables, inlined, catalogue, migrationsAfter }: InlinedRoots,
  ): Promise<boolean> {
    const { register, membership } = this.#options;
    const added = applied.map(
      ({ slot: seq, commit, givenUp }): AppliedCommit => ({ seq, id: commit.commitId, ...(givenUp && { givenUp }) }),
    );
    const drops = applied.flatMap(({ slot, commit }) =>
      commit.members.flatMap((member) => dropsOf(member, { ...commit, slot })),
    );
    for (let attempt = 0; attempt < maxReplacements; attempt++) {
      const present: VersionedBlock0 = register.current;
      if (present.block0.generation !== generation) return false;
      const { block0 } = present;
      await this.#keep(block0);
      const change: Block0Change = {
        ...changeableOf(block0),
        generation: generation + 1,
        ...(await generationTime(block0, this.#options)),
        appliedSeq: added.at(-1)?.seq ?? block0.appliedSeq,
        applied: [...block0.applied, ...added].slice(-appliedListLength),
        tables,
        inlined,
        ...defined({ catalogue }),
        migrations: migrationsAfter(block0.migrations),
        ...defined({ dropped: dropsAfter(block0.dropped, drops, tables, block0.tables) }),
      };
      if (await register.replace(present, withNodes(change, membership.afterMerge(block0)))) return true;
    }
    return false;
  }

  /**
   * Stores a Block 0 as history, before it is replaced: so no generation is ever missing. All nodes store the same state, and the
   * store's time of the last put is the end of the state.
   */
  async #keep(block0: Block0): Promise<void> {
    if (block0.history === null) return;
    const { environment, driver, prefix } = this.#options;
    const bytes = encodeBlock0({ ...block0, snapshots: [] });
    await putRepeatedly(environment, driver, `${prefix}/${historyName(block0.generation)}`, bytes, { if: 'any' });
  }
}

export interface GenerationTimeOptions {
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly clock: StoreClock;
  readonly logger: Logger;
}

/** Places at which times went back that are remembered. */
const maxSetBack = 64;

/**
 * Returns the time at which the generation after a Block 0's begins, and the history that records it. The kept state is stored.
 *
 * Times of generations ascend, so that the state of a time can be searched for. A clock that was far ahead once would make every
 * later generation begin in the future, and the present state would not be found: so where the store's own clock says that the time of
 * the last generation is wrong, times go back, and Block 0 notes where.
 */
async function generationTime(
  block0: Block0,
  options: GenerationTimeOptions,
): Promise<Pick<Block0, 'changedMs' | 'history'>> {
  const { clock, logger } = options;
  const { changedMs: before, history, generation } = block0;
  const now = Math.floor(clock.now());
  if (now >= before - wrongMs) return { changedMs: Math.max(now, before), history };
  const sure = await storesTime(block0, options);
  if (sure === undefined || sure >= before - wrongMs) {
    logger.warn(`The clock of this machine is ${leadText(now - before)} the last merge. Set it right.`, {
      now,
      before,
    });
    return { changedMs: before, history };
  }
  const lead = leadText(before - sure);
  logger.warn(`The last merge was by a clock that was ${lead} the store's. Times are right again from here on.`, {
    before,
    storeMs: sure,
  });
  return { changedMs: sure, history: history && withSetBack(history, generation + 1) };
}

function withSetBack(history: StoredHistory, generation: number): StoredHistory {
  const setBack = [...(history.setBack ?? []), generation].filter((at) => at > history.floor);
  return { ...history, setBack: setBack.slice(-maxSetBack) };
}

/** The store's own time; undefined where it is not known. */
async function storesTime(
  { history, generation }: Block0,
  { driver, prefix, clock }: GenerationTimeOptions,
): Promise<number | undefined> {
  if (clock.isOfStore) return Math.floor(clock.now());
  if (history === null) return undefined;
  // It was stored a moment ago.
  const found = await driver.get(`${prefix}/${historyName(generation)}`, { range: { start: 0, end: 0 } });
  return found.status === 'found' ? Math.floor(found.lastModifiedMs) : undefined;
}
