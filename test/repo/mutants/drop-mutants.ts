/** Mistakes in drops of tables. */
import type { Mutant } from './mutant.ts';

const dropping = 'test/features/drop-table/dropping.test.ts';
const races = 'test/features/drop-table/races.test.ts';
const everywhere = 'test/features/drop-table/everywhere.test.ts';

function mutant(name: string, test: string, file: string, find: string, replace: string): Mutant {
  return { name: `drops: ${name}`, edits: [{ file, find, replace }], tests: [test] };
}

export const dropMutants: readonly Mutant[] = [
  mutant(
    'a flush is checked for drops before it is validated, and not with it',
    races,
    'src/batch/flush.ts',
    'this.#context.dropped.refuseOn(view, shape);',
    'this.#context.dropped.refuse(shape);',
  ),
  mutant(
    'a registration after the drop is the one from before',
    dropping,
    'src/catalog/registry.ts',
    'isAnew ? new TableShape(schema) : shapeOf(schema)',
    'shapeOf(schema)',
  ),
  mutant(
    'a merge goes on with the trees of a table that was dropped and created again',
    everywhere,
    'src/merge/inlined-roots.ts',
    'merged?.anew === true ? undefined : before',
    'merged?.anew === undefined || merged.versions.length > 0 ? before : undefined',
  ),
  mutant(
    'the migration of a dropped table stays',
    everywhere,
    'src/merge/inlined-roots.ts',
    'anew === true ? undefined : before.get(table)',
    'before.get(table)',
  ),
  mutant(
    'a catalogue keeps a dropped table',
    everywhere,
    'src/merge/inlined-roots.ts',
    'const anew = isGone || changedBytes',
    'const anew = (isGone && false) || changedBytes',
  ),
  mutant(
    'the changes before a drop count for the next version of the table after it',
    everywhere,
    'src/view/view.ts',
    'for (const { table } of member.drops ?? []) byTable.delete(table);',
    '',
  ),
  mutant(
    'a drop is no conflict with what a transaction has read',
    races,
    'src/transaction/transaction.ts',
    'if (dropped !== undefined) throw',
    'if (dropped !== undefined && false) throw',
  ),
  mutant(
    'the records of blobs are those of an earlier state',
    everywhere,
    'src/batch/drop-table.ts',
    'this.#known === undefined || !isSameTree(this.#known.tree, state.tree)',
    'this.#known === undefined',
  ),
  mutant(
    'a drop that was forgotten is not noticed',
    everywhere,
    'src/catalog/dropped-tables.ts',
    'const mayBeForgotten = after.drops.forgotten > before.tail;',
    'const mayBeForgotten = after.drops.forgotten > after.tail;',
  ),
  mutant(
    'a start whose look at the log fails counts registrations from later on',
    dropping,
    'src/instance/instance.ts',
    'registry.renew(engine.view);\n    this',
    'this',
  ),
];
