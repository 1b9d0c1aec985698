/**
 * One mutation on its way into a batch: captures its document when it is called, and describes it to the triggers of its table.
 */
import { decodeRow } from '../format/row-decode.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { TableState } from '../view/table-state.ts';
import { BlobValue } from '../blob/blob-value.ts';
import { randomUuid } from '../base/ids.ts';
import { documentValue } from '../format/row-encode.ts';
import type { NewBlob } from './blob-changes.ts';
import type { OperationSet } from './operation-set.ts';
import { Operation } from './table-operations.ts';
import type { TriggerOperation } from '../schema/registered-functions.ts';

type Row = Record<string, unknown>;

/**
 * Adds a document's operation to a set, and returns the row's primary key; blob values become new references. Throws `EncodeError`,
 * having added nothing.
 */
export function captureDocument(
  set: OperationSet,
  shape: TableShape,
  kind: Operation,
  document: unknown,
  condition?: object,
): unknown {
  if (shape.blobFields.length === 0 || typeof document !== 'object' || document === null) {
    return set.list(shape).addDocument(kind, document, condition);
  }
  const captured: Row = { ...document };
  const found: { reference: string; value: BlobValue }[] = [];
  for (const field of shape.blobFields) {
    const value = documentValue(document, field);
    if (!(value instanceof BlobValue)) continue;
    const reference = randomUuid(set.environment);
    found.push({ reference, value });
    Object.defineProperty(captured, field.name, { value: reference, enumerable: true });
  }
  const key = set.list(shape).addDocument(kind, captured, condition);
  for (const blob of found) set.blobs.set(blob.reference, { ...blob, record: undefined, checkedTail: -1 });
  return key;
}

/** A mutation as triggers receive it. */
export interface DescribedMutation {
  readonly operation: TriggerOperation;
  readonly row: Row;
  /** The row before the mutation; undefined where none is known. */
  readonly before: Row | undefined;
}

/** The only operation of a set, to be described to triggers. */
export class CapturedMutation {
  readonly #set: OperationSet;
  readonly #shape: TableShape;
  readonly #kind: Operation;

  constructor(set: OperationSet, shape: TableShape, kind: Operation) {
    this.#set = set;
    this.#shape = shape;
    this.#kind = kind;
  }

  /**
   * Returns the operation's name for triggers, and the rows that they receive; a blob field holds the value while it is new. `state`:
   * the table without this mutation; `newBlob` returns a blob that the batch added before.
   */
  async describe(state: TableState, newBlob: (reference: string) => NewBlob | undefined): Promise<DescribedMutation> {
    const described = await this.#describe(state);
    for (const row of [described.row, described.before]) {
      for (const field of this.#shape.blobFields) {
        // Where the row was deleted and none was known, it has no such field.
        const reference = row?.[field.name];
        if (row === undefined || typeof reference !== 'string') continue;
        const blob = this.#set.blobs.get(reference) ?? newBlob(reference);
        if (blob !== undefined) row[field.name] = blob.value;
      }
    }
    return described;
  }

  async #describe(before: TableState): Promise<DescribedMutation> {
    const list = this.#set.list(this.#shape);
    const key = list.keys.key(0);
    const known = await before.lookup(key);
    if (this.#kind === Operation.delete) {
      if (known === undefined) {
        const row = this.#shape.keyDocument(this.#shape.keyValue(key)) as Row;
        return { operation: 'delete', row, before: undefined };
      }
      return { operation: 'delete', row: this.#decode(before, known), before: this.#decode(before, known) };
    }
    const after = await this.#set.overlayOn(before);
    const changed = await after.lookup(key);
    // An update of a row that is not there changes nothing; the flush will reject it, and triggers see the given document.
    const row = changed === undefined ? this.#given() : this.#decode(after, changed);
    const isUpsert = this.#kind === Operation.upsert || this.#kind === Operation.upsertFields;
    const isUpdate = this.#kind === Operation.update || this.#kind === Operation.increment;
    const updates = isUpdate || (isUpsert && known !== undefined);
    // An insert of a row that is there is shown as it was given: the flush will reject it.
    const replaced = updates && known !== undefined ? this.#decode(before, known) : undefined;
    return { operation: updates ? 'update' : 'insert', row, before: replaced };
  }

  #given(): Row {
    const list = this.#set.list(this.#shape);
    return decodeRow(this.#shape.layout, list.arena, list.base(0));
  }

  #decode(state: TableState, { source, base }: NonNullable<Awaited<ReturnType<TableState['lookup']>>>): Row {
    return decodeRow(state.shape.layout, source, base);
  }
}
