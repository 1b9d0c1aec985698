/**
 * The write-forward loop: a timer that gives an instance its turns. In a turn it catches up, and merges if it has write
 * authority and enough is pending. When turns come is a matter of cost and courtesy alone: what is missed costs time,
 * never a commit.
 */
import type { Environment, Timer } from '../base/env.ts';
import type { View } from '../view/view.ts';
import { MergeWait } from '../merge/merge-policy.ts';
import type { MergePolicy } from '../merge/merge-policy.ts';
import type { NodeId } from '../block0/node-identity.ts';
import { PollingPace } from './polling.ts';
import type { Polling } from './polling.ts';
import type { Role } from './role.ts';
import { Rotation } from './rotation.ts';

const turnName = 'A turn of the write-forward loop';

/** What turns need of the engine. */
export interface TurnHost {
  readonly view: View;
  /** Milliseconds since the view was known to be the newest. */
  readonly viewAgeMs: number;
  /** Whether so much is pending that it is merged whatever the policy says. */
  readonly hasTooMuchPending: boolean;
  /** Catches up with the store. */
  catchUp(): Promise<void>;
  /** Catches up if the next slot shows that there is something new: cheaper, and good enough while nobody asks. */
  peek(): Promise<void>;
  merge(): Promise<unknown>;
  /** Whether Block 0 lists this node. */
  readonly isRegistered: boolean;
  /** Has Block 0 list it. */
  join(): Promise<void>;
  /** Whether this node has taken its id itself, and has given no sign for long. */
  readonly mustRenew: boolean;
  /** Gives one. */
  renew(): Promise<void>;
  report(what: string, error: unknown): void;
  worked(what: string): void;
}

export interface TurnOptions {
  readonly environment: Environment;
  readonly node: NodeId;
  readonly intervalMs: number;
  readonly polling: Polling;
  /** A replica only looks. */
  readonly role: Role;
  readonly mergePolicy: Required<MergePolicy>;
  /** Ids of the nodes that share authority; undefined for those that Block 0 lists. */
  readonly nodes: () => readonly number[] | undefined | Promise<readonly number[] | undefined>;
}

/** A slot that was trimmed shows nothing new, so that a view must not live from peeking alone. */
const longestPeekingMs = 600_000;

export class Turns {
  readonly #host: TurnHost;
  readonly #options: TurnOptions;
  readonly #pace: PollingPace;
  readonly #wait: MergeWait;
  readonly rotation: Rotation;
  /** The nodes that shared authority when they were last asked for. */
  #sharing: readonly number[] | undefined;
  /** Whether this node was not among them: it waits for no turn to merge until somebody uses it. */
  #excluded = false;
  /** Whether anything was read since the last look: only then is a view worth what it costs to keep it new. */
  #read = false;
  #timer: Timer | undefined;
  /** When the timer fires, by the monotonic clock. */
  #timerMs = 0;
  #turn: Promise<void> | undefined;
  #running = false;

  constructor(host: TurnHost, options: TurnOptions) {
    this.#host = host;
    this.#options = options;
    this.#pace = new PollingPace(options.polling, options.intervalMs);
    this.#wait = new MergeWait(options.mergePolicy);
    this.rotation = new Rotation(options.intervalMs, options.node);
  }

  start(): void {
    this.#running = true;
    this.viewChanged();
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

  /** Somebody uses the instance: it is worth keeping up to date. `reads`: not only to commit. */
  asked(reads = true): void {
    this.#excluded = false;
    this.#read ||= reads;
    if (this.#pace.asked()) this.#schedule();
  }

  /** The view has moved on, or was found to be the newest: there may be something to merge, or nothing any more. */
  viewChanged(): void {
    const { view } = this.#host;
    this.#wait.note(view.tail, view.block0.appliedSeq, this.#options.environment.monotonicMs());
    this.#schedule();
  }

  /** Sets the timer for the next turn. One that fires earlier is left alone: it sets the next one itself. */
  #schedule(): void {
    if (!this.#running || this.#turn !== undefined || (this.#timer !== undefined && this.#pace.isSteady)) return;
    const { environment } = this.#options;
    const nowMs = environment.monotonicMs();
    const untilMergeMs = this.#pace.isSteady ? undefined : this.#untilMerge(nowMs);
    const untilMs = this.#pace.untilTurn(environment.now(), untilMergeMs);
    if (untilMs !== undefined && this.#timer !== undefined && this.#timerMs <= nowMs + untilMs + 1) return;
    this.#cancel();
    if (untilMs === undefined) return;
    this.#timerMs = nowMs + untilMs;
    this.#timer = environment.setTimer(() => {
      this.#timer = undefined;
      this.#turn = this.#take().finally(() => {
        this.#turn = undefined;
        this.#pace.turned();
        this.viewChanged();
      });
    }, untilMs);
  }

  #cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Milliseconds until the slot in which this node is to merge what is pending; undefined if nothing is. */
  #untilMerge(nowMs: number): number | undefined {
    const waitMs = this.#excluded ? undefined : this.#untilDue(nowMs);
    if (waitMs === undefined) return undefined;
    return this.rotation.untilOwn(this.#options.environment.now(), waitMs, this.#presumed);
  }

  /** Whether it is this node's turn, for all that is known without asking. */
  get isOwnTurn(): boolean {
    const { environment, role } = this.#options;
    return role === 'writer' && !this.#excluded && this.rotation.isOwn(environment.now(), this.#presumed);
  }

  /** Who shares authority, for all that is known without asking. */
  get #presumed(): number[] {
    return [...(this.#sharing ?? this.#host.view.block0.nodes), this.#options.node.id];
  }

  #untilDue(nowMs: number): number | undefined {
    if (this.#options.role === 'replica') return undefined;
    const { view, hasTooMuchPending } = this.#host;
    return hasTooMuchPending ? 0 : this.#wait.untilDue(view.pending.length, nowMs, !this.#hasOthers);
  }

  /** Whether others share authority, for all that is known without asking. */
  get #hasOthers(): boolean {
    return this.#presumed.some((other) => other !== this.#options.node.id);
  }

  async #look(): Promise<void> {
    const { viewAgeMs } = this.#host;
    // What a flush or a query has looked at a moment ago need not be looked at again.
    if (viewAgeMs <= this.#options.intervalMs / 2) return;
    const isDue = this.#untilDue(this.#options.environment.monotonicMs()) === 0;
    this.#read = false;
    if (this.#pace.isBackedOff && !isDue && viewAgeMs < longestPeekingMs) await this.#host.peek();
    else await this.#host.catchUp();
  }

  /**
   * Whether a merge needs no look before it: no other node is known of, no reader has a view kept new by turns, and this node
   * has itself appended what is to be merged, which showed that nothing else was there. If there are others all the same, this
   * merge costs more than a look: it can only replace the Block 0 that it began with.
   */
  get #isAlone(): boolean {
    const { node, environment, polling } = this.#options;
    if (this.#hasOthers || this.#untilDue(environment.monotonicMs()) !== 0) return false;
    if (polling === 'interval' || (polling === 'adaptive' && this.#read)) return false;
    return this.#host.view.pending.at(-1)?.commit.nodeId === node.id;
  }

  /** One turn. */
  async #take(): Promise<void> {
    try {
      await this.#takeSteps();
      this.#host.worked(turnName);
    } catch (error) {
      this.#host.report(turnName, error);
    }
  }

  async #takeSteps(): Promise<void> {
    const startedMs = this.#options.environment.now();
    const isAlone = this.#isAlone;
    if (!isAlone) await this.#look();
    if (this.#options.role === 'replica') return;
    if (await this.#mergeInTurn(startedMs)) return;
    if (isAlone) await this.#look();
    if (!this.#host.isRegistered) await this.#host.join();
    else if (this.#host.mustRenew && !this.#pace.isBackedOff) await this.#host.renew();
  }

  /** Merges if something is due and it is this node's turn. */
  async #mergeInTurn(startedMs: number): Promise<boolean> {
    const { environment, node, nodes } = this.#options;
    const { view } = this.#host;
    this.#wait.note(view.tail, view.block0.appliedSeq, environment.monotonicMs());
    const isDue = this.#untilDue(environment.monotonicMs()) === 0;
    if (isDue) this.#sharing = (await nodes()) ?? [...view.block0.nodes, node.id];
    const sharing = this.#sharing ?? [node.id];
    // Those that look less often let turns pass as a matter of course, and do not see each turn pass either.
    if (this.#pace.isSteady) this.rotation.note(startedMs, view.block0, view.tail, isDue, sharing);
    if (!isDue) return false;
    this.#excluded = !sharing.includes(node.id);
    // With a slow store the turn may end in another slot: were only that one asked for, it could be the wrong one always.
    const isOwn = (atMs: number): boolean => this.rotation.isOwn(atMs, sharing);
    if (!isOwn(startedMs) && !isOwn(environment.now())) return false;
    const mergedFromMs = environment.monotonicMs();
    await this.#host.merge();
    const nowMs = environment.monotonicMs();
    this.#wait.merged(nowMs - mergedFromMs, nowMs);
    return true;
  }
}
