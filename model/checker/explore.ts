/**
 * Explores all states that a model can reach, breadth first, so that a violation is found by a shortest way.
 *
 * Memory holds only the states that must still be expanded. For every other state it holds the fingerprint, the
 * predecessor, and the number of the predecessor's step: the way to a violation is rebuilt from these.
 */
import { FingerprintSet } from './fingerprint-set.ts';
import type { Model, Violation } from './model.ts';
import { RecordList, WordList } from './word-list.ts';

export interface ExploreOptions {
  /** Gives up after so many states; unlimited if left out. */
  readonly maxStates?: number;
  /** Called after every so many states. */
  readonly progressEvery?: number;
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  readonly states: number;
  /** Steps from the first state. */
  readonly depth: number;
  /** States that are to be expanded. */
  readonly waiting: number;
}

export interface Exploration {
  /** Different states. */
  readonly states: number;
  /** Steps between states. */
  readonly transitions: number;
  /** Most steps that a state is away from the first; with a violation, the steps that lead to it. */
  readonly depth: number;
  /** Whether every state was looked at. */
  readonly exhausted: boolean;
  /** How often each action was tried, by its number. */
  readonly taken: readonly number[];
  readonly violation: Violation | undefined;
  /** The way to the violation: for each state, which of its steps. */
  readonly path: readonly number[];
}

export function explore(model: Model, options: ExploreOptions = {}): Exploration {
  const { maxStates = Infinity, progressEvery = 1 << 20, onProgress } = options;
  const seen = new FingerprintSet();
  const width = model.stateWords.length;
  const states = new RecordList(width);
  const parents = new WordList();
  const ordinals = new WordList();
  const taken = model.actions.map(() => 0);
  let transitions = 0;
  let parent = -1;
  let ordinal = -1;
  let found: number[] | undefined;

  const pathTo = (index: number, last?: number): number[] => {
    const path = last === undefined ? [] : [last];
    for (let at = index; at > 0; at = parents.read(at)) path.unshift(ordinals.read(at));
    return path;
  };
  model.violation = undefined;
  model.sink = (action) => {
    ordinal++;
    if (found !== undefined) return;
    transitions++;
    (taken[action] as number)++;
    if (model.violation !== undefined) {
      found = pathTo(parent, ordinal);
      return;
    }
    if (!seen.add(model.nextWords)) return;
    states.push(model.nextWords);
    parents.push(parent);
    ordinals.push(ordinal);
  };

  model.start();
  seen.add(model.nextWords);
  states.push(model.nextWords);
  parents.push(-1);
  ordinals.push(-1);
  let depth = 0;
  let levelEnd = 1;
  let reported = 0;
  const levels: number[] = [];
  for (parent = 0; parent < states.length && found === undefined && states.length < maxStates; parent++) {
    if (parent === levelEnd) {
      depth++;
      levels.push(levelEnd);
      levelEnd = states.length;
    }
    states.read(parent, model.stateWords);
    ordinal = -1;
    model.check();
    if (model.violation === undefined) model.expand();
    else found = pathTo(parent);
    if ((parent & 0xffff) === 0) states.forgetBefore(parent);
    if (onProgress !== undefined && states.length - reported >= progressEvery) {
      reported = states.length;
      onProgress({ states: states.length, depth, waiting: states.length - parent });
    }
  }
  return {
    states: states.length,
    transitions,
    depth: found === undefined ? depth : found.length,
    exhausted: found === undefined && parent >= states.length,
    taken,
    violation: model.violation,
    path: found ?? [],
  };
}
