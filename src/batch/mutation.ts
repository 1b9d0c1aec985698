/**
 * One mutation on its way into a batch: captures its document when it is called, and describes it to the triggers of its table.
 */
import { decodeRow } from '../format/row-decode.ts';
import { keyDocument } from '../schema/key-documents.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { TableState } from '../view/table-state.ts';
import { BlobValue } from '../blob/blob-value.ts';
import { randomUuid } from '../base/ids.ts';
import { documentValue } from '../format/row-encode.ts';
import type { NewBlob } from './blob-changes.ts';
import type { OperationSet } from './operation-set.ts';
import { Operation } from './table-operations.ts';
import type { TriggerOperation } from '../schema/registered-functions.ts';
import { BatchStateError } from '../base/errors.ts';

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
  const found: Pick<NewBlob, 'reference' | 'table' | 'field' | 'value'>[] = [];
  for (const field of shape.blobFields) {
    const value = documentValue(document, field);
    if (!(value instanceof BlobValue)) continue;
    const reference = randomUuid(set.environment);
    found.push({ reference, table: shape.name, field: field.name, value });
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
    const stored = await before.lookup(key);
    const known = stored !== undefined && this.#shape.isExpired(stored, list.nowMs) ? undefined : stored;
    if (this.#kind === Operation.delete) {
      if (known === undefined) {
        const row = keyDocument(this.#shape, this.#shape.keyValue(key)) as Row;
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

/** The maximum of rows that are read ahead of their triggers: by then the cache should still have them. */
const maxReadAhead = 64;

/** The number of mutations past their turn after which they are removed from the queue. */
const maxPassed = 1024;

interface Mutation {
  readonly host: StateHost;
  readonly shape: TableShape;
  readonly key: Uint8Array;
}

interface StateHost {
  tableState(table: string): TableState | Promise<TableState>;
}

export class TriggerReads {
  /** Mutations whose rows are not read yet, in the order of their turns. */
  readonly #waiting: Mutation[] = [];
  #next = 0;
  /** The number of mutations whose rows were read and that have not had their turn. */
  #begun = 0;

  /** Adds a mutation; its turn comes after all that were added before. */
  add(host: StateHost, shape: TableShape, key: Uint8Array): void {
    this.#waiting.push({ host, shape, key });
    // The first one's turn comes at once.
    if (this.#waiting.length - this.#next > 1 || this.#begun > 0) this.#fill();
  }

  /** Called when the turn of the first mutation has come: it reads its row, unless that was read ahead. */
  turn(): void {
    if (this.#begun > 0) this.#begun--;
    else this.#next++;
    this.#fill();
  }

  #fill(): void {
    while (this.#begun < maxReadAhead && this.#next < this.#waiting.length) {
      const mutation = this.#waiting[this.#next++] as Mutation;
      this.#begun++;
      // A failure is reported at the mutation's own turn.
      this.#read(mutation).catch(() => undefined);
    }
    if (this.#next === this.#waiting.length || this.#next >= maxPassed) {
      this.#waiting.splice(0, this.#next);
      this.#next = 0;
    }
  }

  async #read({ host, shape, key }: Mutation): Promise<void> {
    const state = await host.tableState(shape.name);
    const { memory } = state.tree.source;
    const { blockBytes } = memory;
    if (!memory.beginReadAhead(blockBytes)) return;
    try {
      await state.lookup(key);
    } finally {
      memory.endReadAhead(blockBytes);
    }
  }
}

/** The error of a call through the handles of a trigger after it has ended. */
export function triggerEnded(table: string): BatchStateError {
  return new BatchStateError(
    `A trigger on table '${table}' has ended, and this call through its batch or dbApi came after that. Nothing was ` +
      'added: await in the trigger all that it begins (the function that forEach() is given is awaited by nobody).',
  );
}
