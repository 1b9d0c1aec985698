/**
 * The write-forward loop: a timer that gives an instance its turns. In a turn it catches up, and merges if it has write
 * authority and enough is pending. The times of turns affect only cost: a missed turn costs time,
 * never a commit.
 */
import type { Environment, Timer } from '../base/env.ts';
import type { EngineEvents } from '../log/engine-events.ts';
import type { LogFollower } from '../log/log-follower.ts';
import type { PendingRoom } from '../log/pending-room.ts';
import type { View } from '../view/view.ts';
import { MergeWait } from '../merge/merge-policy.ts';
import type { MergePolicy } from '../merge/merge-policy.ts';
import type { Merger } from '../merge/merger.ts';
import type { Block0Register } from '../block0/block0-register.ts';
import type { NodeId } from '../block0/node-identity.ts';
import type { Block0 } from '../format/block0.ts';
import type { FailureReports } from './failure-reports.ts';
import { PollingPace } from './polling-pace.ts';
import type { Polling } from './polling-pace.ts';
import type { Freshness } from './freshness.ts';
import type { Membership, Role } from './membership.ts';
import type { MergeRotation } from './merge-rotation.ts';

const turnName = 'A turn of the write-forward loop';

/** When an instance takes turns, as its user says. */
export interface TurnSettings {
  readonly environment: Environment;
  readonly intervalMs: number;
  readonly polling: Polling;
  /** A replica only looks. */
  readonly role: Role;
  readonly mergePolicy: Required<MergePolicy>;
  /** Ids of the nodes that share authority; undefined for the nodes that Block 0 lists. */
  readonly nodes: () => readonly number[] | undefined | Promise<readonly number[] | undefined>;
}

export interface WriteForwardLoopOptions extends TurnSettings {
  readonly node: NodeId;
  readonly register: Block0Register;
  readonly follower: LogFollower;
  readonly freshness: Freshness;
  readonly room: PendingRoom;
  readonly merger: Merger;
  readonly membership: Membership;
  readonly rotation: MergeRotation;
  readonly failures: FailureReports;
  readonly events: EngineEvents;
}

/** Whether a version of a table comes or goes: all instances take part in that, and commits that wait would delay it. */
function isMigrating({ migrations }: Block0): boolean {
  return migrations.some(({ phase, target }) => phase === 'building' || target?.retire !== undefined);
}

/** A slot that was trimmed shows nothing new, so that a view must not live from peeking alone. */
const maxPeekingMs = 600_000;

export class WriteForwardLoop {
  readonly #options: WriteForwardLoopOptions;
  readonly #pace: PollingPace;
  readonly #wait: MergeWait;
  /** Whether anything was read since the last look: only then is it worth the cost to keep the view new. */
  #read = false;
  #timer: Timer | undefined;
  /** When the timer fires, by the monotonic clock. */
  #timerMs = 0;
  #turn: Promise<void> | undefined;
  /** Whether the last turn failed. */
  #hasFailed = false;
  #running = false;

  constructor(options: WriteForwardLoopOptions) {
    this.#options = options;
    this.#pace = new PollingPace(options.polling, options.intervalMs);
    this.#wait = new MergeWait(options.mergePolicy);
    options.events.looked.on((view) => this.viewChanged(view));
    options.events.replaced.on(() => this.stop());
  }

  start(): void {
    this.#running = true;
    this.viewChanged(this.#options.follower.view);
  }

  /** Sets no timer any more. */
  stop(): void {
    this.#running = false;
    this.#cancel();
  }

  /** Resolves once no turn is under way. */
  async idle(): Promise<void> {
    await this.#turn;
  }

  /** Whether the last turn failed, or the one that is due has not ended an interval later. */
  get isLate(): boolean {
    const { environment, intervalMs } = this.#options;
    const isWaiting = this.#turn !== undefined || this.#timer !== undefined;
    return this.#hasFailed || (isWaiting && environment.monotonicMs() - this.#timerMs > intervalMs);
  }

  /** Notes that the instance is used. `reads`: not only to commit, so that it is worth keeping up to date. */
  asked(reads = true): void {
    this.#options.rotation.isExcluded = false;
    this.#read ||= reads;
    if (reads && this.#pace.asked()) this.#schedule(this.#options.follower.view);
  }

  /** Sets the next turn again: the view has moved on, or is known to be the newest. */
  viewChanged(view: View): void {
    this.#wait.note(view.tail, view.block0.appliedSeq, this.#options.environment.monotonicMs());
    this.#schedule(view);
  }

  /** Sets the timer for the next turn. One that fires earlier is left alone: it sets the next one itself. */
  #schedule(view: View): void {
    if (!this.#running || this.#turn !== undefined || (this.#timer !== undefined && this.#pace.isSteady)) return;
    const { environment } = this.#options;
    const nowMs = environment.monotonicMs();
    const untilMergeMs = this.#pace.isSteady ? undefined : this.#untilMerge(view, nowMs);
    const untilMs = this.#pace.untilTurn(environment.now(), untilMergeMs);
    if (untilMs !== undefined && this.#timer !== undefined && this.#timerMs <= nowMs + untilMs + 1) return;
    this.#cancel();
    if (untilMs === undefined) return;
    this.#timerMs = nowMs + untilMs;
    this.#timer = environment.setTimer(() => {
      this.#timer = undefined;
      this.#turn = this.#take().finally(() => {
        this.#turn = undefined;
        const { view: latest } = this.#options.follower;
        if (isMigrating(latest.block0)) this.#pace.asked();
        else this.#pace.turned();
        this.viewChanged(latest);
      });
    }, untilMs);
  }

  #cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Milliseconds until the turn in which this node must merge the pending commits; undefined if there are none. */
  #untilMerge(view: View, nowMs: number): number | undefined {
    const { environment, rotation } = this.#options;
    const waitMs = rotation.isExcluded ? undefined : this.#untilDue(view, nowMs);
    if (waitMs === undefined) return undefined;
    return rotation.untilOwn(environment.now(), waitMs, rotation.presumed(view.block0));
  }

  #untilDue(view: View, nowMs: number): number | undefined {
    const { role, room, rotation } = this.#options;
    if (role === 'replica') return undefined;
    if (room.isLarge(view)) return 0;
    if (isMigrating(view.block0) && view.pending.length > 0) return 0;
    return this.#wait.untilDue(view.pending.length, nowMs, !rotation.hasOthers(view.block0));
  }

  /** Whether a merge is due for every node that looks in each interval: others may have seen a commit an interval later. */
  get #isDueEverywhere(): boolean {
    const { environment, follower, intervalMs } = this.#options;
    return this.#untilDue(follower.view, environment.monotonicMs() - intervalMs) === 0;
  }

  async #look(): Promise<void> {
    const { freshness, follower, environment, intervalMs } = this.#options;
    const { viewAgeMs } = freshness;
    // A flush or a query has looked at the log a moment ago.
    if (viewAgeMs <= intervalMs / 2) return;
    const isDue = this.#untilDue(follower.view, environment.monotonicMs()) === 0;
    this.#read = false;
    if (this.#pace.isBackedOff && !isDue && viewAgeMs < maxPeekingMs) await freshness.peek();
    else await freshness.catchUp();
  }

  /**
   * Whether a merge needs no look before it: no other node is known, no reader relies on turns for a new view, and this node has
   * itself appended the pending commits, which showed that there were no others. If there are other nodes after all, this merge
   * costs more than a look, and no more: it can only replace the Block 0 that it began with.
   */
  get #isAlone(): boolean {
    const { node, environment, polling, follower, rotation } = this.#options;
    const { view } = follower;
    if (rotation.hasOthers(view.block0) || this.#untilDue(view, environment.monotonicMs()) !== 0) return false;
    if (polling === 'interval' || (polling === 'adaptive' && this.#read)) return false;
    return view.pending.at(-1)?.commit.nodeId === node.id;
  }

  /** One turn. */
  async #take(): Promise<void> {
    const { failures } = this.#options;
    try {
      await this.#takeSteps();
      this.#hasFailed = false;
      failures.worked(turnName);
    } catch (error) {
      this.#hasFailed = true;
      failures.report(turnName, error);
    }
  }

  async #takeSteps(): Promise<void> {
    const { environment, role, membership } = this.#options;
    const startedMs = environment.now();
    const isAlone = this.#isAlone;
    if (!isAlone) await this.#look();
    if (role === 'replica') return;
    if (await this.#mergeInTurn(startedMs)) return;
    if (isAlone) await this.#look();
    if (!membership.isRegistered) await this.#join();
    else if (membership.mustRenew && !this.#pace.isBackedOff) await membership.renew();
  }

  /** Enters the list of nodes, and shows that in the view at once: a node in it must say which versions of tables it uses. */
  async #join(): Promise<void> {
    const { membership, register, follower, events } = this.#options;
    await membership.join();
    follower.advance(register.current, []);
    events.looked.emit(follower.view);
  }

  /** Merges if something is due and it is this node's turn. */
  async #mergeInTurn(startedMs: number): Promise<boolean> {
    const { environment, node, nodes, follower, rotation, merger } = this.#options;
    const { view } = follower;
    this.#wait.note(view.tail, view.block0.appliedSeq, environment.monotonicMs());
    const isDue = this.#untilDue(view, environment.monotonicMs()) === 0;
    if (isDue) rotation.sharing = (await nodes()) ?? [...view.block0.nodes, node.id];
    const sharing = rotation.sharing ?? [node.id];
    // Nodes that look less often let turns pass as a matter of course, and do not see each turn pass either.
    if (this.#pace.isSteady) rotation.note(startedMs, view.block0, view.tail, this.#isDueEverywhere, sharing);
    if (!isDue) return false;
    rotation.isExcluded = !sharing.includes(node.id);
    // With a slow store this may already be another turn. If only the later time were checked, it could be the wrong one always.
    const isOwn = (atMs: number): boolean => rotation.isOwn(atMs, sharing);
    if (!isOwn(startedMs) && !isOwn(environment.now())) return false;
    const mergedFromMs = environment.monotonicMs();
    await merger.merge();
    const nowMs = environment.monotonicMs();
    this.#wait.merged(nowMs - mergedFromMs, nowMs);
    return true;
  }
}
