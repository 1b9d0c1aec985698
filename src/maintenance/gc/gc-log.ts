/**
 * Trims the log: raises its floor over slots that are applied and have been there for a while, and deletes what lies at
 * or under the floor. The retention serves slow readers, not safety, and goes by the store's own clock. What a pin reads stays.
 */
import type { Block0 } from '../../format/block0.ts';
import { folders, parseCommitName } from '../../format/keys.ts';
import { changeableOf } from '../../block0/block0-register.ts';
import type { Block0Register } from '../../block0/block0-register.ts';
import type { ListEntry } from '../../storage/contract/driver.ts';
import type { GarbageStore } from './gc-store.ts';

export interface LogTrimOptions {
  readonly store: GarbageStore;
  readonly register: Block0Register;
  readonly dryRun: boolean;
  /** Whether a commit that was written then has been there for long enough. */
  readonly isOld: (writtenMs: number) => Promise<boolean>;
  readonly signal: AbortSignal | undefined;
}

type Slot = ListEntry & { readonly name: string; readonly slot: number };

/** Returns the floor. */
export async function trimLog(block0: Block0, options: LogTrimOptions): Promise<number> {
  const { store, register, isOld, dryRun, signal } = options;
  const slots: Slot[] = [];
  for await (const entry of store.list(folders.commits)) {
    const slot = parseCommitName(entry.name);
    // What is applied later is for a later run.
    if (slot !== undefined && slot <= block0.appliedSeq) slots.push({ ...entry, slot });
  }
  if (slots.length === 0) return block0.logFloor;
  // Slots are trimmed in order: the first that is too young keeps all after it.
  let wanted = block0.appliedSeq;
  for (const { slot, lastModifiedMs } of slots) {
    if (slot <= block0.logFloor || (await isOld(lastModifiedMs))) continue;
    wanted = slot - 1;
    break;
  }
  let floor = floorBelowPins(wanted, block0);
  if (!dryRun) {
    await register.update((present) => {
      const logFloor = floorBelowPins(wanted, present);
      return present.logFloor >= logFloor ? undefined : { ...changeableOf(present), logFloor };
    }, signal);
    // Read back: what is deleted next rests on a floor that is stored for certain.
    floor = (await register.refresh(signal)).block0.logFloor;
  }
  for (const { name, slot, sizeBytes } of slots) {
    if (slot > floor) continue;
    await store.delete({
      kind: 'commit',
      name,
      sizeBytes,
      reason: `applied, and at or under the log's floor ${floor}`,
    });
  }
  await store.finish();
  return floor;
}

/** The highest floor, up to one that is wanted, under which nothing lies that a pin reads. */
function floorBelowPins(wanted: number, { snapshots }: Block0): number {
  return Math.min(wanted, ...snapshots.flatMap(({ readsLog, appliedSeq }) => (readsLog ? [appliedSeq] : [])));
}
