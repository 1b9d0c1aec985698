/**
 * When a new generation is said to begin. Times of generations ascend, so that the state of a time can be searched for. A clock
 * that was far ahead once would make every generation after it begin in the future, and the present state would not be found:
 * so where the store's own clock says that the time of the generation before is wrong, times go back, and Block 0 notes where.
 */
import type { Logger } from '../base/logger.ts';
import type { Block0, StoredHistory } from '../format/block0.ts';
import { historyName } from '../format/keys.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import { leadText, wrongMs } from '../storage/contract/store-clock.ts';
import type { StoreClock } from '../storage/contract/store-clock.ts';

export interface GenerationTimeOptions {
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly clock: StoreClock;
  readonly logger: Logger;
}

/** Places at which times went back that are remembered. */
const mostSetBack = 64;

/** The time of the generation after the one that a Block 0 is of, and the history to say it in. The kept state is stored. */
export async function generationTime(
  block0: Block0,
  options: GenerationTimeOptions,
): Promise<Pick<Block0, 'changedMs' | 'history'>> {
  const { clock, logger } = options;
  const { changedMs: before, history, generation } = block0;
  const now = Math.floor(clock.now());
  if (now >= before - wrongMs) return { changedMs: Math.max(now, before), history };
  const sure = await storesTime(block0, options);
  if (sure === undefined || sure >= before - wrongMs) {
    logger.warn(`The clock of this machine is ${leadText(now - before)} the last merge. Set it right.`, {
      now,
      before,
    });
    return { changedMs: before, history };
  }
  const lead = leadText(before - sure);
  logger.warn(`The last merge was by a clock that was ${lead} the store's. Times are right again from here on.`, {
    before,
    storeMs: sure,
  });
  return { changedMs: sure, history: history && withSetBack(history, generation + 1) };
}

function withSetBack(history: StoredHistory, generation: number): StoredHistory {
  const setBack = [...(history.setBack ?? []), generation].filter((at) => at > history.floor);
  return { ...history, setBack: setBack.slice(-mostSetBack) };
}

/** The store's own time; undefined where nothing tells it. */
async function storesTime(
  { history, generation }: Block0,
  { driver, prefix, clock }: GenerationTimeOptions,
): Promise<number | undefined> {
  if (clock.isOfStore) return Math.floor(clock.now());
  if (history === null) return undefined;
  // It was stored a moment ago.
  const found = await driver.get(`${prefix}/${historyName(generation)}`, { range: { start: 0, end: 0 } });
  return found.status === 'found' ? Math.floor(found.lastModifiedMs) : undefined;
}
