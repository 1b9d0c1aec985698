/** Turns a batch's operations into the changes that a commit holds: validated against a view, folded, sorted and encoded. */
import type { Environment } from '../base/env.ts';
import { invariant } from '../base/invariant.ts';
import { Pacer } from '../base/pacer.ts';
import { commitBlockName } from '../format/commit.ts';
import type { CommitMember, StagedRuns, TableChange } from '../format/commit.ts';
import { NodeEntries } from '../format/node-entries.ts';
import { openSealed } from '../format/node.ts';
import type { StoredSchema } from '../format/stored-schema.ts';
import type { Node } from '../format/node.ts';
import { ShadowChanges } from '../migration/shadow-changes.ts';
import type { BridgedTable } from '../migration/bridge.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { TableState } from '../view/table-state.ts';
import { Uploads } from '../tree/block-writer.ts';
import type { UploadOptions } from '../tree/block-writer.ts';
import { noBlocks } from '../tree/block-source.ts';
import { Tree, treeOfNode } from '../tree/tree.ts';
import { applyChanges } from '../tree/write.ts';
import type { ChangeStream } from '../tree/write.ts';
import { BlobChanges } from './blob-changes.ts';
import { FoldedChanges } from './fold.ts';
import { ObservedChanges } from './observed-changes.ts';
import type { NewBlob } from './new-blob.ts';
import type { TableOperations } from './operations.ts';
import { StagedSink } from './staged-sink.ts';
import { UniqueCheck } from './unique-check.ts';

export interface PrepareOptions extends UploadOptions {
  readonly blockSizeBytes: number;
  /** A flush whose operations take more bytes than this stages its changes; otherwise the commit itself holds them. */
  readonly maxCommitBytes: number;
  /** The slot that the commit is for. */
  readonly slot: number;
}

/**
 * What the operations change, on top of a table for each list of them; its blobs have been uploaded. Where that is not the
 * active version, every row is written twice: as it is in the version of the list, and as the active version has it. Rows that are there as they are
 * to be are left out, unless the table has another version: there, a field that is written later counts, also if it is the same.
 */
export async function prepareMember(
  operations: readonly TableOperations[],
  newBlobs: ReadonlyMap<string, NewBlob>,
  tableOf: (operations: TableOperations) => BridgedTable | Promise<BridgedTable>,
  options: PrepareOptions,
): Promise<CommitMember> {
  const pacer = new Pacer(options.environment);
  const total = operations.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0);
  const changes: TableChange[] = [];
  const blobs = new BlobChanges(newBlobs, options.environment);
  const prepare = async (list: TableOperations, isOwn: boolean): Promise<void> => {
    const { state, isWhole, active, checked, isSole } = await tableOf(list);
    const order = await list.order(pacer);
    const skipsEqual = isOwn && isSole;
    const fold = (): Promise<FoldedChanges> => FoldedChanges.of(list, state, order, pacer, { skipsEqual });
    const folded = await fold();
    if (folded.done) return;
    const ofList = active === undefined ? checked : [];
    const rows = list.shape.blobFields.length === 0 ? folded : new ObservedChanges(folded, list, blobs);
    changes.push(
      await change(
        list.shape,
        active?.schema ?? list.shape.schema,
        isWhole ? UniqueCheck.on(state, ofList) : undefined,
        rows,
        fold,
      ),
    );
    if (active === undefined) return;
    const shadows = async (): Promise<ShadowChanges> =>
      ShadowChanges.of(await fold(), active.state, active.translation);
    changes.push(
      await change(
        active.state.shape,
        active.state.shape.schema,
        UniqueCheck.on(active.state, checked),
        await shadows(),
        shadows,
      ),
    );
  };
  // `again` gives the same rows once more: rows that are staged are all checked before any of them is stored.
  const change = async (
    shape: TableShape,
    schema: StoredSchema,
    unique: UniqueCheck | undefined,
    rows: ChangeStream,
    again: () => Promise<ChangeStream>,
  ): Promise<TableChange> => {
    const staged = total > options.maxCommitBytes;
    if (staged) {
      await unique?.checkStream(await again(), pacer);
      return { schema, ...(await stageChanges(shape, rows, pacer, options)) };
    }
    const node = await encodeChanges(shape, rows, pacer);
    await unique?.checkLeaf(node, pacer);
    return { schema, node };
  };
  for (const list of operations) await prepare(list, true);
  // The rows of the blob tables are made from the rows written above. None of them is stored already, so none is left out.
  for (const list of blobs.lists) await prepare(list, false);
  return { changes };
}

async function encodeChanges(shape: TableShape, folded: ChangeStream, pacer: Pacer): Promise<Node> {
  const entries = new NodeEntries(shape.changeShape);
  while (!folded.done) {
    const { key, keyStart, keyEnd, source, base } = folded;
    if (source !== undefined) entries.addRow(key, keyStart, keyEnd, source, base);
    const advanced = folded.advance();
    if (advanced !== undefined) await advanced;
    if ((entries.count & 0xff) === 0 && pacer.due()) await pacer.pause();
  }
  const name = commitBlockName(shape.name);
  return openSealed(name, entries.encode(name, 0, entries.count));
}

/** Writes the changes as a tree into separate objects; only the root of the tree goes into the commit. */
async function stageChanges(
  shape: TableShape,
  folded: ChangeStream,
  pacer: Pacer,
  options: PrepareOptions,
): Promise<{ node: Node; staged: StagedRuns }> {
  const sink = new StagedSink(new Uploads(options), options.environment, options.slot);
  const root = await applyChanges(new Tree(noBlocks, null), folded, {
    sink,
    leaf: shape.changeShape,
    blockSizeBytes: options.blockSizeBytes,
    pacer,
    counters: { splits: 0, joins: 0, rootSplits: 0 },
  });
  await sink.finish();
  invariant(root.kind === 'new', 'The root of staged changes is not a new node');
  const name = commitBlockName(shape.name);
  const node = openSealed(name, root.entries.encode(name, 0, root.entries.count));
  return { node, staged: { runs: sink.runs } };
}

/** Makes a layer over a state, for an overlay, of the operations from position `from` on; undefined if they change nothing. */
export async function overlayLayer(
  list: TableOperations,
  from: number,
  state: TableState,
  environment: Environment,
): Promise<Tree | undefined> {
  const pacer = new Pacer(environment);
  const folded = await FoldedChanges.of(list, state, await list.orderFrom(from, pacer), pacer, { lenient: true });
  return folded.done ? undefined : treeOfNode(await encodeChanges(list.shape, folded, pacer));
}
