/**
 * The status of migrations as `db.migrationStatus()` returns it: progress, and the blockers. Also the small steps of a
 * migration that make no rows, such as cancelling it, and the entry that an instance makes in Block 0 before `start()`
 * resolves, if it uses an old version.
 */
import type { Registry } from '../catalog/registry.ts';
import { isOld } from '../coordination/membership.ts';
import type { Engine } from '../engine/engine.ts';
import type { Block0 } from '../format/block0.ts';
import type { MigrationPhase, StoredMigration, VersionUser, MigrationTarget } from '../format/stored-table.ts';
import type { MergedTable } from '../merge/merge-table.ts';
import { isSameTree } from '../tree/tree.ts';
import type { View } from '../view/view.ts';

/** The progress of a table's migration, as `db.migrationStatus()` returns it. */
export interface MigrationStatus {
  /** Name of the table. */
  readonly table: string;
  /**
   * `none`: one version only. `dual-write`: instances write a newer version too, and nobody has asked for the migration of the
   * other rows. `building`: the other rows are being migrated. `blocked`: some rows cannot be migrated; the old version stays
   * active. `switched`: all rows are migrated, and the old version stays until somebody asks for its end.
   */
  readonly state: 'none' | 'dual-write' | 'building' | 'blocked' | 'switched';
  /** The active version, until it is retired; null if the table is not stored. */
  readonly from: number | null;
  /** The version that the table is migrated to; null without a migration. */
  readonly to: number | null;
  /** Rows stored in the new version, without pending commits. */
  readonly rowsDone: number;
  /** Rows of the table, without pending commits. */
  readonly rowsTotal: number;
  /** Rows migrated per second recently, as seen by this instance. */
  readonly rowsPerSecond: number;
  /**
   * Reasons why the migration cannot go on, one sentence each: rows that cannot be migrated, instances that still use the old
   * version.
   */
  readonly blockers: readonly string[];
  /**
   * Instances that are known to use the old version, or that died without reporting that they stop. Replicas write nothing and
   * are not listed; neither is an instance that has not looked at the store since the migration began.
   */
  readonly users: readonly OldVersionUser[];
}

/** An instance that uses the old version of a table during a migration. */
export interface OldVersionUser {
  /** Id of its node, which other instances may share. */
  readonly nodeId: number;
  /** The newest version that it has registered; null if it has not reported one yet. */
  readonly version: number | null;
  /** When it reported that, by its own clock; null if unknown. */
  readonly since: Date | null;
}

/**
 * Returns the public name of a phase. Without a phase, rows are written in both versions, and no merge has stored the migration
 * yet.
 */
export function stateOf(phase: MigrationPhase | undefined): MigrationStatus['state'] {
  return phase === undefined || phase === 'beside' ? 'dual-write' : phase;
}

/** Returns the instances that prevent the old version of a migration from being retired. */
export function usersOfOld({ nodes }: Block0, migration: StoredMigration): OldVersionUser[] {
  const { users } = migration;
  const counts = ({ nodeId, instance }: VersionUser): boolean => instance !== undefined || nodes.includes(nodeId);
  const old = users.filter((user) => isOld(migration, user.version) && counts(user));
  const silent = nodes.filter((nodeId) => !users.some((user) => user.nodeId === nodeId));
  return [
    ...old.map(({ nodeId, version, sinceMs }) => ({ nodeId, version, since: sinceMs ? new Date(sinceMs) : null })),
    ...silent.map((nodeId) => ({ nodeId, version: null, since: null })),
  ];
}

/** Returns one sentence for each instance. */
export function describeUsers(users: readonly OldVersionUser[]): string[] {
  return users.map(({ nodeId, version, since }) => {
    if (version === null) return `Node ${nodeId} has not reported yet which version it uses.`;
    const from = since === null ? '' : ` since ${since.toISOString()}`;
    return `An instance of node ${nodeId} uses version ${version}${from}.`;
  });
}

function blockersOf(block0: Block0, migration: StoredMigration): string[] {
  const { from, phase, to, users, problems, target } = migration;
  const blockers = problems.map(({ key, message }) => `Row ${key}: ${message}`);
  if (phase === 'beside') return [...blockers, `Nobody has called setTargetSchemaVersion() with version ${to}.`];
  if (phase === 'building' && !users.some(({ nodeId, version }) => version === to && block0.nodes.includes(nodeId))) {
    blockers.push(`No registered node is known to have registered version ${to}, whose code is needed.`);
  }
  if (phase !== 'switched' || target?.retire === 'asked') return blockers;
  if (target?.retire === undefined) blockers.push(`Version ${from} stays until finishMigration() is called.`);
  return [...blockers, ...describeUsers(usersOfOld(block0, migration))];
}

/** Returns the migration status of a table in a view. */
export function statusOf(view: View, table: string, rowsPerSecond: number): MigrationStatus {
  const active = view.table(table);
  const nextVersion = view.nextVersion(table);
  const rowsTotal = active?.tree.count ?? 0;
  const from = active?.shape.version ?? null;
  if (nextVersion === undefined) {
    return {
      table,
      state: 'none',
      from,
      to: null,
      rowsDone: rowsTotal,
      rowsTotal,
      rowsPerSecond: 0,
      blockers: [],
      users: [],
    };
  }
  const { migration, rows } = nextVersion;
  const to = rows.shape.version;
  const rowsDone = Math.min(rows.tree.count, rowsTotal);
  const state = stateOf(migration?.phase);
  const blockers = migration === undefined ? [] : blockersOf(view.block0, migration);
  const users = migration === undefined ? [] : usersOfOld(view.block0, migration);
  return { table, state, from, to, rowsDone, rowsTotal, rowsPerSecond, blockers, users };
}

const windowMs = 60_000;
const maxSamples = 64;

/** Measures how many rows are recently added to new versions, per second. */
export class MigrationRates {
  readonly #samples = new Map<string, { readonly ms: number; readonly rows: number }[]>();

  note(table: string, ms: number, rows: number): void {
    const samples = this.#samples.get(table) ?? [];
    const last = samples.at(-1);
    // Another migration of the same table has begun.
    if (last !== undefined && rows < last.rows) samples.length = 0;
    samples.push({ ms, rows });
    while (samples.length > 2 && (ms - (samples[0]?.ms ?? ms) > windowMs || samples.length > maxSamples))
      samples.shift();
    this.#samples.set(table, samples);
  }

  forget(table: string): void {
    this.#samples.delete(table);
  }

  rowsPerSecond(table: string): number {
    const samples = this.#samples.get(table) ?? [];
    const [first, last] = [samples[0], samples.at(-1)];
    if (first === undefined || last === undefined || last.ms <= first.ms) return 0;
    return Math.round(((last.rows - first.rows) * 1000) / (last.ms - first.ms));
  }
}

/** Returns the change that cancels a migration: it drops the next version and everything made for it. */
export function cancelled({ table, to }: StoredMigration): MergedTable {
  return { name: table, versions: [], dropped: [to], migration: () => undefined };
}

/** Whether no row has changed since its row of the next version was made. */
export function isInStep(view: View, table: string): boolean {
  return isSameTree(view.table(table)?.tree, view.nextVersion(table)?.base.tree);
}

/** Returns a migration with the request to retire its old version. */
export function withEndAsked(migration: StoredMigration): StoredMigration {
  return { ...migration, target: { rowsPerSecond: 50_000, ...migration.target, keepOld: true, retire: 'asked' } };
}

/** Returns a migration that was requested: the same trees, in another phase. */
export function askedFor(migration: StoredMigration, target: MigrationTarget): StoredMigration {
  const { phase } = migration;
  return { ...migration, target, problems: [], phase: phase === 'switched' ? 'switched' : 'building' };
}

/**
 * Records in Block 0 that this instance uses old versions, if it does, so that nobody retires them unnoticed. That takes one
 * write, and only while tables are being migrated.
 */
export async function sayOldVersions(engine: Engine, registry: Registry): Promise<void> {
  const versionOf = (table: string): number | null => registry.shape(table)?.version ?? null;
  const usesOld = engine.view.block0.migrations.some((migration) => isOld(migration, versionOf(migration.table)));
  if (!usesOld || !engine.mustSayVersions(versionOf)) return;
  await engine.withDeadline('db.start()', undefined, ({ signal }) => engine.sayVersions(versionOf, signal));
}
