/** Mistakes in indexes whose entries hold more than the values that they are on. */
import type { Mutant } from './mutant.ts';

const shapes = 'src/schema/table-shape.ts';

const queries = 'test/features/query/included-fields.test.ts';
const stored = 'test/features/query/included-fields-stored.test.ts';

export const indexMutants: readonly Mutant[] = [
  {
    name: 'included fields: the key of a row is taken to go to the end of its entry',
    edits: [
      {
        file: shapes,
        find: 'if (included === undefined) return length;',
        replace: 'if (included !== null) return length;',
      },
    ],
    tests: [queries, stored],
  },
  {
    name: 'included fields: -0 is kept as 0',
    edits: [{ file: shapes, find: 'else writeSignedComponent(', replace: 'else writeKeyComponent(' }],
    tests: [queries, stored],
  },
  {
    name: 'included fields: an intersection looks for entries that end with the key',
    edits: [
      {
        file: 'src/query/operators/key-probe.ts',
        find: 'if (this.#index.included === undefined) return',
        replace: 'if (this.#index.included !== null) return',
      },
    ],
    tests: [queries],
  },
  {
    name: 'included fields: a migration uses the entries of another definition',
    edits: [
      {
        file: 'src/migration/bridge.ts',
        find: '[...fields, ...held, ...(where?.tests',
        replace: '[...fields, ...(where?.tests',
      },
    ],
    tests: [stored],
  },
  {
    name: 'included fields: the format does not keep older releases out',
    edits: [
      {
        file: 'src/format/stored-schema.ts',
        find: 'if (indexes.some(({ include }) => include !== undefined)) return entryFormsVersion;',
        replace: '',
      },
    ],
    tests: [stored],
  },
];
