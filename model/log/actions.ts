/** The steps of the log's model, and the places of the engine that they mirror. */
import { actionInfos, actionNumbers } from '../checker/model.ts';
import type { ActionEntry, ActionInfo } from '../checker/model.ts';
import { nodeName } from './log-state.ts';

const append = 'src/log/log-writer.ts';
const slotRace = 'src/log/rivals.ts';
const follow = 'src/log/log-follower.ts';
const merge = 'src/merge/merger.ts';
const trim = 'src/maintenance/gc/collector.ts';
const register = 'src/block0/block0-register.ts';

/** Outcomes that a step may have; the last number of its description. */
export const Outcome = { written: 0, answerLost: 1, onItsWay: 2, refused: 3, taken: 4 } as const;

const flush = (number: number): string => `flush ${number + 1}`;
const putOutcomes = [
  'is written',
  'is written, but the answer is lost',
  'fails without an answer, and is still on its way',
  'fails, and certainly had no effect',
  'finds something in the slot',
];

function outcomeText(code: number): string {
  return ['', 'it was applied', 'it was not applied', 'nobody can tell'][code] as string;
}

const list = [
  [
    'begin',
    ['src/transaction/transaction.ts', 'this.#view = engine.view'],
    (a, b) => `${nodeName(a)}: the transaction of ${flush(b)} reads`,
  ],
  ['call', [append, 'append(request'], (a, b) => `${nodeName(a)}: ${flush(b)} is called`],
  [
    'prepare',
    [append, 'async #prepare('],
    (a, _b, c) =>
      c === 0
        ? `${nodeName(a)}: validates its flushes, and has nothing to put`
        : `${nodeName(a)}: validates its flushes, and sends a put for slot ${c}`,
  ],
  ['refresh for a verdict', [append, 'async #refreshFor('], (a) => `${nodeName(a)}: must refresh before it may reject`],
  ['put', [append, 'await log.put(slot'], (a, b, c) => `${nodeName(a)}: its put for slot ${b} ${putOutcomes[c]}`],
  [
    'read with the put',
    [append, 'const early = isFirstPut'],
    (a, b) => `${nodeName(a)}: reads slot ${b}, at the same time as it puts`,
  ],
  ['read own slot', [append, 'await log.read(slot, signal)'], (a, b) => `${nodeName(a)}: reads slot ${b}`],
  [
    'confirm',
    [append, 'await register.refresh(signal)'],
    (a, b) => `${nodeName(a)}: reads Block 0, and decides the outcome of its put for slot ${b}`,
  ],
  ['time out', [append, "return 'unknown'"], (a) => `${nodeName(a)}: does not learn the outcome of its put in time`],
  [
    'contention',
    [slotRace, 'new ContentionError'],
    (a, b) => `${nodeName(a)}: has lost slot ${b} once too often, and gives up for certain`,
  ],
  ['abort', [append, 'const onAbort'], (a, b) => `${nodeName(a)}: the caller of ${flush(b)} gives it up`],
  ['read', [follow, 'async #readSlots('], (a, b) => `${nodeName(a)}: reads the log from slot ${b} on, to catch up`],
  ['read on', [follow, 'this.#log.read('], (a, b) => `${nodeName(a)}: reads slot ${b}, to catch up`],
  ['catch up', [follow, 'async #confirm('], (a) => `${nodeName(a)}: reads Block 0, and moves its view`],
  [
    'learn after a dead slot',
    [append, 'deadSlotOutcome(versioned.block0'],
    (a, b) => `${nodeName(a)}: refreshes, since its slot is dead; ${outcomeText(b)}`,
  ],
  ['merge', [merge, 'async #merge('], (a, b) => `${nodeName(a)}: merges up to slot ${b}`],
  ['replace', [merge, 'await register.replace('], (a) => `${nodeName(a)}: its write of Block 0 arrives`],
  [
    'replace again',
    [register, "'PreconditionFailed"],
    (a) => `${nodeName(a)}: only the floor has changed: offers its blocks again`,
  ],
  ['raise the floor', [trim, 'await register.update('], (a) => `somebody raises the floor to ${a}`],
  ['delete a slot', [trim, 'await store.delete('], (a) => `somebody deletes slot ${a}`],
  ['late put', undefined, (a) => `the put for slot ${a} that was still on its way arrives`],
  [
    'crash',
    undefined,
    (a, b) => `${nodeName(a)} crashes${b === 0 ? '' : ', and what it has sent is still on its way'}`,
  ],
  ['open', [follow, 'open(opened: VersionedBlock0)'], (a) => `${nodeName(a)} starts, and reads Block 0`],
  ['ask', [append, 'async #resolveAgain('], (a, b) => `${nodeName(a)}: somebody asks what became of ${flush(b)}`],
  [
    'put again',
    [append, 'async #putAndConfirm('],
    (a, b, c) => `${nodeName(a)}: the put of ${flush(b)}, made again, ${putOutcomes[c]}`,
  ],
  [
    'read asked',
    ['src/log/commit-outcome.ts', 'await log.read(slot, signal)'],
    (a, b) => `${nodeName(a)}: reads the slot of ${flush(b)}`,
  ],
  [
    'tell',
    ['src/log/commit-outcome.ts', 'deadSlotOutcome'],
    (a, b, c) =>
      `${nodeName(a)}: reads Block 0; of ${flush(b)}, ${c === 0 ? 'the slot is still missing' : outcomeText(c)}`,
  ],
  [
    'feed',
    ['src/engine/log-feed.ts', '#take()'],
    (a, b) => `${nodeName(a)}: its feed gives out slot ${b}, which waits to be merged`,
  ],
  [
    'read again',
    ['src/engine/log-feed.ts', 'async #readAgain('],
    (a, b) => `${nodeName(a)}: its feed reads slot ${b}, which is merged`,
  ],
  [
    'feed after a look',
    ['src/engine/log-feed.ts', 'this.#checkFloor((await register.refresh('],
    (a, b, c) =>
      c === 0
        ? `${nodeName(a)}: its feed ends, since slot ${b} is under the floor`
        : `${nodeName(a)}: its feed reads Block 0, and gives out slot ${b}`,
  ],
  [
    'flush again',
    ['src/batch/batch.ts', 'async #resolveInDoubt('],
    (a, b) => `${nodeName(a)}: the batch of ${flush(b)} is flushed again`,
  ],
] as const satisfies readonly ActionEntry[];

export const logActions: readonly ActionInfo[] = actionInfos(list);

/** Number of each action, by its name. */
export const Act = actionNumbers(list);
