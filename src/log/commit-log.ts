/**
 * The slots of the commit log as objects. A commit in a slot decides nothing by itself: log-follower.ts and log-writer.ts confirm
 * it (docs/protocol.md).
 */
import { defined } from '../base/options.ts';
import type { Environment } from '../base/env.ts';
import { isUnreadable } from '../base/errors.ts';
import { decodeCommit, decodeCommitSlowly } from '../format/commit.ts';
import type { Commit } from '../format/commit.ts';
import { commitName } from '../format/object-names.ts';
import type { PutResult, StorageDriver } from '../storage/contract/driver.ts';

/** A commit of more bytes may change so many tables that decoding it at once would keep others waiting. */
const decodedAtOnceBytes = 65_536;

export class CommitLog {
  readonly #environment: Environment;
  readonly #driver: StorageDriver;
  readonly #prefix: string;

  constructor(environment: Environment, driver: StorageDriver, prefix: string) {
    this.#environment = environment;
    this.#driver = driver;
    this.#prefix = prefix;
  }

  /** Reads the commit in a slot; undefined while the slot is empty. Throws only if it is damaged in two reads. */
  async read(slot: number, signal?: AbortSignal): Promise<Commit | undefined> {
    for (let attempt = 1; ; attempt++) {
      const result = await this.#driver.get(this.#key(slot), defined({ signal }));
      if (result.status !== 'found') return undefined;
      try {
        const { bytes } = result;
        if (bytes.length <= decodedAtOnceBytes) return decodeCommit(slot, bytes);
        return await decodeCommitSlowly(slot, bytes, () => this.#environment.yieldToEventLoop());
      } catch (error) {
        if (!isUnreadable(error) || attempt > 1) throw error;
      }
    }
  }

  /** Puts a commit into a slot if it is free. After any answer but `written` the slot must be read. */
  put(slot: number, bytes: Uint8Array, signal?: AbortSignal): Promise<PutResult> {
    return this.#driver.put(this.#key(slot), bytes, { if: 'absent', ...defined({ signal }) });
  }

  #key(slot: number): string {
    return `${this.#prefix}/${commitName(slot)}`;
  }
}
