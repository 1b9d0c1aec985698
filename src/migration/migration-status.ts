/** What `db.migrationStatus()` tells: how far a migration is, and what it waits for. */
import type { Block0 } from '../format/block0.ts';
import type { MigrationPhase, StoredMigration } from '../format/stored-migration.ts';
import type { View } from '../table/view.ts';

/** How far the migration of a table is, as `db.migrationStatus()` tells it. */
export interface MigrationStatus {
  /** Name of the table. */
  readonly table: string;
  /**
   * `none`: one version only. `beside`: instances write a newer version too, and nobody has asked for the rest of it.
   * `building`: the other rows are being made. `blocked`: some cannot be; the old version stays in force. `switched`: all are
   * there, and the old version lives on while registered nodes use it.
   */
  readonly state: 'none' | MigrationPhase;
  /** The version whose rows are the truth until it is retired; null if nothing is stored of the table. */
  readonly from: number | null;
  /** The version that comes up beside it, null without a migration. */
  readonly to: number | null;
  /** Rows that are there of the new version, merged. */
  readonly rowsDone: number;
  /** Rows of the table, merged. */
  readonly rowsTotal: number;
  /** Rows a second that were added of late, as this instance has seen it. */
  readonly rowsPerSecond: number;
  /** What stands in the way, one sentence each: rows that cannot be migrated, nodes that still use the old version. */
  readonly blockers: readonly string[];
}

/** The nodes of a database that stand in the way of retiring the version that a migration comes from. */
export function nodesUsingOld({ nodes }: Block0, { to, users }: StoredMigration): string[] {
  const versions = new Map(users.map(({ nodeId, version }) => [nodeId, version]));
  return nodes.flatMap((nodeId) => {
    const version = versions.get(nodeId);
    if (version === undefined) return [`Node ${nodeId} has not said yet which version it uses.`];
    return version === null || version >= to ? [] : [`Node ${nodeId} uses version ${version}.`];
  });
}

function blockersOf(block0: Block0, migration: StoredMigration): string[] {
  const { phase, to, users, problems, target } = migration;
  const blockers = problems.map(({ key, message }) => `Row ${key}: ${message}`);
  if (phase === 'beside') return [...blockers, `Nobody has called setTargetSchemaVersion() with version ${to}.`];
  if (phase === 'building' && !users.some(({ nodeId, version }) => version === to && block0.nodes.includes(nodeId))) {
    blockers.push(`No registered node is known to have registered version ${to}, whose code is needed.`);
  }
  if (phase !== 'switched') return blockers;
  if (target?.keepOld === true) return [...blockers, 'Option keepOld keeps the old version.'];
  return [...blockers, ...nodesUsingOld(block0, migration)];
}

/** The status of a table in a view. */
export function statusOf(view: View, table: string, rowsPerSecond: number): MigrationStatus {
  const truth = view.table(table);
  const beside = view.beside(table);
  const rowsTotal = truth?.tree.count ?? 0;
  const from = truth?.shape.version ?? null;
  if (beside === undefined) {
    return { table, state: 'none', from, to: null, rowsDone: rowsTotal, rowsTotal, rowsPerSecond: 0, blockers: [] };
  }
  const { migration, rows } = beside;
  const to = rows.shape.version;
  const rowsDone = Math.min(rows.tree.count, rowsTotal);
  const state = migration?.phase ?? 'beside';
  const blockers = migration === undefined ? [] : blockersOf(view.block0, migration);
  return { table, state, from, to, rowsDone, rowsTotal, rowsPerSecond, blockers };
}

const windowMs = 60_000;
const maxSamples = 64;

/** How fast the rows of new versions grow in number, from what was seen of late. */
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
