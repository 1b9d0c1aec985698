/**
 * Which instance uses which version of a table that is being migrated, as Block 0 lists it. It is a list of instances and not
 * of nodes: an old and a new process may have one id. It decides nothing but whether an old version may go without being asked.
 *
 * Invariant: an instance that uses the old version leaves the list only by its own write. An instance that crashed stays in it.
 */
import type { StoredMigration, VersionUser } from '../format/stored-table.ts';

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
