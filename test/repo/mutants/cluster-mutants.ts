/** Mistakes in how nodes share their work, and how they recognise each other. */
import type { Mutant } from './mutant.ts';

const ids = 'src/base/ids.ts';
const backpressure = 'src/coordination/backpressure.ts';
const follow = 'src/log/log-follower.ts';
const membership = 'src/coordination/membership.ts';
const rotation = 'src/coordination/merge-rotation.ts';

export const clusterMutants: readonly Mutant[] = [
  {
    name: 'a put follows slots that are not confirmed',
    edits: [
      {
        file: follow,
        find: `    const versioned = await this.#register.refresh(signal);
    this.advance(versioned, slots);`,
        replace: `    this.advance(this.#register.current, slots);
    const versioned = await this.#register.refresh(signal);
    this.advance(versioned, []);`,
      },
    ],
    tests: ['test/features/protocol/reading.test.ts'],
  },
  {
    name: 'clones: ids consist of random numbers alone',
    edits: [
      {
        file: ids,
        find: '  const bytes = environment.randomBytes(length);\n',
        replace: '  const bytes = environment.randomBytes(length);\n  if (length > 0) return bytes;\n',
      },
    ],
  },
  {
    name: 'rotation: an instance that stops stays on the list',
    edits: [
      {
        file: membership,
        find: '    if (!isThere(register.current.block0) && !this.#mayJoin) return;\n',
        replace: '    if (!this.isRegistered || true) return;\n',
      },
    ],
  },
  {
    name: 'rotation: nobody takes the turns of dead instances',
    edits: [
      { file: rotation, find: 'this.#skipped = new Set(this.#unused.keys());', replace: 'this.#skipped = new Set();' },
    ],
    tests: ['src/coordination/merge-rotation.test.ts'],
  },
  {
    name: 'backlog: no limit',
    edits: [{ file: backpressure, find: 'return room.bytesFor(follower.view) === 0;', replace: 'return false;' }],
    tests: ['test/features/protocol/backlog.slow.test.ts'],
  },
];
