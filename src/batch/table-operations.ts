/**
 * The operations that a batch holds for one table, encoded as they come: the values of a document are captured by the call
 * and checked by it, so that nothing can fail later for a bad value.
 */
import { ByteWriter, compareRanges } from '../base/bytes.ts';
import type { OrderedValue } from '../base/bytes.ts';
import type { Environment } from '../base/env.ts';
import { EncodeError } from '../base/errors.ts';
import { timeOrderedUuid } from '../base/ids.ts';
import { describeValue } from '../base/messages.ts';
import { kinds, OptionTable } from '../base/options.ts';
import type { Pacer } from '../base/pacer.ts';
import { KeyList } from '../format/key-list.ts';
import { readField } from '../format/row-decode.ts';
import {
  appendNullRow,
  checkDocument,
  checkKeys,
  copyRow,
  documentValue,
  FieldProblem,
  writeField,
  RowArena,
} from '../format/row-encode.ts';
import type { LayoutField } from '../format/row-layout.ts';
import { firstBreach } from '../schema/field-rules.ts';
import { keyDocument } from '../schema/key-documents.ts';
import { normalizeKey } from '../schema/table-shape.ts';
import type { KeyValue, TableShape } from '../schema/table-shape.ts';
import { readIncrements } from './increments.ts';
import type { Increment } from './increments.ts';
import { encodeCondition } from './row-condition.ts';
import type { EncodedCondition } from './row-condition.ts';

export const Operation = {
  insert: 1,
  update: 2,
  upsert: 3,
  delete: 4,
  /** An insert, or an update of the named fields where there is such a row. */
  upsertFields: 5,
  /** Numbers are added to fields of the row. */
  increment: 6,
  /** The deletion of a row if it has expired. */
  expire: 7,
} as const;
export type Operation = (typeof Operation)[keyof typeof Operation];

/** Whether an operation changes some fields of a row that is there, and says nothing of the others. */
function changesFields(kind: Operation): boolean {
  return kind === Operation.update || kind === Operation.increment;
}

/** Bytes that the numbers of an increment take, about. */
const incrementBytes = 160;

export class TableOperations {
  readonly shape: TableShape;
  readonly keys: KeyList = new KeyList();
  readonly arena: RowArena = new RowArena('memory/batch');
  readonly #environment: Environment;
  readonly #kinds: Operation[] = [];
  /** Offset of each operation's row in the arena; -1 for deletions. */
  readonly #bases: number[] = [];
  /** One bit a field and operation: whether an update names the field. */
  readonly #named = new ByteWriter();
  readonly #namedBytes: number;
  /** By operation; undefined where none has one. */
  #conditions: Map<number, EncodedCondition> | undefined;
  /** By operation. */
  readonly #increments = new Map<number, readonly Increment[]>();
  #order: Uint32Array | undefined;

  constructor(shape: TableShape, environment: Environment) {
    this.shape = shape;
    this.#environment = environment;
    this.#namedBytes = (shape.layout.fields.length + 7) >> 3;
  }

  get count(): number {
    return this.#kinds.length;
  }

  /** Bytes that the operations take. */
  get sizeBytes(): number {
    return this.arena.sizeBytes + this.keys.sizeBytes + this.count * 16 + this.#increments.size * incrementBytes;
  }

  /** The present time, by which rows expire. */
  get nowMs(): number {
    return this.#environment.now();
  }

  kind(i: number): Operation {
    return this.#kinds[i] as Operation;
  }

  base(i: number): number {
    return this.#bases[i] as number;
  }

  /** The condition of operation `i` on the row that it changes; its values are in the arena. */
  condition(i: number): EncodedCondition | undefined {
    return this.#conditions?.get(i);
  }

  /** The numbers that increment `i` adds to fields of its row. */
  increments(i: number): readonly Increment[] {
    return this.#increments.get(i) ?? [];
  }

  /** Whether update `i` names a field. */
  names(i: number, field: LayoutField): boolean {
    return ((this.#named.bytes[i * this.#namedBytes + (field.index >> 3)] as number) & (1 << (field.index & 7))) !== 0;
  }

  /** Positions of the operations by key, the operations of one key in the order in which they came. */
  async order(pacer: Pacer): Promise<Uint32Array> {
    if (this.#order?.length !== this.count) this.#order = await this.keys.sorted(pacer);
    return this.#order;
  }

  /** Orders the operations from `from` on by their keys. */
  async orderFrom(from: number, pacer: Pacer): Promise<Uint32Array> {
    if (from === 0) return this.order(pacer);
    const order = new Uint32Array(this.count - from).map((_, i) => from + i);
    return order.toSorted((a, b) => this.keys.compare(a, b) || a - b);
  }

  /**
   * Adds an insert, update or upsert, and returns the row's primary key as it is read back. `condition`: the values that fields of
   * the row to update must have. Throws `EncodeError`, and then nothing was added.
   */
  addDocument(kind: Operation, document: unknown, condition?: object): unknown {
    const { arena } = this;
    const base = arena.writer.length;
    const heap = arena.heapWriter.length;
    const named = this.#named.length;
    try {
      const key = this.#encode(kind, document);
      this.#addCondition(condition);
      this.#bases.push(base);
      this.#kinds.push(kind);
      // A value that is not copied when it is read reads back as it is.
      return isAsRead(key) ? key : this.shape.rowKey(arena, base);
    } catch (error) {
      this.#rewind(base, heap, named);
      throw this.#encodeError(error);
    }
  }

  /** Checks a document as {@link addDocument} does, and keeps nothing of it. Throws `EncodeError`. */
  tryDocument(kind: Operation, document: unknown): void {
    const rows = this.arena.writer.length;
    const heap = this.arena.heapWriter.length;
    const named = this.#named.length;
    try {
      this.#encode(kind, document);
    } catch (error) {
      throw this.#encodeError(error);
    } finally {
      this.#rewind(rows, heap, named);
    }
  }

  /** The last operation on the row with a primary key; -1 if there is none. */
  lastOn(primaryKey: unknown): number {
    const writer = new ByteWriter();
    this.shape.writeKey(writer, normalizeKey(this.shape, primaryKey));
    const { keys } = this;
    let i = this.count - 1;
    while (i >= 0 && compareRanges(keys.bytes, keys.start(i), keys.endOf(i), writer.bytes, 0, writer.length) !== 0) i--;
    return i;
  }

  /** Adds an increment: numbers by field. Throws `EncodeError`, and then nothing was added. */
  addIncrement(primaryKey: unknown, fields: unknown, condition?: object): void {
    const increments = readIncrements(this.shape, fields);
    this.addDocument(Operation.increment, this.#documentOf(primaryKey), condition);
    this.#increments.set(this.count - 1, increments);
  }

  /** A document of nothing but a primary key. Throws `EncodeError` if there are not as many values as the key has fields. */
  #documentOf(primaryKey: unknown): object {
    try {
      if (this.shape.keyField === undefined) normalizeKey(this.shape, primaryKey);
    } catch (error) {
      throw this.#encodeError(error);
    }
    return keyDocument(this.shape, primaryKey);
  }

  /** Adds a deletion. Throws `EncodeError`, and then nothing was added. */
  addDelete(primaryKey: unknown, condition?: object): void {
    const rows = this.arena.writer.length;
    const heap = this.arena.heapWriter.length;
    const named = this.#named.length;
    try {
      this.#writeKey(primaryKey);
      this.#addCondition(condition);
    } catch (error) {
      this.#rewind(rows, heap, named);
      throw this.#encodeError(error);
    }
    this.#addKind(Operation.delete);
  }

  /** Adds the deletion of a row if it has expired. */
  addExpiry(key: Uint8Array): void {
    this.keys.writer.appendRange(key, 0, key.length);
    this.keys.end();
    this.#addKind(Operation.expire);
  }

  /** Adds an operation without a row, whose key and condition have been added. */
  #addKind(kind: Operation): void {
    this.#named.zeros(this.#namedBytes);
    this.#bases.push(-1);
    this.#kinds.push(kind);
  }

  /** Returns these operations and deletions of rows that have expired. */
  withExpired(keys: readonly Uint8Array[]): TableOperations {
    const all = new TableOperations(this.shape, this.#environment);
    all.append(this);
    for (const key of keys) all.addExpiry(key);
    return all;
  }

  /** Removes everything appended since the rows, their heap and the named fields had these lengths, and the last key. */
  #rewind(rows: number, heap: number, named: number): void {
    this.arena.rewind(rows, heap);
    this.keys.rewind(this.count);
    this.#named.length = named;
  }

  /** Appends the row of a document and its key, and returns the key in the form that it is made of. Throws {@link FieldProblem}. */
  #encode(kind: Operation, document: unknown): KeyValue {
    const { layout, keyField, keyPlaces, defaults } = this.shape;
    checkDocument(document);
    const { writer, heapWriter } = this.arena;
    const { fields } = layout;
    const base = appendNullRow(layout, writer);
    // Each value is read once: the row and its key must not differ.
    const key: unknown[] = [undefined];
    let present = 0;
    let named = 0;
    for (let i = 0; i < fields.length; i++) {
      const field = fields[i] as LayoutField;
      const value = documentValue(document, field);
      if (value !== undefined) {
        present++;
        named |= 1 << (i & 7);
        if (value !== null) writeField(writer, base, heapWriter, field, value);
        const place = keyPlaces[i] as number;
        if (place >= 0) key[place] = value;
      }
      if ((i & 7) === 7 || i === fields.length - 1) {
        this.#named.u8(named);
        named = 0;
      }
    }
    checkKeys(layout, document, present);
    if (!changesFields(kind)) {
      for (const { field, stored, constant } of defaults) {
        if (documentValue(document, field) !== undefined) continue;
        const value = 'generated' in stored ? this.#generated(stored.generated) : constant;
        writeField(writer, base, heapWriter, field, value);
        const place = keyPlaces[field.index] as number;
        if (place >= 0) key[place] = value;
      }
    }
    key.length = this.shape.keyFields.length;
    const normal = this.#writeKey(keyField === undefined ? key : key[0]);
    this.#checkRules(kind, base);
    return normal;
  }

  /** Adds the condition of the operation that is being added. */
  #addCondition(condition: object | undefined): void {
    if (condition === undefined) return;
    const encoded = encodeCondition(this.shape, condition, this.arena.writer, this.arena.heapWriter);
    this.#conditions ??= new Map();
    this.#conditions.set(this.count, encoded);
  }

  #generated(callName: 'uuidv7' | 'now'): unknown {
    return callName === 'now' ? new Date(this.#environment.now()) : timeOrderedUuid(this.#environment);
  }

  /** An update says nothing of the fields that it does not name. */
  #checkRules(kind: Operation, base: number): void {
    const { rules } = this.shape;
    if (rules === undefined) return;
    const isGiven = (field: LayoutField): boolean => !changesFields(kind) || this.names(this.count, field);
    const found = firstBreach(rules, this.arena, base, isGiven);
    if (found !== undefined) throw new FieldProblem(found.field, found.value, found.problem);
  }

  #writeKey(value: unknown): KeyValue {
    const normal = normalizeKey(this.shape, value);
    this.shape.writeKey(this.keys.writer, normal);
    this.keys.end();
    return normal;
  }

  #encodeError(error: unknown): unknown {
    if (!(error instanceof FieldProblem)) return error;
    const { name } = this.shape;
    const where = error.field === '' ? `table '${name}'` : `field '${error.field}' of table '${name}'`;
    return new EncodeError(name, error.field, error.value, `Cannot store ${where}: ${error.message}.`);
  }

  /** Gives a blob another reference wherever a row holds it. */
  replaceReference(from: string, to: string): void {
    const { writer, heapWriter } = this.arena;
    for (const field of this.shape.blobFields) {
      for (const base of this.#bases) {
        if (base < 0 || readField(this.arena, base, field) !== from) continue;
        writeField(writer, base, heapWriter, field, to);
      }
    }
  }

  /** Appends the operations of another batch, in their order. */
  append(other: TableOperations): void {
    for (let i = 0; i < other.count; i++) {
      const { keys } = other;
      this.keys.writer.appendRange(keys.bytes, keys.start(i), keys.endOf(i));
      this.keys.end();
      const kind = other.kind(i);
      const base = other.base(i);
      const { writer, heapWriter } = this.arena;
      const condition = other.condition(i);
      if (condition !== undefined) {
        const copied = copyRow(this.shape.layout, other.arena, condition.base, writer, heapWriter);
        this.#conditions ??= new Map();
        this.#conditions.set(this.count, { fields: condition.fields, base: copied });
      }
      this.#bases.push(base < 0 ? -1 : copyRow(this.shape.layout, other.arena, base, writer, heapWriter));
      this.#kinds.push(kind);
      const increments = other.#increments.get(i);
      if (increments !== undefined) this.#increments.set(this.count - 1, increments);
      const named = i * other.#namedBytes;
      this.#named.appendRange(other.#named.bytes, named, named + other.#namedBytes);
    }
  }
}

/** Whether a key reads back as the very value that it is made of: times and bytes are given out as copies, and -0 may be read as 0. */
function isAsRead(key: KeyValue): boolean {
  if (!Array.isArray(key)) return isPartAsRead(key as OrderedValue);
  return (key as readonly OrderedValue[]).every(isPartAsRead);
}

function isPartAsRead(part: OrderedValue): boolean {
  return typeof part !== 'object' && part !== 0;
}

/** Options of `Batch.upsert()`. */
export interface UpsertOptions {
  /**
   * Where the row exists, only the given fields are replaced, as in an update; where it does not, the other fields get their
   * default, or null, as in an insert. Default: false, the row is replaced as a whole.
   */
  readonly partial?: boolean;
}

/** The table knows the type of its condition. */
const changeOptions = new OptionTable<{ readonly if?: object | undefined }>({ if: kinds.anything });

const upsertOptions = new OptionTable<UpsertOptions>({ partial: kinds.flag });

/**
 * Returns the condition in the options of a call, which `callName` names; undefined if it has none. Throws `InvalidOptionError` for other
 * options.
 */
export function conditionOf(
  callName: string,
  options: { readonly if?: object | undefined } | undefined,
): object | undefined {
  return options === undefined ? undefined : changeOptions.check(callName, options).if;
}

/** The operation that an upsert with some options is. Throws `InvalidOptionError`. */
export function upsertKind(options: UpsertOptions | undefined): Operation {
  if (options === undefined) return Operation.upsert;
  return upsertOptions.check('batch.upsert()', options).partial === true ? Operation.upsertFields : Operation.upsert;
}

/** A copy of the fields that `updateWhere()` is given. Throws `EncodeError`. */
export function updatedFields(fields: unknown): object {
  if (typeof fields === 'object' && fields !== null && !Array.isArray(fields)) return { ...fields };
  const message = `updateWhere() takes an object of fields, not ${describeValue(fields)}.`;
  throw new EncodeError('', '', fields, message);
}

/** Throws `EncodeError` if fields of `updateWhere()` have the primary key among them. */
export function checkKeyless(table: string, keyNames: readonly string[], fields: object): void {
  const given = keyNames.find((name) => Object.hasOwn(fields, name));
  if (given === undefined) return;
  const value = (fields as Record<string, unknown>)[given];
  const callName = keyNames.length === 1 ? 'the primary key' : 'of the primary key';
  const message = `updateWhere() cannot give '${given}', ${callName} of table '${table}': rows keep the key that they have.`;
  throw new EncodeError(table, given, value, message);
}
