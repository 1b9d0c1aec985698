/** Repairs a log that lost commits: decides for each slot which commit Block 0 applies, and applies the log up to its end. */
import { backOff } from '../../base/env.ts';
import type { Backoff } from '../../base/env.ts';
import { ContentionError } from '../../base/errors.ts';
import { randomUuid } from '../../base/ids.ts';
import { defined } from '../../base/options.ts';
import type { Block0 } from '../../format/block0.ts';
import { emptyCommit, encodeCommit, follows } from '../../format/commit.ts';
import type { Commit } from '../../format/commit.ts';
import { CommitLog } from '../../log/commit-log.ts';
import type { LoggedCommit } from '../../view/view.ts';
import { describeStranded, readSlot } from './log-check.ts';
import type { LogDamage, StrandedCommit } from './log-check.ts';
import type { VerifyContext } from './verify.ts';

export interface LogRepairContext extends VerifyContext {
  /** Merges the commits that `slots` returns on top of the newest Block 0. False if others replaced it first. */
  readonly applyLog: (slots: (block0: Block0) => Promise<readonly LoggedCommit[]>) => Promise<boolean>;
}

/** Attempts before a repair gives up because other nodes replace Block 0 first. */
export const maxLost = 20;
/** Pauses after such an attempt. */
export const afterLoss: Backoff = { firstMs: 10, maxMs: 1000, jitter: 'full' };

/**
 * Applies the log up to its last slot in Block 0: lost commits as commits of nothing, and with `stop` the commits behind them as
 * well. Returns the lost slots and the commits behind them as they were when that was decided.
 *
 * Other instances may write until they read the new Block 0. So a repair leaves no slot free that it applies. It puts a commit of
 * nothing into a free slot, with the same put that any commit takes its slot with. If another commit came first, that one is
 * applied. See docs/protocol.md, "A hole in the log".
 */
export async function applyDamagedLog(
  context: LogRepairContext,
  damage: LogDamage,
  way: 'stop' | 'skip',
  signal: AbortSignal | undefined,
): Promise<Pick<LogDamage, 'lostSlots' | 'stranded'>> {
  const { environment, register } = context;
  const last = Math.max(...damage.lostSlots, ...damage.stranded.map(({ slot }) => slot));
  const fillings = new Set<string>();
  let decided: Pick<LogDamage, 'lostSlots' | 'stranded'> = damage;
  for (let lost = 0; (await register.refresh(signal)).block0.appliedSeq < last; ) {
    signal?.throwIfAborted();
    const decision = new LogDecision(context, way, last, fillings, signal);
    if (await context.applyLog((block0) => decision.slots(block0))) {
      decided = decision;
      continue;
    }
    if (++lost >= maxLost)
      throw new ContentionError(
        'Other nodes replaced Block 0 before every attempt to repair the log. Stop them first.',
      );
    await backOff(environment, afterLoss, lost, signal);
  }
  return decided;
}

/** Decides, for every slot of a damaged log, which commit is applied for it. */
class LogDecision {
  readonly #context: LogRepairContext;
  readonly #log: CommitLog;
  readonly #isSkipping: boolean;
  /** The last slot known to hold a commit. */
  readonly #last: number;
  readonly #signal: AbortSignal | undefined;
  /** Ids of the commits that this repair has put into free slots. */
  readonly #fillings: Set<string>;
  /** Slots whose commits are missing or cannot be read. */
  readonly lostSlots: number[] = [];
  /** Commits behind the first lost one. */
  readonly stranded: StrandedCommit[] = [];

  constructor(
    context: LogRepairContext,
    way: 'stop' | 'skip',
    last: number,
    fillings: Set<string>,
    signal: AbortSignal | undefined,
  ) {
    const { environment, driver, prefix } = context;
    this.#context = context;
    this.#log = new CommitLog(environment, driver, prefix);
    this.#isSkipping = way === 'skip';
    this.#last = last;
    this.#fillings = fillings;
    this.#signal = signal;
  }

  /** The commits for Block 0 to apply, from the first slot that it has not applied to the end of the log. */
  async slots(block0: Block0): Promise<LoggedCommit[]> {
    const { databaseId, appliedSeq } = block0;
    const found: LoggedCommit[] = [];
    let before = block0.applied.at(-1)?.id;
    let isWhole = true;
    for (let slot = appliedSeq + 1; ; slot++) {
      // A writer may be about to put a commit that follows the last one. If that is given up, this repair must take the next slot.
      if (slot > this.#last && found.at(-1)?.givenUp !== true && !(await this.#isTaken(slot))) return found;
      const { commit, isFilled } = await this.#readOrFill(slot, databaseId, before);
      const isOwn = commit?.databaseId === databaseId;
      isWhole &&= isOwn && follows(commit, before);
      if (slot <= this.#last && (!isOwn || isFilled)) this.lostSlots.push(slot);
      if (!isWhole && !isFilled) this.stranded.push(describeStranded(slot, commit));
      if (isOwn && (isWhole || isFilled || this.#isSkipping)) found.push({ slot, commit });
      else found.push({ slot, commit: emptyCommit(databaseId, randomUuid(this.#context.environment)), givenUp: true });
      before = found.at(-1)?.commit.commitId;
    }
  }

  /** Whether this repair put the commit, now or in an earlier attempt. */
  #isFilling(commit: Commit | undefined): boolean {
    return commit !== undefined && this.#fillings.has(commit.commitId);
  }

  async #isTaken(slot: number): Promise<boolean> {
    return (await readSlot(this.#log, slot, this.#signal)).isThere;
  }

  /** Reads the commit in a slot; undefined where it cannot be read. Fills a free slot first. */
  async #readOrFill(
    slot: number,
    databaseId: string,
    previousId: string | undefined,
  ): Promise<{ readonly commit: Commit | undefined; readonly isFilled: boolean }> {
    const { environment } = this.#context;
    const read = await readSlot(this.#log, slot, this.#signal);
    if (read.isThere) return { commit: read.commit, isFilled: this.#isFilling(read.commit) };
    const filling = {
      ...emptyCommit(databaseId, randomUuid(environment)),
      ...defined({ previousId }),
      atMs: environment.now(),
    };
    this.#fillings.add(filling.commitId);
    await this.#log.put(slot, encodeCommit(slot, filling), this.#signal);
    // Not the answer of the put, but the slot shows which commit took it.
    const { commit, isThere } = await readSlot(this.#log, slot, this.#signal);
    if (isThere) return { commit, isFilled: this.#isFilling(commit) };
    throw new ContentionError(
      `Slot ${slot} of the log was filled and is empty again: others collect garbage, or the store shows old states. Stop the ` +
        'other nodes, and repair the log again.',
    );
  }
}
