/**
 * Deletes the objects that an instance wrote before it noticed that its database is gone. A flush puts its commit first, and only
 * then reads Block 0: without this, that commit would bring back the log of a deleted database, and no database could be created in
 * its place.
 *
 * - Where Block 0 is gone, and this instance wrote everything under the prefix since it last saw Block 0, all of that is deleted. If
 *   any other object is there, nothing is deleted: the database is being deleted, restored or moved.
 * - Where another database has taken the place, the commits of the old one are deleted from its log, in which they could never be
 *   applied. Its other objects have names that are not used twice.
 */
import type { Logger } from '../base/logger.ts';
import { decodeCommit } from '../format/commit.ts';
import { block0Name, parseCommitName } from '../format/object-names.ts';
import { listAll } from '../storage/contract/driver.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import type { OwnWrites } from '../storage/contract/own-writes.ts';

export interface LeftoverOptions {
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly logger: Logger;
  readonly writes: OwnWrites;
}

/** Most keys that one deletion names. */
const maxDeleted = 1000;

export class Leftovers {
  readonly #options: LeftoverOptions;

  constructor(options: LeftoverOptions) {
    this.#options = options;
  }

  /** Deletes the leftovers of a database whose Block 0 is gone. Never rejects: objects that stay are only a nuisance. */
  async removeAll(databaseId: string): Promise<void> {
    const { driver, prefix, writes } = this.#options;
    if (writes.keys.length === 0) return;
    await this.#quietly(async () => {
      const found: string[] = [];
      for await (const { key } of listAll(driver, `${prefix}/`)) {
        // A Block 0 is there again: somebody else's.
        if (!writes.has(key) || key === `${prefix}/${block0Name}`) return;
        if (this.#slotOf(key) !== undefined && !(await this.#isCommitOf(key, databaseId))) return;
        found.push(key);
      }
      await this.#delete(found);
    });
  }

  /** Another database is stored in the place of the one with this id. Never rejects. */
  async removeCommits(databaseId: string): Promise<void> {
    await this.#quietly(async () => {
      for (const key of this.#options.writes.keys) {
        if (await this.#isCommitOf(key, databaseId)) await this.#delete([key]);
      }
    });
  }

  #slotOf(key: string): number | undefined {
    return parseCommitName(key.slice(this.#options.prefix.length + 1));
  }

  /** Whether it is a commit of the database. In a slot that was not won there may be another's. */
  async #isCommitOf(key: string, databaseId: string): Promise<boolean> {
    const slot = this.#slotOf(key);
    if (slot === undefined) return false;
    const found = await this.#options.driver.get(key);
    return found.status === 'found' && decodeCommit(slot, found.bytes).databaseId === databaseId;
  }

  async #delete(keys: readonly string[]): Promise<void> {
    const { driver, logger } = this.#options;
    for (let at = 0; at < keys.length; at += maxDeleted) await driver.delete(keys.slice(at, at + maxDeleted));
    if (keys.length > 0) {
      logger.warn(`Removed ${keys.length} objects that were written after the database was deleted or replaced`, {
        keys,
      });
    }
  }

  async #quietly(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#options.logger.warn('What was written after the database was deleted or replaced could not be removed', {
        error,
      });
    }
  }
}
