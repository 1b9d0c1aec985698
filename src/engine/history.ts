/** Earlier states that are kept on request: finds one by its generation, or the one that was in force at some time. */
import { defined } from '../base/options.ts';
import { SnapshotExpiredError } from '../base/errors.ts';
import type { Block0, StoredHistory } from '../format/block0.ts';
import { folders, historyName, parseHistoryName, rootName } from '../format/object-names.ts';
import { Block0Reader, CatalogueMissingError } from '../block0/block0-reader.ts';
import { changeableOf } from '../block0/block0-register.ts';
import type { Block0Register } from '../block0/block0-register.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';

export interface HistoryOptions {
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly register: Block0Register;
}

export class History {
  readonly #options: HistoryOptions;
  readonly #reader: Block0Reader;

  constructor(options: HistoryOptions) {
    this.#options = options;
    this.#reader = new Block0Reader(options.driver, options.prefix);
  }

  /** Says in Block 0 for how long states are kept; 0: they are not. Every node that merges follows it. */
  async keep(windowMs: number, signal?: AbortSignal): Promise<void> {
    await this.#options.register.update((present) => {
      if ((present.history?.windowMs ?? 0) === windowMs) return undefined;
      const floor = present.history?.floor ?? present.generation;
      const history: StoredHistory | null = windowMs === 0 ? null : { ...present.history, windowMs, floor };
      return { ...changeableOf(present), history };
    }, signal);
  }

  /** The Block 0 of a generation. Throws `SnapshotExpiredError` if it is not kept. */
  async read(generation: number, signal?: AbortSignal): Promise<Block0> {
    const { block0 } = await this.#options.register.refresh(signal);
    if (generation === block0.generation) return block0;
    const kept = await this.#readKept(generation, signal);
    if (kept !== undefined) return kept;
    throw new SnapshotExpiredError(
      generation > block0.generation
        ? `There is no generation ${generation} yet: the present one is ${block0.generation}.`
        : `Generation ${generation} is not kept. ${advice(block0)}`,
    );
  }

  /** The Block 0 that was in force at a time, by the times at which it and the next one are said to have begun. */
  async readAt(timeMs: number, signal?: AbortSignal): Promise<Block0> {
    const { block0: present } = await this.#options.register.refresh(signal);
    if (timeMs >= present.changedMs) return present;
    const generations = await this.#list(signal);
    const setBack = present.history?.setBack ?? [];
    // From one place where times went back to the next they ascend. The last state that began by then is the one.
    let found: Block0 | undefined;
    for (let part = setBack.length, to = generations.length; part >= 0 && found === undefined; part--) {
      const first = part === 0 ? 0 : generations.findIndex((generation) => generation >= (setBack[part - 1] as number));
      const from = first < 0 ? to : first;
      found = await this.#readLast(generations.slice(from, to), ({ changedMs }) => changedMs <= timeMs, signal);
      to = from;
    }
    if (found !== undefined) return found;
    throw new SnapshotExpiredError(`The state of ${new Date(timeMs).toISOString()} is not kept. ${advice(present)}`);
  }

  /** The last of some generations that is early enough, where no generation after one that is not early enough is. */
  async #readLast(
    generations: readonly number[],
    isEarly: (block0: Block0) => boolean,
    signal: AbortSignal | undefined,
  ): Promise<Block0 | undefined> {
    let found: Block0 | undefined;
    for (let low = 0, high = generations.length - 1; low <= high; ) {
      const middle = (low + high) >> 1;
      const block0 = await this.#readKept(generations[middle] as number, signal);
      // One that is missing was collected meanwhile, and with it everything before it.
      if (block0 === undefined || isEarly(block0)) {
        found = block0;
        low = middle + 1;
      } else high = middle - 1;
    }
    return found;
  }

  /** Returns the newest Block 0 that is kept and has applied no commit after a position; undefined if there is none. */
  async readAtPosition(position: number, signal?: AbortSignal): Promise<Block0 | undefined> {
    const { block0: present } = await this.#options.register.refresh(signal);
    if (present.appliedSeq <= position) return present;
    const generations = present.history === null ? [] : await this.#list(signal);
    // Later generations have applied more commits.
    const found = await this.#readLast(generations, ({ appliedSeq }) => appliedSeq <= position, signal);
    const pins = present.snapshots.filter(({ appliedSeq }) => appliedSeq <= position);
    const pin = pins.toSorted((a, b) => b.generation - a.generation)[0];
    if (pin === undefined || pin.generation <= (found?.generation ?? -1)) return found;
    return (await this.#reader.readKept(rootName(pin.id), defined({ signal }))) ?? found;
  }

  /** Undefined: it is not kept, or was collected. A put that arrives late may bring back the object of one that was. */
  async #readKept(generation: number, signal: AbortSignal | undefined): Promise<Block0 | undefined> {
    try {
      return await this.#reader.readKept(historyName(generation), defined({ signal }));
    } catch (error) {
      if (!(error instanceof CatalogueMissingError)) throw error;
      const { history, collected } = (await this.#options.register.refresh(signal)).block0;
      if (generation >= (history?.floor ?? collected)) throw error;
      return undefined;
    }
  }

  /** Generations that are kept, ascending. */
  async #list(signal: AbortSignal | undefined): Promise<number[]> {
    const { driver, prefix } = this.#options;
    const generations: number[] = [];
    for (let after: string | undefined; ; ) {
      const options = defined({ signal, after });
      const { entries, more } = await driver.list(`${prefix}/${folders.history}`, options);
      for (const { key } of entries) {
        const generation = parseHistoryName(key.slice(prefix.length + 1));
        if (generation !== undefined) generations.push(generation);
      }
      after = entries.at(-1)?.key;
      if (!more || after === undefined) return generations;
    }
  }
}

function advice({ history }: Block0): string {
  if (history === null) return "Earlier states are kept only if option history says for how long, for instance '7d'.";
  return `States are kept for ${history.windowMs} ms, and only since that was asked for.`;
}
