/**
 * Checks the log in the store. The commits that Block 0 has not applied are read from slot to slot, and a listing shows commits
 * behind the end that is found so. A hole is damage: a commit is put into a slot only when the one before it is there.
 */
import { defined } from '../../base/options.ts';
import type { Environment } from '../../base/env.ts';
import { CorruptionError, isUnreadable } from '../../base/errors.ts';
import { dropsIn } from '../../format/commit.ts';
import type { Commit } from '../../format/commit.ts';
import { folders, parseCommitName } from '../../format/object-names.ts';
import { CommitLog } from '../../log/commit-log.ts';
import { listAll } from '../../storage/contract/driver.ts';
import type { StorageDriver } from '../../storage/contract/driver.ts';
import type { View } from '../../view/view.ts';

/** A commit behind a hole of the log. */
export interface StrandedCommit {
  /** Its slot in the log. */
  readonly slot: number;
  /** Its id; undefined where it cannot be read. */
  readonly commitId: string | undefined;
  /** The node that wrote it; undefined where it cannot be read. */
  readonly nodeId: number | undefined;
  /** When it was written, by the clock of that node; undefined where it cannot be read. */
  readonly at: Date | undefined;
  /** How many rows it changes in each table. */
  readonly rows: Readonly<Record<string, number>>;
  /** The tables that it drops. Absent if there are none, or if it cannot be read. */
  readonly drops?: readonly string[];
}

/** Damage of the log. */
export interface LogDamage {
  /** The first slot at which the log cannot be followed. */
  readonly slot: number;
  readonly message: string;
  /** Slots whose commits were acknowledged, and are missing or cannot be read. */
  readonly lostSlots: readonly number[];
  /** Commits that are there from that slot on, ascending. */
  readonly stranded: readonly StrandedCommit[];
}

export interface CheckedLog {
  /** The view with the commits that follow each other without a gap. */
  readonly tail: View;
  readonly damage: LogDamage | undefined;
}

interface LogPlace {
  readonly environment: Environment;
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly signal: AbortSignal | undefined;
}

/** Lists the slots after a slot that hold a commit. */
async function slotsAfter({ driver, prefix, signal }: LogPlace, slot: number): Promise<number[]> {
  const slots: number[] = [];
  for await (const { key } of listAll(driver, `${prefix}/${folders.commits}`, defined({ signal }))) {
    const found = parseCommitName(key.slice(prefix.length + 1));
    if (found !== undefined && found > slot) slots.push(found);
  }
  return slots;
}

/** Checks the log after the state of Block 0. `base`: the view of that. */
export async function checkLog(place: LogPlace, base: View): Promise<CheckedLog> {
  const log = new CommitLog(place.environment, place.driver, place.prefix);
  let tail = base;
  for (;;) {
    const read = await readOn(log, tail, place.signal);
    ({ tail } = read);
    const later = await slotsAfter(place, tail.tail);
    const slot = tail.tail + 1;
    if (later.length === 0) return { tail, damage: undefined };
    // The commit may have been put after it was looked for. A listing can show a later commit and not this one.
    if (read.problem === undefined && (await readSlot(log, slot, place.signal)).isThere) continue;
    const last = later.at(-1) as number;
    const message = read.problem ?? `The commit is missing, and there are later ones (up to slot ${last})`;
    return { tail, damage: await damageOf(log, slot, later, message, place.signal) };
  }
}

/** Reads on as long as each commit follows the one before it. */
async function readOn(
  log: CommitLog,
  from: View,
  signal: AbortSignal | undefined,
): Promise<{ readonly tail: View; readonly problem?: string }> {
  for (let tail = from; ; ) {
    try {
      const commit = await log.read(tail.tail + 1, signal);
      if (commit === undefined) return { tail };
      if (!tail.isFollowedBy(commit)) {
        const problem = `The commit follows commit ${commit.previousId}, and commit ${tail.tailId} is in the slot before it`;
        return { tail, problem };
      }
      tail = tail.withCommit({ slot: tail.tail + 1, commit });
    } catch (error) {
      if (!(error instanceof CorruptionError)) throw error;
      return { tail, problem: error.message };
    }
  }
}

async function damageOf(
  log: CommitLog,
  slot: number,
  later: readonly number[],
  message: string,
  signal: AbortSignal | undefined,
): Promise<LogDamage> {
  const stranded: StrandedCommit[] = [];
  const lostSlots: number[] = [];
  const last = later.at(-1) as number;
  for (let at = slot; at <= last; at++) {
    const { commit, isThere } = await readSlot(log, at, signal);
    if (commit === undefined) lostSlots.push(at);
    if (isThere) stranded.push(describeStranded(at, commit));
  }
  return { slot, message, lostSlots, stranded };
}

/** Reads the commit in a slot; undefined where it is missing or cannot be read. */
export async function readSlot(
  log: CommitLog,
  slot: number,
  signal: AbortSignal | undefined,
): Promise<{ readonly commit: Commit | undefined; readonly isThere: boolean }> {
  try {
    const commit = await log.read(slot, signal);
    return { commit, isThere: commit !== undefined };
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return { commit: undefined, isThere: true };
  }
}

/** Describes a commit behind a hole for a report. */
export function describeStranded(slot: number, commit: Commit | undefined): StrandedCommit {
  const rows: Record<string, number> = {};
  for (const { changes } of commit?.members ?? []) {
    for (const { schema, node } of changes) rows[schema.name] = (rows[schema.name] ?? 0) + node.totalCount();
  }
  return {
    slot,
    commitId: commit?.commitId,
    nodeId: commit?.nodeId,
    at: commit === undefined ? undefined : new Date(commit.atMs),
    rows,
    ...(commit && dropsIn(commit)),
  };
}
