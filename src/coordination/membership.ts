/**
 * This node's place in Block 0's list of nodes, by which they take turns. A node enters with its first turn or merge and
 * leaves when it is stopped; who crashes stays listed until others count it out. The list is a matter of courtesy: nothing
 * is lost if it is wrong.
 */
import { sleep } from '../base/env.ts';
import type { Environment } from '../base/env.ts';
import { newId } from '../base/ids.ts';
import type { Logger } from '../base/logger.ts';
import { changeableOf } from '../block0/block0-register.ts';
import type { Block0Change, Block0Register } from '../block0/block0-register.ts';
import { withNodes } from '../block0/node-identity.ts';
import type { NodeIdentity, NodeList } from '../block0/node-identity.ts';
import type { Block0 } from '../format/block0.ts';
import type { StoredMigration } from '../format/stored-table.ts';
import type { MergeMembers } from '../merge/merger.ts';
import type { StoreClock } from '../storage/contract/store-clock.ts';
import type { Rotation } from './rotation.ts';
import { isListed, isOld, withoutUser, withUser } from './version-users.ts';
import type { Speaker } from './version-users.ts';

// What an instance may do to the store.

/** `writer`: reads, writes and merges. `replica`: follows the log and reads, with credentials that need not allow writes. */
export type Role = 'writer' | 'replica';

/** Every value of {@link Role}. */
export const roles: readonly Role[] = ['writer', 'replica'];

export interface MembershipOptions {
  readonly environment: Environment;
  readonly register: Block0Register;
  readonly logger: Logger;
  readonly node: NodeIdentity;
  readonly clock: StoreClock;
  readonly rotation: Rotation;
  readonly intervalMs: number;
  /** Aborted when the instance is stopped. */
  readonly stopping: AbortSignal;
}

export class Membership implements MergeMembers {
  readonly #options: MembershipOptions;
  /** Whether a put that enters a list was given up: it may still land. */
  #mayJoin = false;
  /** How this instance is called where it says which versions it uses. Empty: it has said nothing yet. */
  #instance = '';

  constructor(options: MembershipOptions) {
    this.#options = options;
  }

  get isRegistered(): boolean {
    const { register, node } = this.#options;
    return node.isListed(register.current.block0);
  }

  /** Whether the id is one that this instance has taken itself, and has shown no sign of using for long. */
  get mustRenew(): boolean {
    const { register, node, clock } = this.#options;
    return node.mustRenew(register.current.block0, clock.now());
  }

  get #speaker(): Speaker {
    return { nodeId: this.#options.node.id, instance: this.#instance };
  }

  /** The list with this node in it. `remaining`: those that stay in it. */
  entering(present: Block0, remaining: readonly number[] = present.nodes): NodeList {
    const { node, clock } = this.#options;
    return node.entering(present, remaining, clock.now());
  }

  /** The list once this node has merged: with it, and without those that let their turns pass. */
  afterMerge(present: Block0): NodeList {
    return this.entering(present, this.#options.rotation.members(present.nodes));
  }

  /** Enters the list, with one attempt: if others come first, the next turn is time enough. */
  async join(): Promise<void> {
    const { environment, register, intervalMs, stopping } = this.#options;
    // Where a whole cluster starts at once, not all of them are to write Block 0 in the same moment.
    if (register.current.block0.nodes.length > 0) {
      await sleep(environment, (environment.random() * intervalMs) / 2, stopping).catch(() => undefined);
      if (stopping.aborted) return;
      await register.refresh(stopping);
    }
    if (stopping.aborted || this.isRegistered) return;
    await this.renew();
  }

  /** Writes the list with this node in it, with one attempt. */
  async renew(): Promise<void> {
    const { register, stopping } = this.#options;
    const { current } = register;
    const list = this.entering(current.block0);
    this.#mayJoin = true;
    await register.replace(current, withNodes(changeableOf(current.block0), list), stopping);
    this.#mayJoin = false;
  }

  /** Whether Block 0 is to be told which versions this instance uses. `versionOf`: of a table, null where it uses none. */
  mustSayVersions(block0: Block0, versionOf: (table: string) => number | null): boolean {
    return block0.migrations.some((migration) => this.#mustSay(block0, migration, versionOf(migration.table)));
  }

  #mustSay({ nodes }: Block0, migration: StoredMigration, version: number | null): boolean {
    const { nodeId, instance } = this.#speaker;
    // Who takes no turns matters only if it keeps the old version from going, or has said so before.
    const isSaid = migration.users.some((user) => user.instance === instance);
    if (!isSaid && !isOld(migration, version) && !nodes.includes(nodeId)) return false;
    return !isListed(migration, { nodeId, instance }, version);
  }

  /** Says in Block 0 which versions this instance uses. */
  async sayVersions(versionOf: (table: string) => number | null, signal: AbortSignal): Promise<void> {
    const { environment, register } = this.#options;
    if (this.#instance === '') this.#instance = newId(environment, 8);
    const speaker = this.#speaker;
    this.#mayJoin = true;
    await register.update((present) => {
      if (!this.mustSayVersions(present, versionOf)) return undefined;
      const migrations = present.migrations.map((migration) => {
        const version = versionOf(migration.table);
        if (!this.#mustSay(present, migration, version)) return migration;
        return withUser(migration, speaker, version, Math.floor(environment.now()), present.nodes);
      });
      return { ...changeableOf(present), migrations };
    }, signal);
    this.#mayJoin = false;
  }

  /** Leaves the list. That it could not is told to the log only: the others will notice. */
  async leave(signal: AbortSignal): Promise<void> {
    const { register, node, logger } = this.#options;
    // What may still land is only stopped by another Block 0.
    const speaker = this.#speaker;
    const isThere = (block0: Block0): boolean =>
      node.leaving(block0) !== block0 || block0.migrations.some((known) => withoutUser(known, speaker) !== known);
    if (!isThere(register.current.block0) && !this.#mayJoin) return;
    try {
      const { current } = register;
      // Mostly what is known is the newest, and need not be asked for.
      if (await register.replace(current, this.#without(current.block0, speaker), signal)) return;
      await register.update((present) => (isThere(present) ? this.#without(present, speaker) : undefined), signal);
    } catch (error) {
      logger.warn(`Node ${node.id} could not leave the list of nodes; the others will take its turns`, { error });
    }
  }

  /** What Block 0 says without this instance, also of the versions that it uses: it may come back with others. */
  #without(block0: Block0, speaker: Speaker): Block0Change {
    const migrations = block0.migrations.map((migration) => withoutUser(migration, speaker));
    return withNodes({ ...changeableOf(block0), migrations }, this.#options.node.leaving(block0));
  }
}
