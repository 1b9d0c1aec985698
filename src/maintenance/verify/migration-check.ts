/**
 * The check of a version of a table that comes up beside the active version: its rows and indexes are whole, every row has the row
 * of the active version that it goes with in the base and, where all of them are made and in line, there are as many as in the active version.
 */
import { isUnreadable } from '../../base/errors.ts';
import type { Node } from '../../format/node.ts';
import { NextVersionRows } from '../../view/next-version-rows.ts';
import type { NextVersion } from '../../view/view.ts';
import type { Tree } from '../../tree/tree.ts';
import type { CheckRun } from './check-run.ts';
import { TableCheck } from './table-check.ts';
import type { TableCheckOptions } from './table-check.ts';

/** Checks what `base` has in blocks of the next version, and `tail` in pending commits. */
export async function checkNextVersion(options: TableCheckOptions, table: string): Promise<void> {
  const check = new TableCheck(options);
  const { run, base, tail } = options;
  const nextVersion = base.nextVersion(table);
  if (nextVersion !== undefined) {
    await check.check(nextVersion.rows);
    await checkBase(run, nextVersion, base.table(table)?.tree);
  }
  const rows = await NextVersionRows.in(tail, table);
  if (rows !== undefined) await check.checkLayers(rows.rows);
}

async function checkBase(
  run: CheckRun,
  { migration, rows, base }: NextVersion,
  active: Tree | undefined,
): Promise<void> {
  const { shape } = base;
  const subject = { table: shape.name };
  const keepsKeys = shape.hasKeysOf(rows.shape);
  // Most of its blocks are the active version's, and were checked there.
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
  if (migration?.built !== null || active?.ref?.id !== base.tree.ref?.id || active?.count === rows.tree.count) return;
  const message = `Version ${rows.shape.version} has ${rows.tree.count} rows, and version ${shape.version} ${active?.count}`;
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
