/** Mistakes in the memory that databases of a process share. */
import type { Mutant } from './mutant.ts';

const budget = ['test/features/memory/memory-budget.slow.test.ts'];
const shared = ['src/cache/memory-budget.test.ts'];
const cache = 'src/cache/block-cache.ts';
const memory = 'src/cache/memory-budget.ts';

export const memoryMutants: readonly Mutant[] = [
  {
    name: 'memory: a read that ends after stop() leaves its block in the cache',
    edits: [{ file: cache, find: '!this.#isClosed && bytes <= share', replace: 'bytes <= share' }],
    tests: shared,
  },
  {
    name: 'memory: unmerged commits of a stopped database count forever',
    edits: [{ file: memory, find: '    this.setCommitted(0);\n', replace: '' }],
    tests: budget,
  },
  {
    name: 'memory: an instance with a limit of its own may take the whole shared budget',
    edits: [
      {
        file: 'src/cache/instance-memory.ts',
        find: 'this.#hasOwnBound = maxBytes < this.#memory.maxBytes;',
        replace: 'this.#hasOwnBound = false;',
      },
    ],
    tests: budget,
  },
  {
    name: 'memory: no database merges because of commits that wait in the others',
    edits: [{ file: memory, find: 'if (most === undefined) return;', replace: 'return;' }],
    tests: budget,
  },
  {
    name: 'memory: one large query leaves no room for small queries of others',
    edits: [
      { file: memory, find: 'isSmall ? scratchShares.small : scratchShares.usual', replace: 'scratchShares.usual' },
    ],
    tests: shared,
  },
  {
    name: 'memory: a failed start keeps its part',
    edits: [
      {
        file: 'src/engine/engine.ts',
        find: '      // Nobody calls close() on an engine that was never open.\n      this.memory.close();\n',
        replace: '',
      },
    ],
    tests: budget,
  },
];
