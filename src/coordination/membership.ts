/**
 * This node's entry in Block 0's list of nodes, which take turns. A node enters with its first turn or merge and leaves when it is
 * stopped; a node that crashed stays listed until others remove it. No data depends on the list: nothing is lost if it is wrong.
 *
 * Also the lists of the instances that use each version of a table under migration. An instance leaves such a list only by its own
 * write; one that crashed stays in it. The list decides only whether an old version may be retired without being asked for.
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
import type { StoredMigration, VersionUser } from '../format/stored-table.ts';
import type { MergeMembers } from '../merge/merger.ts';
import type { StoreClock } from '../storage/contract/store-clock.ts';
import type { MergeRotation } from './merge-rotation.ts';

/**
 * The role of an instance. `writer`: reads, writes, and merges in turns. `ephemeral`: reads and writes for as long as a request or a
 * job takes; it takes no turns, and merges with a commit of its own. `replica`: follows the log and reads, with credentials that need
 * not allow writes.
 */
export type Role = 'writer' | 'ephemeral' | 'replica';

/** Every value of {@link Role}. */
export const roles: readonly Role[] = ['writer', 'ephemeral', 'replica'];

export interface MembershipOptions {
  readonly environment: Environment;
  readonly register: Block0Register;
  readonly logger: Logger;
  readonly node: NodeIdentity;
  readonly clock: StoreClock;
  readonly rotation: MergeRotation;
  readonly intervalMs: number;
  /** Aborted when the instance is stopped. */
  readonly stopping: AbortSignal;
}

export class Membership implements MergeMembers {
  readonly #options: MembershipOptions;
  /** Whether a put that enters the list was given up: it may still land. */
  #mayJoin = false;
  /** The name of this instance in the lists of versions in use. Empty: it is in none yet. */
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

  /** Returns the list with this node in it. `remaining`: the nodes that stay in it. */
  entering(present: Block0, remaining: readonly number[] = present.nodes): NodeList {
    const { node, clock } = this.#options;
    return node.entering(present, remaining, clock.now());
  }

  /** Returns the list after a merge by this node: with it, and without the nodes that let their turns pass. */
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

  /** Whether Block 0 must record other versions in use by this instance. `versionOf`: the version of a table; null if it uses none. */
  mustSayVersions(block0: Block0, versionOf: (table: string) => number | null): boolean {
    return block0.migrations.some((migration) => this.#mustSay(block0, migration, versionOf(migration.table)));
  }

  #mustSay({ nodes }: Block0, migration: StoredMigration, version: number | null): boolean {
    const { nodeId, instance } = this.#speaker;
    // An instance that takes no turns matters only if it keeps the old version in use, or is in the list already.
    const isSaid = migration.users.some((user) => user.instance === instance);
    if (!isSaid && !isOld(migration, version) && !nodes.includes(nodeId)) return false;
    return !isListed(migration, { nodeId, instance }, version);
  }

  /** Records in Block 0 the versions that this instance uses. */
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

  /** Leaves the list. A failure is only logged: the other nodes will notice. */
  async leave(signal: AbortSignal): Promise<void> {
    const { register, node, logger } = this.#options;
    // A put that may still land is only stopped by another Block 0.
    const speaker = this.#speaker;
    const isThere = (block0: Block0): boolean =>
      node.leaving(block0) !== block0 || block0.migrations.some((known) => withoutUser(known, speaker) !== known);
    if (!isThere(register.current.block0) && !this.#mayJoin) return;
    try {
      const { current } = register;
      // The known Block 0 is mostly the newest, and need not be read.
      if (await register.replace(current, this.#without(current.block0, speaker), signal)) return;
      await register.update((present) => (isThere(present) ? this.#without(present, speaker) : undefined), signal);
    } catch (error) {
      logger.warn(`Node ${node.id} could not leave the list of nodes; the others will take its turns`, { error });
    }
  }

  /** Returns the Block 0 without this instance and its versions: it may come back with others. */
  #without(block0: Block0, speaker: Speaker): Block0Change {
    const migrations = block0.migrations.map((migration) => withoutUser(migration, speaker));
    return withNodes({ ...changeableOf(block0), migrations }, this.#options.node.leaving(block0));
  }
}

/** The most instances listed one by one for a migration; beyond that, the instances of one node and version share one entry. */
const maxListed = 64;
/** Stands for several instances of a node. */
const several = '*';

/** The instance that speaks. */
export interface Speaker {
  readonly nodeId: number;
  readonly instance: string;
}

/** Whether a version is one that is to go. */
export function isOld({ to }: StoredMigration, version: number | null): boolean {
  return version !== null && version < to;
}

/** Whether the list says of an instance that it uses a version. Of a version that stays, any instance of the node will do. */
export function isListed(migration: StoredMigration, { nodeId, instance }: Speaker, version: number | null): boolean {
  return migration.users.some((user) => {
    if (user.nodeId !== nodeId || user.version !== version) return false;
    return user.instance === instance || user.instance === several || !isOld(migration, version);
  });
}

/** Returns the migration with an instance's version in its list. `nodes`: the registered nodes. */
export function withUser(
  migration: StoredMigration,
  speaker: Speaker,
  version: number | null,
  sinceMs: number,
  nodes: readonly number[],
): StoredMigration {
  const { nodeId, instance } = speaker;
  const others = migration.users.filter((user) => {
    if (user.instance === instance) return false;
    // Older releases wrote entries of nodes, which go with the nodes.
    if (user.instance === undefined) return user.nodeId !== nodeId && nodes.includes(user.nodeId);
    return isOld(migration, user.version) || user.nodeId !== nodeId;
  });
  const users: readonly VersionUser[] = [...others, { nodeId, version, instance, sinceMs }];
  return { ...migration, users: users.length > maxListed ? together(users) : users };
}

/** The list without an instance that ends. */
export function withoutUser(migration: StoredMigration, { nodeId, instance }: Speaker): StoredMigration {
  const users = migration.users.filter((user) => {
    return user.instance === undefined ? user.nodeId !== nodeId : user.instance !== instance;
  });
  return users.length === migration.users.length ? migration : { ...migration, users };
}

/** Returns one entry for each node and version: an instance that is not known to have ended is never forgotten. */
function together(users: readonly VersionUser[]): VersionUser[] {
  const known = new Map<string, VersionUser>();
  for (const user of users) {
    const key = `${user.nodeId} ${user.version}`;
    const first = known.get(key);
    known.set(key, first === undefined ? user : { ...first, instance: several });
  }
  return [...known.values()];
}
