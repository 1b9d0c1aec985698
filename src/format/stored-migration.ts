/**
 * A migration of a table as Block 0 holds it: which version is active, which one comes up beside it, and how far that is
 * (docs/protocol.md, "Migrations").
 */
import { isBase64, isCount, isRoot } from './stored-root.ts';
import type { StoredRoot } from './stored-root.ts';

const phases = ['beside', 'building', 'blocked', 'switched'] as const;

/**
 * `beside`: instances with the new version write it, and nobody has asked for the rest; `building`: its other rows are
 * made; `blocked`: some cannot be; `switched`: all are made, and the old version lives on for those who still use it.
 */
export type MigrationPhase = (typeof phases)[number];

/** A row that cannot be brought to the new version. */
export interface MigrationProblem {
  /** Its primary key, for people. */
  readonly key: string;
  readonly message: string;
}

/** The newest version of a table that an instance has registered; null: none. */
export interface VersionUser {
  readonly nodeId: number;
  readonly version: number | null;
  /** Which instance of the node: two may have one id. `*`: several; absent: written by an older release, for all of the node. */
  readonly instance?: string;
  /** When it said so, by its own clock. */
  readonly sinceMs?: number;
}

/** How the old version may go: `unused`, once no instance is known to use it; `asked`, since somebody has asked for its end. */
export type Retire = 'unused' | 'asked';

/** What whoever asked for the new version said about how to bring it up. */
export interface MigrationTarget {
  /** Rows a second that one node makes at most. */
  readonly rowsPerSecond: number;
  /** For nodes of older releases, which would take false for leave to retire the old version on a guess. */
  readonly keepOld: boolean;
  /** Absent: the old version stays. */
  readonly retire?: Retire;
}

export interface StoredMigration {
  readonly table: string;
  /** The active version: its trees hold all rows until it is retired. */
  readonly from: number;
  /** The one that comes up beside it. */
  readonly to: number;
  readonly phase: MigrationPhase;
  /** Rows of `from`: for every key with a row of `to`, the one that it goes with. What it holds of other keys says nothing. */
  readonly base: StoredRoot;
  /** The last key whose row of `to` was made, as base64: empty before the first, null once all are. */
  readonly built: string | null;
  readonly users: readonly VersionUser[];
  /** Why it is blocked. */
  readonly problems: readonly MigrationProblem[];
  /** Generation of Block 0 that first had it: no two migrations of a database have the same. */
  readonly birth: number;
  /** Absent in phase `beside`: nobody has asked for the new version. */
  readonly target?: MigrationTarget;
}

function isProblem(value: unknown): value is MigrationProblem {
  if (typeof value !== 'object' || value === null) return false;
  const { key, message } = value as Record<string, unknown>;
  return typeof key === 'string' && typeof message === 'string';
}

function isUser(value: unknown): value is VersionUser {
  if (typeof value !== 'object' || value === null) return false;
  const { nodeId, version, instance, sinceMs } = value as Record<string, unknown>;
  if (instance !== undefined && typeof instance !== 'string') return false;
  if (sinceMs !== undefined && typeof sinceMs !== 'number') return false;
  return isCount(nodeId) && (version === null || isCount(version));
}

function isTarget(value: unknown): value is MigrationTarget {
  if (typeof value !== 'object' || value === null) return false;
  const { rowsPerSecond, keepOld, retire } = value as Record<string, unknown>;
  if (retire !== undefined && retire !== 'unused' && retire !== 'asked') return false;
  return isCount(rowsPerSecond) && rowsPerSecond > 0 && typeof keepOld === 'boolean';
}

/** Whether parsed JSON is a migration. */
export function isStoredMigration(value: unknown): value is StoredMigration {
  if (typeof value !== 'object' || value === null) return false;
  const { table, from, to, phase, base, built, users, problems, birth, target } = value as Record<string, unknown>;
  if (typeof table !== 'string' || !isCount(from) || !isCount(to) || to <= from) return false;
  if (!phases.some((known) => known === phase) || !isRoot(base) || !(built === null || isBase64(built))) return false;
  if (phase === 'switched' && built !== null) return false;
  if (target === undefined ? phase !== 'beside' : !isTarget(target)) return false;
  if (!Array.isArray(users) || !users.every(isUser)) return false;
  return Array.isArray(problems) && problems.every(isProblem) && isCount(birth);
}
