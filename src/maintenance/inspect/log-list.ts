/** Lists the commits of the log, newest first, without their rows. */
import type { Engine } from '../../engine/engine.ts';
import { dropsIn } from '../../format/commit.ts';
import type { Commit } from '../../format/commit.ts';
import type { CommitLog } from '../../log/commit-log.ts';
import type { LogOptions } from './inspect-options.ts';

/** A commit of the log, as `db.log()` lists it. */
export interface CommitInfo {
  /** Its position in the log: `db.changes({ after: position - 1 })` begins with its rows. */
  readonly position: number;
  /** Its id, as errors with an unknown outcome name it. */
  readonly commitId: string;
  /** Id of the node that wrote it. */
  readonly nodeId: number;
  /** When it was written, by that node's clock. */
  readonly writtenAt: Date;
  /** Number of flushes that became this commit together. */
  readonly flushes: number;
  /** Number of rows that it inserts, changes or deletes, by table, system tables included. */
  readonly rows: Readonly<Record<string, number>>;
  /** The tables that it drops. Absent if there are none. */
  readonly drops?: readonly string[];
  /** Whether it is merged into blocks. */
  readonly merged: boolean;
}

/** Requests at the same time. */
const concurrency = 8;
const defaultLimit = 20;

/** Counts the rows that a commit changes, by table. */
export function rowsOf({ members }: Commit): Record<string, number> {
  const rows: Record<string, number> = {};
  for (const { schema, node } of members.flatMap(({ changes }) => changes)) {
    rows[schema.name] = (rows[schema.name] ?? 0) + node.totalCount();
  }
  return rows;
}

/** Returns the newest commits that the log still holds, before a position. Pending ones are in memory, and others take a request each. */
export async function listCommits(
  { view }: Engine,
  log: CommitLog,
  { limit = defaultLimit, before = Infinity }: Omit<LogOptions, 'signal'>,
  signal: AbortSignal | undefined,
): Promise<CommitInfo[]> {
  const { appliedSeq, logFloor } = view.block0;
  const found: CommitInfo[] = [];
  for (let to = Math.min(view.tail, before - 1); to > logFloor && found.length < limit; ) {
    const count = Math.min(concurrency, limit - found.length, to - logFloor);
    const slots = Array.from({ length: count }, (_, i) => to - i);
    const read = async (slot: number): Promise<Commit | undefined> =>
      view.pending.find((logged) => logged.slot === slot)?.commit ?? (await log.read(slot, signal));
    const commits = await Promise.all(slots.map(read));
    for (const [i, commit] of commits.entries()) {
      // Garbage collection deletes commits from the first on: there are none before.
      if (commit === undefined) return found;
      found.push(infoOf(slots[i] as number, commit, appliedSeq));
    }
    to -= count;
  }
  return found;
}

function infoOf(position: number, commit: Commit, appliedSeq: number): CommitInfo {
  const { commitId, nodeId, atMs, members } = commit;
  const merged = position <= appliedSeq;
  return {
    position,
    commitId,
    nodeId,
    writtenAt: new Date(atMs),
    flushes: members.length,
    rows: rowsOf(commit),
    ...dropsIn(commit),
    merged,
  };
}
