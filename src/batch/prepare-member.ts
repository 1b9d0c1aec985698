/** Turns a batch's operations into the changes that a commit holds: validated against a view, folded, sorted and encoded. */
import { isPromise } from '../base/brands.ts';
import type { Environment } from '../base/env.ts';
import { invariant } from '../base/errors.ts';
import { randomUuid } from '../base/ids.ts';
import { Pacer } from '../base/pacer.ts';
import type { BlockRef } from '../format/block.ts';
import { commitBlockName } from '../format/commit.ts';
import type { CommitMember, StagedRuns, TableChange } from '../format/commit.ts';
import { stagedName, stagedRun } from '../format/object-names.ts';
import { NodeEntries } from '../format/node-entries.ts';
import { openSealed } from '../format/node.ts';
import type { Node } from '../format/node.ts';
import type { RowSource } from '../format/row-layout.ts';
import type { StoredSchema } from '../format/stored-schema.ts';
import type { BridgedTable } from '../migration/bridge.ts';
import { ShadowChanges } from '../migration/shadow-changes.ts';
import type { TableShape } from '../schema/table-shape.ts';
import { noBlocks } from '../tree/block-source.ts';
import { Uploads } from '../tree/block-writer.ts';
import type { UploadOptions, NodeSink } from '../tree/block-writer.ts';
import { Tree, treeOfNode } from '../tree/tree.ts';
import { applyChanges } from '../tree/write.ts';
import type { ChangeStream } from '../tree/write.ts';
import type { ReadThrough } from '../view/query-host.ts';
import type { TableState } from '../view/table-state.ts';
import { BlobChanges } from './blob-changes.ts';
import type { NewBlob } from './blob-changes.ts';
import { FoldedChanges } from './folded-changes.ts';
import { Operation, TableOperations } from './table-operations.ts';
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
async function overlayLayer(
  list: TableOperations,
  from: number,
  state: TableState,
  environment: Environment,
): Promise<Tree | undefined> {
  const pacer = new Pacer(environment);
  const folded = await FoldedChanges.of(list, state, await list.orderFrom(from, pacer), pacer, { lenient: true });
  return folded.done ? undefined : treeOfNode(await encodeChanges(list.shape, folded, pacer));
}

// Packs the blocks of a staged tree into objects of some megabytes each.

/** Size of an object that holds staged runs, in bytes. */
export const stagedObjectBytes: number = 8 * 1024 * 1024;

export class StagedSink implements NodeSink {
  readonly #uploads: Uploads;
  readonly #environment: Environment;
  readonly #slot: number;
  readonly #runs: string[] = [];
  #blocks: Uint8Array[] = [];
  #bytes = 0;

  /** `slot`: that of the commit which will name what is stored here. No other can, so that gc knows when nobody will. */
  constructor(uploads: Uploads, environment: Environment, slot: number) {
    this.#uploads = uploads;
    this.#environment = environment;
    this.#slot = slot;
  }

  /** Names of the runs, as block references count them. */
  get runs(): readonly string[] {
    return this.#runs;
  }

  async put(entries: NodeEntries, from: number, to: number): Promise<BlockRef> {
    if (this.#blocks.length === 0) this.#runs.push(stagedRun(this.#slot, randomUuid(this.#environment)));
    const run = this.#runs[this.#runs.length - 1] as string;
    const block = entries.encode(`${stagedName(run)}+${this.#bytes}`, from, to);
    const ref: BlockRef = {
      birth: this.#runs.length - 1,
      id: this.#bytes.toString(16).padStart(16, '0'),
      count: entries.rowCount(from, to),
      sizeBytes: block.length,
    };
    this.#blocks.push(block);
    this.#bytes += block.length;
    if (this.#bytes >= stagedObjectBytes) await this.#store();
    return ref;
  }

  /** Stores what is left; the blocks are durable once the uploads are finished. */
  async finish(): Promise<void> {
    if (this.#blocks.length > 0) await this.#store();
    await this.#uploads.finish();
  }

  async #store(): Promise<void> {
    const bytes = Buffer.concat(this.#blocks);
    this.#blocks = [];
    this.#bytes = 0;
    await this.#uploads.start(stagedName(this.#runs[this.#runs.length - 1] as string), bytes);
  }
}

// Folded rows that are shown to the blobs' bookkeeping as they pass.

class ObservedChanges implements ChangeStream {
  readonly #folded: FoldedChanges;
  readonly #list: TableOperations;
  readonly #blobs: BlobChanges;

  /** The first row is shown at once. Throws `BlobReferenceError`. */
  constructor(folded: FoldedChanges, list: TableOperations, blobs: BlobChanges) {
    this.#folded = folded;
    this.#list = list;
    this.#blobs = blobs;
    this.#observe();
  }

  get done(): boolean {
    return this.#folded.done;
  }

  get key(): Uint8Array {
    return this.#folded.key;
  }

  get keyStart(): number {
    return this.#folded.keyStart;
  }

  get keyEnd(): number {
    return this.#folded.keyEnd;
  }

  get remove(): boolean {
    return this.#folded.remove;
  }

  get source(): RowSource | undefined {
    return this.#folded.source;
  }

  get base(): number {
    return this.#folded.base;
  }

  advance(): void | Promise<void> {
    const advanced = this.#folded.advance();
    if (isPromise(advanced)) return advanced.then(() => this.#observe());
    this.#observe();
    return undefined;
  }

  #observe(): void {
    const { done, key, keyStart, keyEnd, stored, source, base } = this.#folded;
    if (done || source === undefined) return;
    this.#blobs.observe(this.#list.shape, key.slice(keyStart, keyEnd), stored, { source, base });
  }
}

// Everything that a batch holds: its operations by table, and the blobs that they bring with them.

/** Operations through which the fields that they do not name, or what they add to, show. */
const showsThrough: ReadonlySet<Operation> = new Set([Operation.update, Operation.upsertFields, Operation.increment]);

/** A state with the first `count` operations of a list on top. */
interface KnownOverlay {
  readonly base: TableState;
  readonly list: TableOperations;
  readonly count: number;
  readonly overlaid: TableState;
}

/** Told of rows that what is shown depends on. */
interface RowReader {
  rowRead?(shape: TableShape, key: Uint8Array): void;
}

export class OperationSet {
  readonly environment: Environment;
  readonly #lists = new Map<string, TableOperations>();
  /** The last overlay that was made for each table. */
  readonly #overlays = new Map<string, KnownOverlay>();
  /** By reference. */
  readonly blobs: Map<string, NewBlob> = new Map();

  constructor(environment: Environment) {
    this.environment = environment;
  }

  /** Operations in all. */
  get count(): number {
    let count = 0;
    for (const list of this.#lists.values()) count += list.count;
    return count;
  }

  /** Gives a new blob another reference: what was uploaded under the old one is, or may be, lost. */
  renameBlob(blob: NewBlob): void {
    const { reference } = blob;
    blob.reference = randomUuid(this.environment);
    blob.record = undefined;
    this.blobs.delete(reference);
    this.blobs.set(blob.reference, blob);
    for (const list of this.#lists.values()) list.replaceReference(reference, blob.reference);
    this.#overlays.clear();
  }

  /** The lists that hold anything. */
  get lists(): TableOperations[] {
    return [...this.#lists.values()].filter(({ count }) => count > 0);
  }

  /** The list of a table, made where there is none yet. */
  list(shape: TableShape): TableOperations {
    let list = this.#lists.get(shape.name);
    if (list === undefined) {
      list = new TableOperations(shape, this.environment);
      this.#lists.set(shape.name, list);
    }
    return list;
  }

  /** Adds another set's operations after these. The other set is used up. */
  append(other: OperationSet): void {
    for (const [table, list] of other.#lists) {
      const own = this.#lists.get(table);
      if (own === undefined) this.#lists.set(table, list);
      else own.append(list);
    }
    for (const [reference, blob] of other.blobs) this.blobs.set(reference, blob);
  }

  /**
   * A state with these operations on top; the same state if there are none on its table. `reader` is told of the rows
   * that updates are laid over, of which the fields that they do not name show through; they are read through `through`.
   */
  async overlayOn(state: TableState, reader?: RowReader, through?: ReadThrough): Promise<TableState> {
    const { name } = state.shape;
    const list = this.#lists.get(name);
    if (list === undefined || list.count === 0) return state;
    // Mostly the same state is asked for again, with a few operations more: those go on top of what was made before.
    const known = this.#overlays.get(name);
    const valid = known?.base === state && known.list === list;
    const { count } = list;
    const from = valid ? known.count : 0;
    const below = valid ? known.overlaid : state;
    if (from === count) return below;
    for (let i = from; i < count; i++) {
      const kind = list.kind(i);
      if (showsThrough.has(kind)) reader?.rowRead?.(state.shape, list.keys.key(i));
    }
    const layer = await overlayLayer(list, from, through?.(below) ?? below, this.environment);
    const overlaid = layer === undefined ? below : below.withLayer(layer);
    if (list.count === count) this.#overlays.set(name, { base: state, list, count, overlaid });
    return overlaid;
  }
}
