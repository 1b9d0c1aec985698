/** The earlier states that a database keeps: those of its snapshots, and of its history. */
import { CorruptionError } from '../../base/errors.ts';
import type { Block0 } from '../../format/block0.ts';
import { historyName, rootName } from '../../format/keys.ts';
import type { Block0Reader } from '../../block0/block0-reader.ts';
import type { RequestOptions } from '../../storage/contract/driver.ts';

/** A state that is kept, and the object that holds its Block 0. */
export interface RetainedState {
  readonly name: string;
  readonly generation: number;
  /** Id of the snapshot that it belongs to; undefined for history. */
  readonly snapshot?: string;
}

/** The states of the snapshots that a Block 0 names. */
export function pinnedStates({ snapshots }: Block0): RetainedState[] {
  return snapshots.map(({ id, generation }) => ({ name: rootName(id), generation, snapshot: id }));
}

/** The states of the history that a Block 0 keeps, ascending: one for every generation. */
export function historyStates({ history, generation: present }: Block0): RetainedState[] {
  const states: RetainedState[] = [];
  if (history === null) return states;
  for (let generation = history.floor; generation < present; generation++) {
    states.push({ name: historyName(generation), generation });
  }
  return states;
}

/** Reads a kept state. Throws `CorruptionError` if it is missing or damaged. */
export async function readRetainedState(
  reader: Block0Reader,
  { name }: RetainedState,
  options: RequestOptions,
): Promise<Block0> {
  let kept: Block0 | undefined;
  try {
    kept = await reader.readKept(name, options);
  } catch (cause) {
    if (!(cause instanceof CorruptionError)) throw cause;
    throw new CorruptionError(name, 'The root of a state that is kept is damaged', { cause });
  }
  if (kept === undefined) throw new CorruptionError(name, 'The root of a state that is kept is missing');
  return kept;
}
