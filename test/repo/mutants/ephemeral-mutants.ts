/** Mistakes in instances that live as long as a request. */
import type { Mutant } from './mutant.ts';

const merges = 'src/coordination/merge-on-commit.ts';
const engine = 'src/engine/engine.ts';

const who = 'test/features/ephemeral/merges.slow.test.ts';
const role = 'test/features/ephemeral/role.test.ts';

export const ephemeralMutants: readonly Mutant[] = [
  {
    name: 'ephemeral: a full log takes commits',
    edits: [{ file: merges, find: '(this.#isAtLimit && !this.#hasFailed)', replace: 'false' }],
    tests: [who],
  },
  {
    name: 'ephemeral: a log that cannot be merged takes no commits',
    edits: [
      { file: merges, find: 'if (this.#hasFailed) return;', replace: "if (this.#hasFailed) throw new Error('full');" },
    ],
    tests: [who],
  },
  {
    name: 'ephemeral: only the last commit that has room merges',
    edits: [{ file: merges, find: 'Math.ceil(maxPending / 2)', replace: 'maxPending' }],
    tests: [who],
  },
  {
    name: 'ephemeral: nobody merges after an instance that has ended too early',
    edits: [
      {
        file: merges,
        find: 'pending >= half && (pending - half) % Math.ceil(maxPending / 4) === 0',
        replace: 'pending === half',
      },
    ],
    tests: [who],
  },
  {
    name: 'ephemeral: a merge enters the list of nodes',
    edits: [
      {
        file: engine,
        find: 'isEphemeral ? membersAsTheyAre : membership',
        replace: '(void membersAsTheyAre, membership)',
      },
    ],
    tests: [role],
  },
  {
    name: 'ephemeral: an instance takes turns',
    edits: [
      {
        file: engine,
        find: `if (role !== 'ephemeral') this.#turns.start();`,
        replace: 'this.#turns.start();',
      },
    ],
    tests: [role],
  },
  {
    name: 'ephemeral: a flush waits for a merge that goes on after the answer',
    edits: [
      { file: merges, find: '        waitUntil(merging);\n        return;', replace: '        waitUntil(merging);' },
    ],
    tests: [role],
  },
  {
    name: 'ephemeral: gc waits for no loops of instances that are in no list',
    edits: [
      {
        file: 'src/maintenance/gc/collector.ts',
        find: 'seesEphemeral() || block0.nodes',
        replace: '(void seesEphemeral, block0.nodes)',
      },
    ],
    tests: [role],
  },
  {
    name: 'the age of a view is taken from the monotonic clock alone',
    edits: [
      {
        file: 'src/coordination/freshness.ts',
        find: 'Math.max(environment.monotonicMs() - monotonicMs, environment.now() - wallMs)',
        replace: '(void wallMs, environment.monotonicMs() - monotonicMs)',
      },
    ],
    tests: [role],
  },
];
