/**
 * The check of a version of a table that comes up beside the truth: its rows and indexes are whole, every row has the row
 * of the truth that it goes with in the base and, where all of them are made and in line, there are as many as in the truth.
 */
import { isUnreadable } from '../../base/errors.ts';
import type { Node } from '../../format/node.ts';
import { BesideRows } from '../../view/pending-version.ts';
import type { Beside } from '../../view/view.ts';
import type { Tree } from '../../tree/tree.ts';
import type { CheckRun } from './check-run.ts';
import { TableCheck } from './table-check.ts';
import type { TableCheckOptions } from './table-check.ts';

/** Checks what `base` has in blocks of the version beside a table's truth, and `tail` in pending commits. */
export async function checkBeside(options: TableCheckOptions, table: string): Promise<void> {
  const check = new TableCheck(options);
  const { run, base, tail } = options;
  const beside = base.beside(table);
  if (beside !== undefined) {
    await check.check(beside.rows);
    await checkBase(run, beside, base.table(table)?.tree);
  }
  const rows = await BesideRows.in(tail, table);
  if (rows !== undefined) await check.checkLayers(rows.rows);
}

async function checkBase(run: CheckRun, { migration, rows, base }: Beside, truth: Tree | undefined): Promise<void> {
  const { shape } = base;
  const subject = { table: shape.name };
  const keepsKeys = shape.hasKeysOf(rows.shape);
  // Most of its blocks are the truth's, and were checked there.
  await run.tree(subject, { place: subject, leaf: shape.leafShape, tree: base.tree }, true);
  if (keepsKeys) {
    const onRun = async (leaf: Node, from: number, to: number): Promise<void> => {
      for (let i = from; i < to; i++) {
        if (await isIn(base.tree, leaf.key(i))) continue;
        const message = `Row ${i} of version ${rows.shape.version} goes with no row of the base`;
        run.findings.add(subject, leaf.name, message);
      }
    };
    await run.tree(subject, { leaf: rows.shape.leafShape, tree: rows.tree, onRun });
  }
  if (migration?.built !== null || truth?.ref?.id !== base.tree.ref?.id || truth?.count === rows.tree.count) return;
  const message = `Version ${rows.shape.version} has ${rows.tree.count} rows, and version ${shape.version} ${truth?.count}`;
  run.findings.add(subject, `data/${shape.name}`, message);
}

/** Damage is found where the tree itself is checked. */
async function isIn(tree: Tree, key: Uint8Array): Promise<boolean> {
  try {
    return (await tree.lookup(key)) !== undefined;
  } catch (error) {
    if (isUnreadable(error)) return true;
    throw error;
  }
}
