/**
 * Lists every object under the prefix, and decides for each: the database refers to it or may come to; garbage collection would
 * remove it; or it does not belong to the database. Shares no code with garbage collection, so that each checks the other.
 */
import { isUnreadable, CorruptionError } from '../../base/errors.ts';
import { defined } from '../../base/options.ts';
import type { Block0Reader } from '../../block0/block0-reader.ts';
import { isListed } from '../../catalog/blob-lists.ts';
import type { Block0 } from '../../format/block0.ts';
import {
  block0Name,
  parseBlobName,
  parseBlockName,
  parseCommitName,
  parseHistoryName,
  parseRootName,
  parseStagedName,
  probePrefix,
  rootName,
  historyName,
} from '../../format/object-names.ts';
import { listAll } from '../../storage/contract/driver.ts';
import type { RequestOptions } from '../../storage/contract/driver.ts';
import type { View } from '../../view/view.ts';
import type { CheckRun } from './check-run.ts';

/** Objects that nothing needs, and that `db.gc()` would remove. */
export interface GarbageCount {
  /** Number of objects. */
  readonly objects: number;
  /** Their size in bytes, all together. */
  readonly bytes: number;
}

export interface CensusOptions {
  readonly run: CheckRun;
  readonly block0: Block0;
  readonly base: View;
  readonly tail: View;
  /** The views of the snapshots. */
  readonly pinned: readonly View[];
  /** The first state of the history. */
  readonly oldest: View | undefined;
}

/** `kept`: something refers to the object, or may come to. `unsure`: damage hides whether anything does. */
type Standing = 'kept' | 'garbage' | 'unsure' | 'unknown';

/** Most names of unknown objects in a report. */
const maxUnknown = 1000;

export class ObjectCensus {
  readonly #options: CensusOptions;
  readonly #pinnedNames: ReadonlySet<string>;
  readonly unknownObjects: string[] = [];
  #objects = 0;
  #bytes = 0;

  constructor(options: CensusOptions) {
    this.#options = options;
    this.#pinnedNames = new Set(options.block0.snapshots.map(({ id }) => rootName(id)));
  }

  get garbage(): GarbageCount {
    return { objects: this.#objects, bytes: this.#bytes };
  }

  async take(): Promise<void> {
    const { run } = this.#options;
    const { driver, prefix } = run.options;
    const start = prefix.length + 1;
    for await (const { key, sizeBytes } of listAll(driver, `${prefix}/`, defined({ signal: run.signal }))) {
      const paused = run.pause();
      if (paused !== undefined) await paused;
      const name = key.slice(start);
      const standing = await this.#standingOf(name);
      if (standing === 'garbage') {
        this.#objects++;
        this.#bytes += sizeBytes;
      } else if (standing === 'unknown' && this.unknownObjects.length < maxUnknown) this.unknownObjects.push(name);
    }
  }

  async #standingOf(name: string): Promise<Standing> {
    if (name === block0Name || name.startsWith(probePrefix)) return 'kept';
    const { run, block0 } = this.#options;
    const slot = parseCommitName(name);
    // Commits over the floor may still be read, and the one at the floor holds its slot.
    if (slot !== undefined) return slot < block0.logFloor ? 'garbage' : 'kept';
    const birth = parseBlockName(name)?.birth;
    if (birth !== undefined) {
      // It belongs to a merge that is under way or was given up. Which of the two, the next generation shows.
      if (birth > block0.generation || run.reached.has(name)) return 'kept';
      return run.reachedAll ? 'garbage' : 'unsure';
    }
    const blob = parseBlobName(name);
    if (blob !== undefined) return this.#blobStanding(blob);
    const stagedFor = parseStagedName(name);
    if (stagedFor !== undefined) return stagedFor <= block0.logFloor ? 'garbage' : 'kept';
    return this.#rootStanding(name);
  }

  async #blobStanding(blob: string): Promise<Standing> {
    const { run, base, tail, pinned, oldest } = this.#options;
    try {
      // A blob in neither list is being uploaded, or waits to be condemned.
      if ((await isListed(tail, '_blobs', blob)) || !(await isListed(base, '_deleted_blobs', blob))) return 'kept';
      for (const view of pinned) if (await isListed(view, '_blobs', blob)) return 'kept';
      // A blob that was deleted before the history begins is shown by no state of the history.
      if (oldest !== undefined && !(await isListed(oldest, '_deleted_blobs', blob))) return 'kept';
      return run.reachedAll ? 'garbage' : 'unsure';
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      return 'unsure';
    }
  }

  /** Judges roots of snapshots and history: kept while Block 0 names them, and while their generation can still be pinned. */
  #rootStanding(name: string): Standing {
    const { collected, history } = this.#options.block0;
    const pinned = parseRootName(name)?.generation;
    if (pinned !== undefined) {
      const isKept = this.#pinnedNames.has(name) || pinned >= Math.min(collected, history?.floor ?? collected);
      return isKept ? 'kept' : 'garbage';
    }
    const generation = parseHistoryName(name);
    if (generation === undefined) return 'unknown';
    return generation >= (history?.floor ?? collected) ? 'kept' : 'garbage';
  }
}

/** An earlier state that is kept, for a snapshot or as history, and the object that holds its Block 0. */
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

/** The states of the history that a Block 0 keeps, one for every generation, ascending. */
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
