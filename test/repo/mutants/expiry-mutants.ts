/** Mistakes in rows that expire. */
import type { Mutant } from './mutant.ts';

const rows = 'src/batch/expired-rows.ts';
const folded = 'src/batch/folded-changes.ts';
const spec = 'src/query/planner/query-spec.ts';
const plans = 'src/query/planner/plan-cache.ts';
const deletion = 'test/features/expiry/deletion.test.ts';
const expiry = 'test/features/expiry/expiry.test.ts';
const paths = 'test/features/expiry/paths.test.ts';
const times = 'test/features/expiry/odd-times.test.ts';

function mutant(name: string, file: string, find: string, replace: string, tests: readonly string[]): Mutant {
  return { name: `expiry: ${name}`, edits: [{ file, find, replace }], tests };
}

export const expiryMutants: readonly Mutant[] = [
  {
    name: 'expiry: triggers fire for rows that have expired',
    edits: [
      {
        file: 'src/instance/engine-host.ts',
        find: 'shapeOf: (table) => this.shapeOf(table) });',
        replace: 'shapeOf: (table) => this.shapeOf(table), triggers: (table) => this.triggers(table) });',
      },
      {
        file: rows,
        find: 'rows = list?.count ?? 0;',
        replace:
          "rows = list?.count ?? 0;\n        for (const trigger of this.#options.triggers(table)) trigger.handler({}, undefined, {}, 'delete');",
      },
    ],
    tests: [expiry],
  },
  mutant(
    'a plan that was kept goes on with its time',
    plans,
    'return unexpired.length === 0 ? known : atPresent(known, unexpired);',
    'return known;',
    ['test/features/expiry/plans.test.ts'],
  ),
  mutant(
    'a plan with a range of times is kept',
    plans,
    'if (expiry === undefined) return true;',
    'if (expiry !== null) return true;',
    ['test/features/expiry/plans.test.ts'],
  ),
  mutant(
    'rows are deleted by the clock of the instance alone',
    rows,
    'Math.min(environment.now(), engine.clock.now()) - clockBoundMs',
    'Math.max(environment.now(), engine.clock.now() - clockBoundMs) - clockBoundMs',
    [deletion],
  ),
  mutant(
    'rows are deleted as soon as they have expired',
    rows,
    'export const clockBoundMs = 300_000;',
    'export const clockBoundMs = 0;',
    [deletion],
  ),
  mutant(
    'a row is deleted that has got a later time',
    rows,
    'if (row !== undefined && shape.isExpired(row, nowMs)) list.addExpiry(key);',
    'if (row !== undefined) list.addDelete(value);',
    [deletion],
  ),
  mutant(
    'a query by a key shows rows that have expired',
    'src/query/query-run.ts',
    'if (rowRef === undefined || (shape.expiry !== undefined && isHidden(host, shape, rowRef))) return [];',
    'if (rowRef === undefined) return [];',
    [times],
  ),
  mutant(
    '`get()` shows rows that have expired',
    'src/query/row-getter.ts',
    'if (row === undefined || (shape.expiry !== undefined && isHidden(this.#host, shape, row))) return undefined;',
    'if (row === undefined) return undefined;',
    [times],
  ),
  mutant(
    '`getCached()` shows rows that have expired',
    'src/query/row-getter.ts',
    'if (shape.expiry !== undefined && isHidden(this.#host, shape, found)) return null;',
    '',
    [times],
  ),
  mutant(
    'rows with null in the field are hidden',
    spec,
    "const clause: WrittenClause = { kind: 'not', clause: { kind: 'condition', condition } };",
    "const clause: WrittenClause = { kind: 'condition', condition: { ...condition, operator: '>' } };",
    [times],
  ),
  mutant(
    'blobs of an expired row stay when another takes its place',
    folded,
    'this.stored = stored;',
    'this.stored = visible;',
    [expiry],
  ),
  mutant(
    'a unique index counts expired rows',
    'src/batch/unique-check.ts',
    'this.#expiryMs = state.shape.expiry && expiryMs;',
    'this.#expiryMs = expiryMs === 0 ? expiryMs : undefined;',
    [paths],
  ),
  mutant(
    'a transaction writes as of its end',
    'src/batch/make-member.ts',
    'options.expiryMs ?? options.environment.now()',
    'options.environment.now()',
    [paths],
  ),
  mutant(
    'a load is refused for rows that have expired',
    'src/load/load-check.ts',
    'if (row === undefined || !shape.isExpired(row, environment.now())) return row !== undefined;',
    'if (row === undefined || !shape.isExpired(row, 0 * environment.now())) return row !== undefined;',
    [paths],
  ),
  mutant(
    'blobs stay when their rows are deleted in the background',
    folded,
    'this.stored = stored;',
    'this.stored = (marks & rowUpdatedFlag) === 0 ? stored : undefined;',
    [expiry],
  ),
];
