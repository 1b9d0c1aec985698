/**
 * The register that holds Block 0: read, refresh, compare-and-swap. It knows nothing of tables.
 *
 * Invariants:
 * - `current` only moves forward: to a higher revision of the same database. If the store shows anything else, nothing is read or
 *   written any more.
 * - A refresh is a request that starts when it is asked for. It never joins one in flight, since only a
 *   read that started after the slot was read confirms a slot (docs/protocol.md).
 * - The Block 0 that is stored afterwards decides the outcome of a put, not the answer: a nonce shows whose it is.
 */
import { defined } from '../base/options.ts';
import { backOff } from '../base/env.ts';
import type { Environment, Backoff } from '../base/env.ts';
import { ContentionError, DatabaseReplacedError, StorageError, invariant } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { newId } from '../base/ids.ts';
import { block0Format, encodeBlock0 } from '../format/block0.ts';
import type { Block0 } from '../format/block0.ts';
import { block0Name } from '../format/object-names.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import type { OwnWrites } from '../storage/contract/own-writes.ts';
import { Block0Reader } from './block0-reader.ts';
import type { VersionedBlock0 } from './block0-reader.ts';

/** The parts of Block 0 that a replacement may change; the register sets the rest. */
export type Block0Change = Omit<Block0, 'revision' | 'nonce' | 'writer' | 'databaseId' | 'format'>;

/** Hooks for an instance whose database turns out to be gone, or another one. They must not reject. */
export interface ReplacedHooks {
  /** Taken before a look at Block 0, and given back if it was there. */
  readonly writes: OwnWrites;
  gone(databaseId: string): Promise<void>;
  another(databaseId: string): Promise<void>;
}

const maxAttempts = 5;
const betweenAttempts: Backoff = { firstMs: 40, maxMs: 320, jitter: 'around' };
/** Attempts at an update that other writes of Block 0 come before. */
const maxUpdates = 40;

/** Returns the parts of a Block 0 that a replacement may change. */
export function changeableOf(block0: Block0): Block0Change {
  const { revision: _revision, nonce: _nonce, writer: _writer, databaseId: _id, format: _format, ...change } = block0;
  return change;
}

/** Whether a later state has the commits merged in an earlier one, as far as the list of merged commits goes back. */
function isContinued(earlier: Block0, later: Block0): boolean {
  if (later.appliedSeq < earlier.appliedSeq) return false;
  const before = earlier.applied.at(-1);
  const after = later.applied.find(({ seq }) => seq === before?.seq);
  return before === undefined || after === undefined || before.id === after.id;
}

export class Block0Register {
  readonly #driver: StorageDriver;
  readonly #key: string;
  readonly #reader: Block0Reader;
  readonly #environment: Environment;
  readonly #logger: Logger;
  readonly #node: { readonly id: number };
  #current: VersionedBlock0 | undefined;
  readonly #hooks: ReplacedHooks | undefined;
  #isGone = false;
  /** For good: others may write on until nothing of it shows any more. */
  #replaced: DatabaseReplacedError | undefined;

  constructor(
    driver: StorageDriver,
    prefix: string,
    environment: Environment,
    logger: Logger,
    node: { readonly id: number },
    hooks?: ReplacedHooks,
  ) {
    this.#driver = driver;
    this.#key = `${prefix}/${block0Name}`;
    this.#reader = new Block0Reader(driver, prefix);
    this.#environment = environment;
    this.#logger = logger;
    this.#node = node;
    this.#hooks = hooks;
  }

  /** The newest Block 0 that was seen. */
  get current(): VersionedBlock0 {
    invariant(this.#current !== undefined, 'Block 0 was used before it was read');
    return this.#current;
  }

  newNonce(): string {
    return newId(this.#environment, 12);
  }

  /** Reads Block 0 for the first time; undefined where there is none. */
  async open(signal?: AbortSignal): Promise<VersionedBlock0 | undefined> {
    const result = await this.#reader.read(defined({ signal }));
    return typeof result === 'string' ? undefined : this.#see(result, 0);
  }

  /** Creates Block 0 unless somebody else just did; returns the stored one. */
  async create(block0: Block0, signal?: AbortSignal): Promise<VersionedBlock0> {
    for (let attempt = 1; ; attempt++) {
      try {
        const options = defined({ signal });
        const result = await this.#driver.put(this.#key, encodeBlock0(block0), { if: 'absent', ...options });
        if (result.status === 'written') return this.#see({ block0, etag: result.etag }, 0);
      } catch (error) {
        // Whether it was written shows when it is read.
        if (attempt >= maxAttempts || signal?.aborted === true) throw error;
      }
      const stored = await this.open(signal);
      if (stored !== undefined) return stored;
      await this.#pause(attempt, signal);
    }
  }

  /** Reads Block 0 with a request that starts now; the answer is small if it has not changed. */
  async refresh(signal?: AbortSignal): Promise<VersionedBlock0> {
    this.checkNotReplaced();
    const before = this.current;
    const mark = this.#hooks?.writes.mark ?? 0;
    const options = defined({ signal });
    let result = await this.#reader.read({ ifNoneMatch: before.etag, ...options });
    // A missing Block 0 stops the instance for good, so that it is read once more.
    if (result === 'missing') result = await this.#reader.read(options);
    if (result === 'missing') return this.#gone();
    try {
      const seen = result === 'unchanged' ? this.current : this.#see(result, before.block0.revision);
      this.#hooks?.writes.seen(mark);
      return seen;
    } catch (error) {
      const { databaseId } = before.block0;
      if (typeof result === 'object' && result.block0.databaseId !== databaseId) await this.#hooks?.another(databaseId);
      throw error;
    }
  }

  async #gone(): Promise<never> {
    this.#isGone = true;
    this.#replaced = new DatabaseReplacedError(
      `Block 0 (${this.#key}) is gone: the database was deleted or moved while this instance was running. ` +
        'Nothing more is written; stop this instance, restore the database if need be, and open the database again.',
    );
    await this.#hooks?.gone(this.current.block0.databaseId);
    throw this.#replaced;
  }

  /** Takes in a Block 0 that was read. `atLeast` is the revision that was known when the request began. */
  #see(seen: VersionedBlock0, atLeast: number): VersionedBlock0 {
    this.checkNotReplaced();
    const known = this.#current;
    const reason = known && this.#reasonAgainst(known.block0, seen.block0, atLeast);
    if (reason !== undefined) {
      this.#replaced = new DatabaseReplacedError(
        `${reason} Nothing more is written; stop this instance and open the database again.`,
      );
      throw this.#replaced;
    }
    const newest = known === undefined || seen.block0.revision > known.block0.revision ? seen : known;
    this.#current = newest;
    this.#reader.note(newest.block0);
    return newest;
  }

  /** Returns why a Block 0 that was read cannot be an earlier or later state of the known one; undefined if it can. */
  #reasonAgainst(known: Block0, seen: Block0, atLeast: number): string | undefined {
    if (known.databaseId !== seen.databaseId) {
      return `Another database is stored at ${this.#key} now (id ${seen.databaseId}, before ${known.databaseId}).`;
    }
    const restored = 'an older state was restored under a running instance.';
    if (seen.revision < atLeast) {
      return `Block 0 (${this.#key}) went back from revision ${atLeast} to ${seen.revision}: ${restored}`;
    }
    if (known.revision === seen.revision && known.nonce !== seen.nonce) {
      return `Block 0 (${this.#key}) has revision ${seen.revision} as before, but another writer's: ${restored}`;
    }
    if (seen.revision > known.revision && !isContinued(known, seen)) {
      return `Block 0 (${this.#key}) was written on without commit ${known.appliedSeq}, which was merged: ${restored}`;
    }
    return undefined;
  }

  /** Whether the stored Block 0 was found to be no state of the database that was opened. */
  get isReplaced(): boolean {
    return this.#replaced !== undefined;
  }

  /** Whether there was no Block 0 any more. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** Throws `DatabaseReplacedError` once the stored Block 0 was found to be no state of the database that was opened. */
  checkNotReplaced(): void {
    if (this.#replaced !== undefined) throw this.#replaced;
  }

  /**
   * Replaces `expected` by a Block 0 with the given changes. True once it is stored; false if another one took its
   * place: then look again. Rejects with `StorageError` if the store does not take it: then it may still be written. Never
   * true for a write that is not in the register.
   */
  async replace(
    expected: VersionedBlock0,
    change: Block0Change,
    signal?: AbortSignal,
    written: (block0: Block0) => void = () => {},
  ): Promise<boolean> {
    this.checkNotReplaced();
    const next: Block0 = {
      ...change,
      format: block0Format(change),
      databaseId: expected.block0.databaseId,
      revision: expected.block0.revision + 1,
      nonce: this.newNonce(),
      writer: { nodeId: this.#node.id, atMs: this.#environment.now() },
    };
    const bytes = encodeBlock0(next);
    const mark = this.#hooks?.writes.mark ?? 0;
    const options = defined({ signal });
    let failure: StorageError | undefined;
    for (let attempt = 1; ; attempt++) {
      try {
        failure = undefined;
        const result = await this.#driver.put(this.#key, bytes, { if: { etag: expected.etag }, ...options });
        if (result.status === 'written') {
          this.#see({ block0: next, etag: result.etag }, 0);
          this.#hooks?.writes.seen(mark);
          written(next);
          return true;
        }
      } catch (error) {
        if (!(error instanceof StorageError) || signal?.aborted === true) throw error;
        failure = error;
        // Once is enough, of a store that fails for a while.
        const level = attempt === 1 ? 'warn' : 'debug';
        const message = `Writing Block 0 failed, looking whether it was written: ${error.message}`;
        this.#logger[level](message, { key: this.#key });
      }
      // Lost, or no answer: in both cases it may have been this very write.
      const stored = await this.refresh(signal);
      if (stored.block0.nonce === next.nonce) {
        written(next);
        return true;
      }
      if (stored.etag !== expected.etag) {
        this.#logger.info('PreconditionFailed: another node replaced Block 0 first; looking again', {
          key: this.#key,
          expectedEtag: expected.etag,
          actualEtag: stored.etag,
        });
        return false;
      }
      if (attempt >= maxAttempts) {
        // Nobody else was faster: the store will not have it, and the caller should hear why.
        if (failure !== undefined) throw failure;
        return false;
      }
      await this.#pause(attempt, signal);
    }
  }

  /**
   * Changes Block 0 while other nodes may change it too: `change` returns the changed parts of the newest one, and is called again
   * when another write came first; undefined: nothing has to change. Resolves to the Block 0 that needs no change, or that was
   * written. Rejects with `ContentionError` after too many attempts.
   */
  async update(change: (block0: Block0) => Block0Change | undefined, signal?: AbortSignal): Promise<Block0> {
    await this.refresh(signal);
    for (let attempt = 1; attempt <= maxUpdates; attempt++) {
      const { current } = this;
      const next = change(current.block0);
      if (next === undefined) return current.block0;
      // The written Block 0 may have been replaced since; it was in force when it was written.
      const written: { block0?: Block0 } = {};
      if (await this.replace(current, next, signal, (block0) => (written.block0 = block0))) {
        return written.block0 as Block0;
      }
      await this.#pause(attempt, signal);
      await this.refresh(signal);
    }
    throw new ContentionError(
      'Other nodes replaced Block 0 before every attempt to change it. Nothing was changed: try it again.',
    );
  }

  #pause(attempt: number, signal?: AbortSignal): Promise<void> {
    return backOff(this.#environment, betweenAttempts, attempt, signal);
  }
}
