/** Mistakes in the feed of changes. */
import type { Mutant } from './mutant.ts';

const states = 'src/instance/feed-states.ts';
const feed = 'src/instance/change-feed.ts';
const tests = ['test/features/changes/rows-before.test.ts'];

function mutant(name: string, file: string, find: string, replace: string): Mutant {
  return { name: `changes: ${name}`, edits: [{ file, find, replace }], tests };
}

export const changeMutants: readonly Mutant[] = [
  {
    name: 'changes: commits that a loop holds count in no budget',
    edits: [{ file: 'src/engine/log-feed.ts', find: 'this.#memory.add(sizeOf(commit));', replace: 'sizeOf(commit);' }],
    tests: ['test/features/changes/following.slow.test.ts'],
  },
  mutant(
    'rows before are those before the commit, not the flush',
    feed,
    'view = view?.withMember(member);',
    'void member;',
  ),
  mutant(
    'the state goes over to a Block 0 that has applied later commits',
    states,
    'block0.appliedSeq > mine.tail',
    'block0.appliedSeq > mine.tail + 1',
  ),
  mutant(
    'states that a slow loop reads are not held',
    states,
    'this.#keepers.set(key, keep(one, this.#feed))',
    'this.#keepers.set(key, void one ?? void keep)',
  ),
  mutant(
    'the newest earlier state is not the one before the position',
    'src/engine/history.ts',
    '({ appliedSeq }) => appliedSeq <= position, signal',
    '({ appliedSeq }) => appliedSeq <= position + 1, signal',
  ),
  mutant(
    'a loop that waits holds its state on',
    states,
    'if (view !== undefined && (before !== undefined || view.block0.generation < engine.view.block0.generation)) {',
    'if (view !== undefined) {',
  ),
];
