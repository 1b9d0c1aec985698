/**
 * Pins states of the database: a pin is an entry in Block 0, and an object with a copy of the pinned Block 0.
 *
 * Invariants:
 * - Only a retained generation is pinned: one that gc has not announced to collect past (`collected`), or that the
 *   history keeps. The instance that pins and the one that announces both replace Block 0, so one of them sees the other.
 * - The copy is stored before the pin that needs it. One without a pin is collected once its generation is, and by then
 *   no pin of that generation can come to be.
 * - The log is not trimmed past a pin that reads it: the instance that pins and the one that raises the floor both replace Block 0.
 * - A pin ends by replacing Block 0, by its holder or by an instance that takes it for abandoned. Clocks only decide when to try:
 *   a holder whose pin is gone learns it from Block 0.
 */
import { defined } from '../base/options.ts';
import type { Environment } from '../base/env.ts';
import { ContentionError, SnapshotExpiredError } from '../base/errors.ts';
import { newId } from '../base/ids.ts';
import { encodeBlock0 } from '../format/block0.ts';
import type { Block0, StoredSnapshot } from '../format/block0.ts';
import { rootId, rootName } from '../format/object-names.ts';
import { changeableOf } from '../block0/block0-register.ts';
import type { Block0Change, Block0Register } from '../block0/block0-register.ts';
import type { Role } from '../coordination/membership.ts';
import type { NodeId } from '../block0/node-identity.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import type { StoreClock } from '../storage/contract/store-clock.ts';
import { putRepeatedly } from '../storage/contract/retries.ts';

export interface PinsOptions {
  readonly environment: Environment;
  readonly clock: StoreClock;
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly register: Block0Register;
  readonly node: NodeId;
  /** A replica writes no pins: it shows a state for as long as its blocks are there. */
  readonly role: Role;
}

/** A state to pin. */
export interface PinnedState {
  readonly block0: Block0;
  /** Whether rows of commits that it has not applied are read from the store as well. */
  readonly readsLog?: boolean;
}

/** Most pins at a time: each takes room in Block 0, which everybody reads. */
export const maxPins = 1000;

/** Whether everything that a generation reaches is still there. */
export function isRetained({ collected, history }: Block0, generation: number): boolean {
  return generation >= collected || (history !== null && generation >= history.floor);
}

export class Pins {
  readonly #options: PinsOptions;

  constructor(options: PinsOptions) {
    this.#options = options;
  }

  get #isReplica(): boolean {
    return this.#options.role === 'replica';
  }

  /** Pins the state that a Block 0 describes. Throws `SnapshotExpiredError` if it is not retained any more. */
  async pin(
    { block0, readsLog = false }: PinnedState,
    timeToLiveMs: number,
    signal?: AbortSignal,
  ): Promise<StoredSnapshot> {
    const { environment, clock, register, node } = this.#options;
    const { generation, appliedSeq } = block0;
    const id = rootId(generation, newId(environment, 8));
    const pinOf = (createdMs: number): StoredSnapshot => {
      const expiresMs = createdMs + timeToLiveMs;
      return { id, generation, appliedSeq, nodeId: node.id, createdMs, expiresMs, ...(readsLog && { readsLog }) };
    };
    const check = (present: Block0): void => {
      if (!isRetained(present, generation)) throw gone(generation);
      if (readsLog && present.logFloor > appliedSeq) throw trimmed(present.logFloor, appliedSeq);
    };
    check(register.current.block0);
    if (this.#isReplica) return pinOf(clock.now());
    await this.#storeRoot(id, block0, signal);
    const pin = pinOf(clock.now());
    await register.update((present) => {
      // Its write may have been carried out although nobody said so.
      if (present.snapshots.some((other) => other.id === id)) return undefined;
      check(present);
      if (present.snapshots.length >= maxPins) {
        throw new ContentionError(`There are ${maxPins} snapshots already: release some.`);
      }
      return { ...changeableOf(present), snapshots: [...present.snapshots, pin] };
    }, signal);
    return pin;
  }

  #storeRoot(id: string, block0: Block0, signal: AbortSignal | undefined): Promise<void> {
    const { environment, driver, prefix } = this.#options;
    // Other pins are of no interest in it.
    const bytes = encodeBlock0({ ...block0, snapshots: [] });
    const key = `${prefix}/${rootName(id)}`;
    return putRepeatedly(environment, driver, key, bytes, { if: 'absent', ...defined({ signal }) });
  }

  /** Keeps a pin for longer. False if it is gone. */
  async renew(id: string, timeToLiveMs: number, signal?: AbortSignal): Promise<boolean> {
    if (this.#isReplica) return true;
    const expiresMs = this.#options.clock.now() + timeToLiveMs;
    const block0 = await this.#change(
      id,
      (pin) => (pin.expiresMs === expiresMs ? undefined : { ...pin, expiresMs }),
      signal,
    );
    return block0.snapshots.some((pin) => pin.id === id);
  }

  /** Ends a pin; one that is gone already is no failure. */
  async release(id: string, signal?: AbortSignal): Promise<void> {
    if (this.#isReplica) return;
    await this.#change(id, () => null, signal);
    // Nobody else can refer to the copy. Where it cannot be deleted now, gc will.
    const { driver, prefix } = this.#options;
    await driver.delete([`${prefix}/${rootName(id)}`], defined({ signal })).catch(() => undefined);
  }

  /** Replaces a pin; by nothing for null. Undefined leaves all as it is. */
  #change(
    id: string,
    change: (pin: StoredSnapshot) => StoredSnapshot | null | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Block0> {
    return this.#options.register.update((present): Block0Change | undefined => {
      const pin = present.snapshots.find((other) => other.id === id);
      const changed = pin && change(pin);
      if (changed === undefined) return undefined;
      const snapshots = present.snapshots.flatMap((other) => {
        if (other.id !== id) return [other];
        return changed === null ? [] : [changed];
      });
      return { ...changeableOf(present), snapshots };
    }, signal);
  }
}

function gone(generation: number): SnapshotExpiredError {
  return new SnapshotExpiredError(
    `Generation ${generation} is not kept any more: garbage was collected past it. Take a new snapshot.`,
  );
}

function trimmed(floor: number, appliedSeq: number): SnapshotExpiredError {
  return new SnapshotExpiredError(
    `Rows of commits after slot ${appliedSeq} are not kept any more: the log was trimmed up to slot ${floor}.`,
  );
}
