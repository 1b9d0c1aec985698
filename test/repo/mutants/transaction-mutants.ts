/** Mistakes in transactions: the reads that count, and the commits that they are validated against. */
import type { Mutant } from './mutant.ts';

const host = 'src/transaction/transaction.ts';
const watch = 'src/transaction/transaction.ts';
const readSet = 'src/transaction/read-set.ts';
const run = 'src/transaction/run-transaction.ts';

export const transactionMutants: readonly Mutant[] = [
  {
    name: 'transactions: reads are not validated',
    edits: [
      { file: host, find: 'if (this.#reads.isEmpty) return;', replace: 'if (this.#reads.isEmpty || true) return;' },
    ],
  },
  {
    name: 'transactions: validated only before the first slot, not after a lost one',
    edits: [
      {
        file: host,
        find: 'options, check, { callName: transactionCall, expiryMs, validate });',
        replace: 'options, check, { callName: transactionCall, expiryMs, validate: async () => undefined });',
      },
    ],
  },
  {
    name: 'transactions: others in the same commit are ignored',
    edits: [
      {
        file: host,
        find: 'for (const member of earlier) await this.#validateAgainst(member, view, pacer);',
        replace: 'void earlier;',
      },
    ],
  },
  {
    name: 'transactions: commits that were not followed count as none',
    edits: [
      {
        file: watch,
        find: 'return commits.length === tail - after ? commits : undefined;',
        replace: 'return commits;',
      },
    ],
  },
  {
    name: 'transactions: rows that were read count, ranges do not',
    edits: [
      {
        file: readSet,
        find: '    if (matches !== undefined) {',
        replace: '    if (keys === undefined) return;\n    if (matches !== undefined) {',
      },
    ],
  },
  {
    name: 'transactions: a row that matches no longer is no conflict',
    edits: [
      {
        file: readSet,
        find: 'const known = before.lookup(key);',
        replace: 'const known = (void before, undefined) as RowRef | Promise<RowRef> | undefined;',
      },
    ],
  },
  {
    name: 'transactions: a row that did not match before is no conflict',
    edits: [
      {
        file: readSet,
        find: 'if (matchesAny(suspects, after)) return key;',
        replace: 'void after;',
      },
    ],
  },
  {
    name: 'transactions: not validated again after a lost slot',
    edits: [
      {
        file: host,
        find: '      this.#validatedTail = slot;',
        replace: '      this.#validatedTail = slot + 1;',
      },
    ],
  },
  {
    name: 'transactions: each read uses the newest view',
    edits: [
      {
        file: host,
        find: 'const state = this.#host.bridge.stateOf(this.#view, table);',
        replace: 'const state = this.#host.bridge.stateOf(this.#engine.view, table);',
      },
    ],
    tests: [
      'test/features/transactions/old-views.slow.test.ts',
      'test/features/transactions/attempts.test.ts',
      'test/properties/histories/transactions.slow.test.ts',
    ],
  },
  {
    name: 'transactions: an attempt whose outcome is unknown is repeated',
    edits: [
      {
        file: run,
        find: 'if (host.conflict === undefined) throw error;',
        replace: `if (host.conflict === undefined && (error as { code?: string }).code !== 'COMMIT_OUTCOME_UNKNOWN') throw error;`,
      },
      {
        file: run,
        find: 'if (attempt >= maxAttempts) throw givenUp(attempt, host.conflict);',
        replace:
          'if (attempt >= maxAttempts) throw givenUp(attempt, host.conflict ?? (error as TransactionConflictError));',
      },
    ],
  },
  {
    name: 'conditions: ignored',
    edits: [
      {
        file: 'src/batch/folded-changes.ts',
        find: 'if (condition === undefined || this.#forOverlay) return;',
        replace: 'if (condition === undefined || condition !== null) return;',
      },
    ],
    tests: ['test/features/batches/conditions.test.ts'],
  },
  {
    name: 'conditions: those in a sub-batch are lost',
    edits: [
      {
        file: 'src/batch/table-operations.ts',
        find: 'this.#conditions.set(this.count, { fields: condition.fields, base: copied });',
        replace: 'void copied;',
      },
    ],
    tests: ['test/features/batches/conditions.test.ts'],
  },
  {
    name: 'increments: those in a sub-batch are lost',
    edits: [
      {
        file: 'src/batch/table-operations.ts',
        find: 'if (increments !== undefined) this.#increments.set(this.count - 1, increments);',
        replace: 'void increments;',
      },
    ],
    tests: ['test/features/batches/increments.test.ts'],
  },
  {
    name: 'increments: added to the row regardless of earlier operations of the batch',
    edits: [
      {
        file: 'src/batch/folded-changes.ts',
        find: 'const base = copyRow(layout, row.source, row.base, writer, heapWriter);',
        replace: `const under = operations.kind(i) === Operation.increment ? (this.stored ?? row) : row;
    const base = copyRow(layout, under.source, under.base, writer, heapWriter);`,
      },
    ],
    tests: ['test/features/batches/increments.test.ts'],
  },
  {
    name: 'increments: a row that a transaction shows with an increment does not count as read',
    edits: [
      {
        file: 'src/batch/operation-set.ts',
        find: 'new Set([Operation.update, Operation.upsertFields, Operation.increment])',
        replace: 'new Set([Operation.update, Operation.upsertFields])',
      },
    ],
    tests: ['test/features/batches/increments.test.ts'],
  },
  {
    name: 'increments: applied to the view of the first attempt, not to the one before the slot',
    edits: [
      {
        file: 'src/batch/folded-changes.ts',
        find: 'addTo(changed, operations.increments(i), this.#forOverlay);',
        replace: `const known = operations as { sums?: Map<number, RowRef> };
      const first = (known.sums ??= new Map()).get(i);
      addTo(changed, operations.increments(i), this.#forOverlay);
      if (first !== undefined) return first;
      known.sums.set(i, { source: this.#resolved, base });`,
      },
    ],
    tests: ['test/features/batches/increments.test.ts'],
  },
  {
    name: "equal rows: left out regardless of other writers' commits",
    edits: [
      {
        file: 'src/log/log-writer.ts',
        find: 'if (group.every((waiting) => waiting.refreshed)) return conclude();',
        replace: 'return conclude();',
      },
    ],
    tests: ['test/features/batches/equal-rows.test.ts'],
  },
  {
    name: 'equal rows: left out while a table has two versions',
    edits: [
      {
        file: 'src/batch/make-member.ts',
        find: 'skipsEqual: ofUser && isSole',
        replace: 'skipsEqual: ofUser || isSole',
      },
    ],
    tests: [
      'test/features/migrations/phases.test.ts',
      'test/features/migrations/bridge.slow.test.ts',
      'test/features/migrations/later-wins.slow.test.ts',
    ],
  },
  {
    name: 'equal rows: compared by their inline bytes only',
    edits: [
      {
        file: 'src/batch/folded-changes.ts',
        find: 'sameRow(this.#operations.shape.layout, row, stored)',
        replace:
          'row.source.rows.subarray(row.base, row.base + 12).every((byte, i) => byte === stored.source.rows[stored.base + i])',
      },
    ],
    tests: ['test/features/batches/equal-rows.test.ts', 'test/features/batches/conditions.test.ts'],
  },
];
