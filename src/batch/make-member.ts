/**
 * Makes the member of a flush: the changes that a commit holds for it. The operations of its batch are folded into one row a key
 * ({@link FoldedChanges}), validated against a state, checked for unique indexes ({@link UniqueCheck}) and encoded, in the commit
 * itself or, if they are large, as a tree in objects of its own ({@link StagedSink}).
 */
import { joinBytes } from '../base/bytes.ts';
import { isPromise } from '../base/brands.ts';
import { invariant } from '../base/errors.ts';
import { Pacer } from '../base/pacer.ts';
import { commitBlockName } from '../format/commit.ts';
import type { CommitMember, StagedRuns, TableChange } from '../format/commit.ts';
import { NodeEntries } from '../format/node-entries.ts';
import type { EntryShape } from '../format/node-entries.ts';
import { openSealed } from '../format/node.ts';
import type { Node } from '../format/node.ts';
import { rowDeletedFlag } from '../format/row-layout.ts';
import type { RowSource } from '../format/row-layout.ts';
import type { StoredSchema } from '../format/stored-schema.ts';
import type { BridgedTable } from '../migration/bridge.ts';
import { ShadowChanges } from '../migration/shadow-changes.ts';
import type { RowValidator } from '../schema/row-validator.ts';
import type { TableShape } from '../schema/table-shape.ts';
import { noBlocks } from '../tree/block-source.ts';
import { Uploads } from '../tree/block-writer.ts';
import type { UploadOptions } from '../tree/block-writer.ts';
import { Tree } from '../tree/tree.ts';
import { applyChanges } from '../tree/write.ts';
import type { ChangeStream } from '../tree/write.ts';
import { BlobChanges } from './blob-changes.ts';
import type { NewBlob } from './blob-changes.ts';
import { FoldedChanges } from './folded-changes.ts';
import type { TableOperations } from './table-operations.ts';
import { UniqueCheck } from './unique-check.ts';
import { randomUuid } from '../base/ids.ts';
import type { BlockRef } from '../format/block.ts';
import { stagedName, stagedRun } from '../format/object-names.ts';
import type { NodeSink } from '../tree/level-writer.ts';

export interface MemberOptions extends UploadOptions {
  readonly blockSizeBytes: number;
  /** A flush whose operations take more bytes than this stages its changes; otherwise the commit itself holds them. */
  readonly maxCommitBytes: number;
  /** The slot that the commit is for. */
  readonly slot: number;
  /** The time at which rows that had expired count as not there. Default: the present one. */
  readonly expiryMs?: number | undefined;
  /** The checks of the rows of a table version. Default: none. */
  readonly validatorOf?: (shape: TableShape) => RowValidator | undefined;
}

/**
 * Makes the member of a flush from the operations of its batch, whose blobs have been uploaded. `tableOf` gives the table that a list
 * of operations is validated on. Where that is not the active version of the table, every row is written twice: in the version of the
 * list, and in the active version. A row that would not change is left out, unless the table has another version: there, a field that
 * is written later counts even if its value stays.
 *
 * Rejects with the error of the operation that contradicts the state: `DuplicateKeyError`, `RowNotFoundError`, `UniqueIndexError`,
 * `ValidationError`, and so on.
 */
export async function makeMember(
  operations: readonly TableOperations[],
  newBlobs: ReadonlyMap<string, NewBlob>,
  tableOf: (operations: TableOperations) => BridgedTable | Promise<BridgedTable>,
  options: MemberOptions,
): Promise<CommitMember> {
  const pacer = new Pacer(options.environment);
  const sizeBytes = operations.reduce((bytes, list) => bytes + list.sizeBytes, 0);
  const isStaged = sizeBytes > options.maxCommitBytes;
  const hasBlobs = operations.some(({ shape }) => shape.blobFields.length > 0);
  const blobs = hasBlobs ? new BlobChanges(newBlobs, options.environment) : undefined;
  const changes: TableChange[] = [];

  /** Adds the changes of one list; of a table with another active version, in both versions. */
  const addChanges = async (given: TableOperations, ofUser: boolean): Promise<void> => {
    const table = await tableOf(given);
    const { state, isWhole, active, checked, isSole } = table;
    const nowMs = options.expiryMs ?? options.environment.now();
    const list = await withExpired(given, table, nowMs, pacer);
    const order = await list.order(pacer);
    const folding = { skipsEqual: ofUser && isSole, nowMs };
    const fold = (): Promise<FoldedChanges> => FoldedChanges.of(list, state, order, pacer, folding);
    const { shape } = list;
    const validator = ofUser ? options.validatorOf?.(shape) : undefined;
    if (validator !== undefined) await validateRows(await fold(), validator, pacer);
    const folded = await fold();
    if (folded.done) return;
    const rows =
      blobs === undefined || shape.blobFields.length === 0 ? folded : new ObservedChanges(folded, list, blobs);
    const indexes = active === undefined ? checked : [];
    const unique = isWhole ? UniqueCheck.on(state, indexes) : undefined;
    changes.push(await checkAndEncode({ shape, schema: active?.schema ?? shape.schema, unique, rows, again: fold }));
    if (active === undefined) return;
    const { state: activeState, translation } = active;
    const shadows = async (): Promise<ShadowChanges> => ShadowChanges.of(await fold(), activeState, translation);
    changes.push(
      await checkAndEncode({
        shape: activeState.shape,
        schema: activeState.shape.schema,
        unique: UniqueCheck.on(activeState, checked),
        rows: await shadows(),
        again: shadows,
      }),
    );
  };

  const checkAndEncode = async ({ shape, schema, unique, rows, again }: FoldedTable): Promise<TableChange> => {
    if (isStaged) {
      await unique?.checkStream(await again(), pacer);
      const newRun = (): string => stagedRun(options.slot, randomUuid(options.environment));
      const staging = { ...options, newRun };
      return { schema, ...(await stageChanges(shape.name, shape.changeShape, rows, pacer, staging)) };
    }
    const node = await encodeChanges(shape, rows, pacer);
    await unique?.checkLeaf(node, pacer);
    return { schema, node };
  };

  for (const list of operations) await addChanges(list, true);
  // The rows of the blob tables are made from the rows above. None of them is stored already, so none is left out.
  for (const list of blobs?.lists ?? []) await addChanges(list, false);
  return { changes };
}

/**
 * Returns operations that also delete the rows that have expired and whose values in unique indexes the operations take. Rejects with
 * `UniqueIndexError`.
 */
async function withExpired(
  list: TableOperations,
  { state, isWhole, active, checked }: BridgedTable,
  nowMs: number,
  pacer: Pacer,
): Promise<TableOperations> {
  if (list.shape.expiry === undefined) return list;
  const own = isWhole ? UniqueCheck.on(state, active === undefined ? checked : [], nowMs) : undefined;
  const other = active && UniqueCheck.on(active.state, checked, nowMs);
  if (own === undefined && other === undefined) return list;
  const order = await list.order(pacer);
  const fold = (): Promise<FoldedChanges> => FoldedChanges.of(list, state, order, pacer, { nowMs });
  await own?.checkStream(await fold(), pacer);
  if (active !== undefined) {
    await other?.checkStream(await ShadowChanges.of(await fold(), active.state, active.translation), pacer);
  }
  const keys = [...(own?.expired ?? []), ...(other?.expired ?? [])];
  return keys.length === 0 ? list : list.withExpired(keys);
}

/** Checks the rows that a flush stores. Rejects with `ValidationError`. */
async function validateRows(rows: FoldedChanges, validator: RowValidator, pacer: Pacer): Promise<void> {
  while (!rows.done) {
    const { source, base } = rows;
    if (source !== undefined && ((source.rows[base] as number) & rowDeletedFlag) === 0) {
      const checked = validator.check(source, base);
      if (isPromise(checked)) await checked;
    }
    const advanced = rows.advance();
    if (isPromise(advanced)) await advanced;
    if (pacer.due()) await pacer.pause();
  }
}

/** The folded rows of one version of a table, on their way into a commit. */
interface FoldedTable {
  readonly shape: TableShape;
  readonly schema: StoredSchema;
  readonly unique: UniqueCheck | undefined;
  readonly rows: ChangeStream;
  /** Gives the same rows once more: staged rows are all checked before any of them is stored. */
  readonly again: () => Promise<ChangeStream>;
}

/** Encodes rows as one leaf, which the commit itself holds. */
export async function encodeChanges(shape: TableShape, folded: ChangeStream, pacer: Pacer): Promise<Node> {
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

export interface StageOptions extends UploadOptions {
  readonly blockSizeBytes: number;
  /** Returns the id of the next run: its slot is the last one whose commit may name the run. */
  readonly newRun: () => string;
  /** Whether the root is stored behind the other blocks as well, so that the tree can be opened without a commit. */
  readonly storesRoot?: boolean;
}

/** A tree in objects of its own. */
export interface StagedChanges {
  readonly node: Node;
  readonly staged: StagedRuns;
  /** The root, where it is stored. */
  readonly root?: BlockRef;
}

/**
 * Writes changes as a tree into separate objects. Only the root of the tree goes into the commit, or stays in memory. `leaf`: the
 * shape of the tree's leaves. There must be a change.
 */
export async function stageChanges(
  table: string,
  leaf: EntryShape,
  changes: ChangeStream,
  pacer: Pacer,
  options: StageOptions,
): Promise<StagedChanges> {
  const sink = new StagedSink(new Uploads(options), options.newRun);
  const root = await applyChanges(new Tree(noBlocks, null), changes, {
    sink,
    leaf,
    blockSizeBytes: options.blockSizeBytes,
    pacer,
    counters: { splits: 0, joins: 0, rootSplits: 0 },
  });
  invariant(root.kind === 'new', 'The root of staged changes is not a new node');
  const { entries } = root;
  const stored = options.storesRoot === true ? await sink.put(entries, 0, entries.count) : undefined;
  await sink.finish();
  const name = commitBlockName(table);
  const node = openSealed(name, entries.encode(name, 0, entries.count));
  return { node, staged: { runs: sink.runs }, ...(stored && { root: stored }) };
}

/** Folded rows; each is passed to the bookkeeping of blobs as it is read. */
class ObservedChanges implements ChangeStream {
  readonly #folded: FoldedChanges;
  readonly #list: TableOperations;
  readonly #blobs: BlobChanges;

  /** Passes the first row on at once. Throws `BlobReferenceError`. */
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

/** Size of an object that holds staged runs, in bytes. */
export const stagedObjectBytes: number = 8 * 1024 * 1024;

export class StagedSink implements NodeSink {
  readonly #uploads: Uploads;
  readonly #newRun: () => string;
  readonly #runs: string[] = [];
  #blocks: Uint8Array[] = [];
  #bytes = 0;

  /** `newRun`: returns the id of the next run. It holds the last slot whose commit may name the run, so gc knows when no commit will. */
  constructor(uploads: Uploads, newRun: () => string) {
    this.#uploads = uploads;
    this.#newRun = newRun;
  }

  /** Names of the runs, as block references count them. */
  get runs(): readonly string[] {
    return this.#runs;
  }

  async put(entries: NodeEntries, from: number, to: number): Promise<BlockRef> {
    if (this.#blocks.length === 0) this.#runs.push(this.#newRun());
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

  /** Stores the rest of the blocks; they are durable once the uploads are finished. */
  async finish(): Promise<void> {
    if (this.#blocks.length > 0) await this.#store();
    await this.#uploads.finish();
  }

  async #store(): Promise<void> {
    const bytes = joinBytes(this.#blocks);
    this.#blocks = [];
    this.#bytes = 0;
    await this.#uploads.start(stagedName(this.#runs[this.#runs.length - 1] as string), bytes);
  }
}
