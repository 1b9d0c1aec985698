/** Writes the trees of a new generation. Loaded with the first merge of a process. */
import { BackgroundPacer } from '../base/background-pacer.ts';
import { Pacer } from '../base/pacer.ts';
import type { Block0 } from '../format/block0.ts';
import { prepareToMerge } from '../schema/text-indexes.ts';
import { Uploads } from '../tree/block-writer.ts';
import type { UploadOptions } from '../tree/block-writer.ts';
import type { View } from '../view/view.ts';
import { inlineRoots } from './inlined-roots.ts';
import type { InlinedRoots } from './inlined-roots.ts';
import { indexesToMerge, mergeTable } from './merge-table.ts';
import type { TableMergeContext } from './growing-tree.ts';
import type { MergedTable, TreeBuild } from './merge-table.ts';

/** Options of {@link writeTrees}. */
export interface TreeWriteOptions extends UploadOptions, Omit<TableMergeContext, 'uploads' | 'birth' | 'pacer'> {
  /** Whether most of the time is left to other work, if there is any. */
  readonly rests: boolean;
}

/** Writes the trees that `build` makes for the generation after a Block 0, and returns what the next Block 0 holds of them. */
export async function writeTrees(block0: Block0, build: TreeBuild, options: TreeWriteOptions): Promise<InlinedRoots> {
  const uploads = new Uploads(options);
  const birth = block0.generation + 1;
  const pacer = pacerOf(options);
  const written = await build(block0, { ...options, uploads, birth, pacer });
  const roots = await inlineRoots(block0, written, birth, uploads, options);
  await uploads.finish();
  return roots;
}

function pacerOf({ environment, rests }: TreeWriteOptions): Pacer {
  return rests ? new BackgroundPacer(environment) : new Pacer(environment);
}

/** Trees written before the generation that first refers to them. */
export interface WrittenAhead<T> {
  readonly made: T;
  /** The birth of their blocks: the last generation that may begin to refer to them. */
  readonly birth: number;
}

/**
 * Writes trees for one of the next `generations` after a Block 0's, while others write generations. Until the last of these, gc
 * keeps the blocks. Resolves once all blocks are durable.
 */
export async function writeAhead<T>(
  block0: Block0,
  generations: number,
  build: (context: TableMergeContext) => Promise<T>,
  options: TreeWriteOptions,
): Promise<WrittenAhead<T>> {
  const uploads = new Uploads(options);
  const birth = block0.generation + generations;
  const made = await build({ ...options, uploads, birth, pacer: pacerOf(options) });
  await uploads.finish();
  return { made, birth };
}

/** Merges the pending commits of a view into its tables. */
export async function mergeTables(view: View, context: TableMergeContext): Promise<MergedTable[]> {
  const merged: MergedTable[] = [];
  const names = changedTables(view);
  // Before blocks are written, which would be for nothing.
  for (const name of names) await prepareTable(view, name);
  for (const name of names) {
    if (context.pacer.due()) await context.pacer.pause();
    const anew = view.isDropped(name) && { anew: true as const };
    if (view.table(name) === undefined) merged.push({ name, versions: [], ...anew });
    else merged.push({ ...(await mergeTable(view, name, context)), ...anew });
  }
  return merged;
}

/** Makes ready to merge changes of a table. Rejects with `NotSupportedError` if this process cannot make the entries of an index. */
function prepareTable(view: View, name: string): Promise<void> | undefined {
  const versions = [view.table(name), view.nextVersion(name)?.rows];
  return prepareToMerge(
    name,
    versions.flatMap((rows) => (rows === undefined ? [] : indexesToMerge(rows))),
  );
}

function changedTables(view: View): Set<string> {
  const names = new Set<string>();
  for (const { commit } of view.pending) {
    for (const { changes, drops = [] } of commit.members) {
      for (const { table } of drops) names.add(table);
      for (const change of changes) names.add(change.schema.name);
    }
  }
  return names;
}
