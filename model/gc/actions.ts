/** The steps of the model of collecting garbage, and where the engine makes them. */
import { actionInfos, actionNumbers } from '../checker/model.ts';
import type { ActionEntry, ActionInfo } from '../checker/model.ts';

const merge = 'src/merge/merger.ts';
const pins = 'src/engine/snapshot-pins.ts';
const gc = 'src/maintenance/gc/collector.ts';

const list = [
  ['begin a merge', [merge, 'async #write('], (a) => `a merge begins on generation ${a}`],
  [
    'write a block',
    ['src/tree/block-writer.ts', 'class Uploads'],
    (a, b) => `a merge on generation ${a} writes block ${b} and keeps the rest`,
  ],
  ['keep history', [merge, 'async #keep('], (a) => `a merge stores generation ${a} as history`],
  ['replace', [merge, 'await register.replace('], (a) => `a merge replaces Block 0: generation ${a}`],
  ['end a merge', undefined, (a) => `a merge on generation ${a} crashes, or has lost`],
  ['choose', ['src/engine/engine.ts', 'async #pin('], (a, b) => `snapshot ${a + 1} is to be of generation ${b}`],
  ['copy', [pins, '#storeRoot('], (a, b) => `snapshot ${a + 1} stores its copy of generation ${b}`],
  [
    'pin',
    [pins, 'async pin('],
    (a, _, c) => (c === 1 ? `snapshot ${a + 1} is pinned` : `snapshot ${a + 1} is refused: its state is not retained`),
  ],
  ['abandon', undefined, (a) => `the process of snapshot ${a + 1} crashes`],
  [
    'release',
    [pins, 'async release('],
    (a, _, c) => (c === 1 ? `snapshot ${a + 1} deletes its copy` : `snapshot ${a + 1} is released`),
  ],
  ['wait', [gc, 'async #waitForLoops('], (a) => `gc waits for loops, and will collect from generation ${a}`],
  [
    'announce',
    [gc, 'async #announce('],
    (a, b, c) =>
      `gc announces that it collects from generation ${a}` +
      (b === 0 ? '' : `, and ends snapshot ${b}`) +
      (c === 0 ? '' : `; history begins with ${c}`),
  ],
  ['delete a block', [gc, 'async #collectBlocks('], (a, b) => `gc from generation ${a} deletes block ${b}`],
  [
    'delete a copy',
    [gc, 'async #collectRoots('],
    (a, b) => `gc from generation ${a} deletes the copy of snapshot ${b + 1}`,
  ],
  ['delete history', [gc, 'parseHistoryName(name)'], (a, b) => `gc from generation ${a} deletes history ${b}`],
  ['end a run', undefined, (a) => `gc from generation ${a} ends, or crashes`],
] as const satisfies readonly ActionEntry[];

export const gcActions: readonly ActionInfo[] = actionInfos(list);

/** Number of each action, by its name. */
export const Act = actionNumbers(list);
