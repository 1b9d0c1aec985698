/**
 * Drops a table: one commit says so, and with it everything of the table is gone. The commit also moves the records of its blobs to the
 * deleted blobs, whose objects gc deletes, as the deletion of the rows would.
 *
 * Invariant: the records that the commit moves are those of exactly the state that it follows.
 */
import type { Environment } from '../base/env.ts';
import { InvalidOptionError, TableNotFoundError } from '../base/errors.ts';
import { didYouMean, kinds, OptionTable } from '../base/options.ts';
import { Pacer } from '../base/pacer.ts';
import { blobsSchema, deletedBlobsSchema } from '../blob/blob-tables.ts';
import type { Engine } from '../engine/engine.ts';
import type { CommitMember } from '../format/commit.ts';
import { decodeRow } from '../format/row-decode.ts';
import { isSystemTable } from '../format/stored-schema.ts';
import { TableShape } from '../schema/table-shape.ts';
import { isSameTree } from '../tree/tree.ts';
import type { RunCursor } from '../tree/cursor.ts';
import type { Tree } from '../tree/tree.ts';
import { isDeleted } from '../view/merged-cursor.ts';
import { TableState } from '../view/table-state.ts';
import type { View } from '../view/view.ts';
import { makeMember } from './make-member.ts';
import type { MemberOptions } from './make-member.ts';
import { Operation, TableOperations } from './table-operations.ts';

/** Options of `db.dropTable()`. */
export interface DropTableOptions {
  /** Whether a table that is not there is no error. Default false. */
  readonly ifExists?: boolean;
  /** Ends the call early. If its commit had begun to be written, the outcome is then unknown. */
  readonly signal?: AbortSignal;
}

export const dropTableOptions: OptionTable<DropTableOptions> = new OptionTable({
  ifExists: kinds.flag,
  signal: kinds.signal,
});

export interface DropTableContext extends Omit<MemberOptions, 'slot'> {
  readonly engine: Engine;
}

const callName = 'db.dropTable()';
/** About how many bytes a drop without blobs takes in a commit. */
const dropBytes = 256;

/** Drops a table. Resolves to whether there was one, once that is durable. */
export async function dropTable(
  context: DropTableContext,
  table: string,
  { ifExists = false, signal }: DropTableOptions,
): Promise<boolean> {
  const { engine, environment } = context;
  if (isSystemTable(table)) {
    throw new InvalidOptionError(
      'table',
      `${callName} cannot drop '${table}': it is the database's own. The tables of the application can be dropped.`,
    );
  }
  const blobs = new BlobsOfTable(table, environment);
  let hasFound = false;
  await engine.withDeadline(callName, signal, ({ signal: inner }) => engine.refresh(inner));
  const before = engine.view.drops.of(table)?.slot;
  const prepare = async (view: View): Promise<CommitMember> => {
    // A table that was created again meanwhile is not the one that was meant.
    const isSame = view.drops.of(table)?.slot === before;
    const shape = isSame ? view.table(table)?.shape : undefined;
    hasFound = shape !== undefined;
    if (shape === undefined) {
      if (!ifExists) throw notFound(view, table);
      return { changes: [] };
    }
    const operations = hasBlobs(view, table) ? await blobs.operations(view) : [];
    const { changes } = await makeMember(operations, new Map(), (list) => systemTable(view, list), {
      ...context,
      slot: view.tail + 1,
    });
    return { changes, drops: [{ table, version: shape.version }] };
  };
  // Reading the records of very many blobs may take longer than a commit may.
  await engine.withSignal(callName, signal, async () => {
    if (hasBlobs(engine.view, table)) await blobs.read(engine.view);
  });
  // Nothing else fits into a commit with the records of blobs.
  const sizeBytes = hasBlobs(engine.view, table) ? Number.MAX_SAFE_INTEGER : dropBytes;
  await engine.withDeadline(callName, signal, ({ signal: inner }) =>
    engine.append({ signal: inner, sizeBytes, prepare }),
  );
  return hasFound;
}

function hasBlobs(view: View, table: string): boolean {
  return (view.table(table)?.shape.blobFields.length ?? 0) > 0;
}

function systemTable(view: View, { shape }: TableOperations): Awaited<ReturnType<Parameters<typeof makeMember>[2]>> {
  const state = view.table(shape.name) ?? view.emptyTable(shape.schema);
  return { state, isWhole: true, isSole: false, active: undefined, checked: [] };
}

function notFound(view: View, table: string): TableNotFoundError {
  const known = [...view.tables.keys()].filter((name) => !isSystemTable(name));
  const drop = view.drops.of(table);
  const when = drop === undefined ? '' : ` It was dropped at position ${drop.slot} by node ${drop.nodeId}.`;
  const guess = didYouMean(table, known);
  return new TableNotFoundError(
    table,
    `There is no table '${table}' in the database${guess === '' ? '.' : guess}${when} Nothing was changed: with ` +
      '{ ifExists: true } that is no error.',
  );
}

const blobsShape = new TableShape(blobsSchema);
const deletedBlobsShape = new TableShape(deletedBlobsSchema);

/** A blob that a row of the table refers to. */
interface OwnedBlob {
  readonly key: Uint8Array;
  readonly field: string;
}

/** The blobs of a table, read once for all states that have the same tree of records. */
class BlobsOfTable {
  readonly #table: string;
  readonly #environment: Environment;
  /** The tree whose records were read last, and the blobs of the table among them. */
  #known: { readonly tree: Tree; readonly blobs: ReadonlyMap<string, OwnedBlob> } | undefined;

  constructor(table: string, environment: Environment) {
    this.#table = table;
    this.#environment = environment;
  }

  /** Returns the operations that move the records of the table's blobs in a view. */
  async operations(view: View): Promise<TableOperations[]> {
    const blobs = await this.read(view);
    if (blobs.size === 0) return [];
    const records = new TableOperations(blobsShape, this.#environment);
    const deleted = new TableOperations(deletedBlobsShape, this.#environment);
    const pacer = new Pacer(this.#environment);
    const deletedAt = new Date(this.#environment.now());
    for (const [id, { key, field }] of blobs) {
      records.addDelete(id);
      deleted.addDocument(Operation.upsert, { id, table: this.#table, key, field, deletedAt });
      if (pacer.due()) await pacer.pause();
    }
    return [records, deleted];
  }

  /** The blobs of the table in a view, by their references. */
  async read(view: View): Promise<ReadonlyMap<string, OwnedBlob>> {
    const state = view.table(blobsSchema.name);
    if (state === undefined) return new Map();
    if (this.#known === undefined || !isSameTree(this.#known.tree, state.tree)) {
      const merged = new TableState(state.shape, state.tree, state.indexes);
      const found = new Map<string, OwnedBlob>();
      await this.#take(merged.scan(), found);
      this.#known = { tree: state.tree, blobs: found };
    }
    if (state.layers.length === 0) return this.#known.blobs;
    const blobs = new Map(this.#known.blobs);
    await this.#take(state.scanLayers({}, true), blobs);
    return blobs;
  }

  /** Takes records into account, also those that are deleted. */
  async #take(cursor: RunCursor, blobs: Map<string, OwnedBlob>): Promise<void> {
    const pacer = new Pacer(this.#environment);
    cursor.expect?.(Number.POSITIVE_INFINITY);
    while (await cursor.next()) {
      const { node, from, to } = cursor;
      for (let i = from; i < to; i++) {
        const id = blobsShape.keyValue(node.key(i)) as string;
        if (isDeleted(node, i)) blobs.delete(id);
        else {
          const { table, key, field } = decodeRow(blobsShape.layout, node, node.rowBase(i));
          if (table === this.#table) blobs.set(id, { key: key as Uint8Array, field: field as string });
        }
        if (pacer.due()) await pacer.pause();
      }
    }
  }
}
