/** A table version as the engine works with it: its schema with the layout, keys and indexes that follow from it. */
import { encodeUtf8 } from '../base/bytes.ts';
import type { ByteWriter, OrderedValue } from '../base/bytes.ts';
import { CorruptionError } from '../base/errors.ts';
import { describeKey, describeValue } from '../base/messages.ts';
import { defined } from '../base/options.ts';
import { BlockKind } from '../format/block.ts';
import type { EntryShape } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';
import {
  MalformedKey,
  readKeyComponent,
  skipKeyComponent,
  writeKeyComponent,
  writeTextComponent,
  writeWholeTextComponent,
  endOfResult,
} from '../format/ordered-key.ts';
import { heapPlace, isNull, readField, rowDecoder } from '../format/row-decode.ts';
import type { RowDecoder } from '../format/row-decode.ts';
import { FieldProblem } from '../format/row-encode.ts';
import { inlineBytes, nonAsciiFlag, RowLayout } from '../format/row-layout.ts';
import type { LayoutField, RowSource } from '../format/row-layout.ts';
import { canonicalRows, canonicalSchema } from '../format/stored-schema.ts';
import type { StoredDefault, StoredFunctionIndex, StoredIndex, StoredSchema } from '../format/stored-schema.ts';
import type { Bound } from '../format/stored-table.ts';
import { Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import { maxKeyBytes, normalizeValue, ValueProblem } from '../format/values.ts';
import type { Tree } from '../tree/tree.ts';
import { rulesOf } from './field-rules.ts';
import type { FieldRule } from './field-rules.ts';
import { compiledCondition, isInside } from './index-condition.ts';
import type { IndexCondition } from './index-condition.ts';
import { constantDefault } from './schema.ts';

export interface TableIndex {
  readonly name: string;
  /** In the order of their components in an entry; the primary key follows. None where the index is on a function. */
  readonly fields: readonly LayoutField[];
  /** Whether no two rows may agree in all of them, of those that the index is of. */
  readonly unique: boolean;
  /** Which rows it is of. Undefined: all. */
  readonly where?: IndexCondition;
  /** What its entries begin with instead, where it is on a function. */
  readonly result?: FunctionResult;
}

/** What one version of a function makes of a row. */
export interface FunctionResult {
  readonly name: string;
  readonly typeId: TypeId;
  readonly version: number;
}

/** A primary key: its value, or the values of its fields, in their order, where there are several. */
export type KeyValue = OrderedValue | readonly OrderedValue[];

export interface FieldDefault {
  readonly field: LayoutField;
  readonly stored: StoredDefault;
  readonly constant: unknown;
}

/** Indexes that a definition has and a table has not. */
export interface MissingIndexes {
  readonly indexes: readonly StoredIndex[];
  readonly functionIndexes: readonly StoredFunctionIndex[];
}

export class TableShape {
  readonly name: string;
  readonly version: number;
  readonly schema: StoredSchema;
  /** Equal for equal definitions. */
  readonly canonical: string;
  readonly layout: RowLayout;
  /** Those of the primary key, in the order of their components in a key. */
  readonly keyFields: readonly LayoutField[];
  /** The only one of them; undefined where there are several. */
  readonly keyField: LayoutField | undefined;
  /** By the index of each field: its place in the primary key, or -1. */
  readonly keyPlaces: readonly number[];
  /** Those on fields. */
  readonly indexes: readonly TableIndex[];
  readonly functionIndexes: readonly StoredFunctionIndex[];
  readonly defaults: readonly FieldDefault[];
  /** What is asked of values beyond their types; undefined for nothing. */
  readonly rules: readonly FieldRule[] | undefined;
  /** Fields that hold references to managed blobs. */
  readonly blobFields: readonly LayoutField[];
  /** Leaves of the table's tree. */
  readonly leafShape: EntryShape;
  /** Leaves of commits, where rows may be marked as deleted or updated. */
  readonly changeShape: EntryShape;
  /** Makes objects of its rows. */
  readonly decoder: RowDecoder;
  /** The last one that was found to be the same: comparing their texts takes longer than much of what is done with them. */
  #same: TableShape | undefined;
  /** The last one that was found to have no index that this one lacks: views ask for all tables whenever they move on. */
  #withoutMore: TableShape | undefined;

  constructor(schema: StoredSchema) {
    this.name = schema.name;
    this.version = schema.version;
    this.schema = schema;
    this.canonical = canonicalSchema(schema);
    this.layout = new RowLayout(schema.fields);
    const field = (name: string | undefined): LayoutField => this.layout.field(name as string) as LayoutField;
    this.keyFields = schema.primaryKey.map(field);
    this.keyField = this.keyFields.length === 1 ? this.keyFields[0] : undefined;
    this.keyPlaces = this.layout.fields.map((_, i) => this.keyFields.findIndex(({ index }) => index === i));
    this.indexes = schema.indexes.map((index) => tableIndex(this.layout, index));
    this.functionIndexes = schema.functionIndexes ?? [];
    this.defaults = schema.fields.flatMap((stored) => {
      if (stored.default === undefined) return [];
      return [{ field: field(stored.name), stored: stored.default, constant: constantDefault(stored) }];
    });
    this.rules = rulesOf(schema.fields, field);
    this.blobFields = this.layout.fields.filter(({ typeId }) => typeId === Types.blob);
    this.leafShape = { kind: BlockKind.table, level: 0, layout: this.layout, schemaVersion: schema.version };
    this.changeShape = { ...this.leafShape, keepsMarks: true };
    this.decoder = rowDecoder(this.layout);
  }

  /**
   * Whether another shape is of the same definition: it has the same rows, and what both call an index is the same index. One may
   * have indexes that the other has not, since those come and go without a new version.
   */
  isSame(other: TableShape): boolean {
    if (other === this || other === this.#same) return true;
    if (other.canonical !== this.canonical && !isSameButIndexes(this.schema, other.schema)) return false;
    this.#same = other;
    return true;
  }

  /** Returns the indexes of another definition of the same rows whose names this one does not have; undefined where there are none. */
  missingIndexes(definition: TableShape): MissingIndexes | undefined {
    if (definition === this || definition === this.#withoutMore) return undefined;
    const names = new Set([...this.indexes, ...this.functionIndexes].map(({ name }) => name));
    const isMissing = ({ name }: { readonly name: string }): boolean => !names.has(name);
    const indexes = definition.schema.indexes.filter(isMissing);
    const functionIndexes = definition.functionIndexes.filter(isMissing);
    if (indexes.length + functionIndexes.length > 0) return { indexes, functionIndexes };
    this.#withoutMore = definition;
    return undefined;
  }

  /** Name of the primary key's field, or the names of its fields: what a query is given to look up a row by its key. */
  get keyNames(): string | readonly string[] {
    return this.keyField === undefined ? this.schema.primaryKey : this.keyField.name;
  }

  /** Appends the key of a primary key that was normalized. */
  writeKey(writer: ByteWriter, value: KeyValue): void {
    if (this.keyField !== undefined) writeKeyComponent(writer, this.keyField.typeId, value as OrderedValue);
    else {
      const values = value as readonly OrderedValue[];
      for (let i = 0; i < values.length; i++) {
        const { typeId } = this.keyFields[i] as LayoutField;
        writeKeyComponent(writer, typeId, values[i] as OrderedValue);
      }
    }
  }

  /** A document of nothing but a primary key: of an array of values where it is made of several fields. */
  keyDocument(primaryKey: unknown): object {
    const { keyField } = this;
    if (keyField !== undefined) return { [keyField.name]: primaryKey };
    const values = primaryKey as readonly unknown[];
    return Object.fromEntries(this.keyFields.map(({ name }, i) => [name, values[i]]));
  }

  /** The primary key that a document has. */
  keyOfDocument(document: object): unknown {
    const values = this.schema.primaryKey.map((name) => (document as Record<string, unknown>)[name]);
    return this.keyField === undefined ? values : values[0];
  }

  /** Primary key of a key: an array of values where it is made of several fields. */
  keyValue(key: Uint8Array): KeyValue {
    const { keyField } = this;
    if (keyField === undefined) return valuesIn(key, this.keyFields);
    return readKeyComponent(key, 0, skipKeyComponent(key, 0, keyField.typeId), keyField.typeId);
  }

  /** Primary key of a row, as it is read. */
  rowKey(source: RowSource, base: number): KeyValue {
    if (this.keyField !== undefined) return readField(source, base, this.keyField) as OrderedValue;
    return this.keyFields.map((field) => readField(source, base, field) as OrderedValue);
  }

  /** Whether the keys of both are made of the same types: the same values then have the same bytes. */
  hasKeysOf({ keyFields }: TableShape): boolean {
    return (
      keyFields.length === this.keyFields.length &&
      keyFields.every(({ typeId }, i) => typeId === (this.keyFields[i] as LayoutField).typeId)
    );
  }

  /**
   * Appends the index entry of a row: its indexed values and its primary key. False, and nothing is appended, where the index is
   * of some rows and this is none of them.
   */
  writeIndexEntry(
    writer: ByteWriter,
    index: TableIndex,
    source: RowSource,
    base: number,
    primaryKey: Uint8Array,
    primaryKeyLength: number = primaryKey.length,
  ): boolean {
    const { fields, where } = index;
    if (where !== undefined && !isInside(where, source, base)) return false;
    for (let i = 0; i < fields.length; i++) writeFieldComponent(writer, source, base, fields[i] as LayoutField);
    writer.appendRange(primaryKey, 0, primaryKeyLength);
    return true;
  }
}

/** An index on fields, as the engine works with it. */
export function tableIndex(layout: RowLayout, { name, fields, unique, where }: StoredIndex): TableIndex {
  const field = (each: string): LayoutField => layout.field(each) as LayoutField;
  return {
    name,
    fields: fields.map(field),
    unique: unique === true,
    ...defined({ where: where && compiledCondition(where, field) }),
  };
}

/** The indexes of a schema by name, each as a text that is the same for the same index. */
export function indexTexts({ indexes, functionIndexes = [] }: StoredSchema): Map<string, string> {
  const onFields = indexes.map((index): [string, string] => [index.name, indexText(index)]);
  return new Map([
    ...onFields,
    ...functionIndexes.map(({ name, function: on, typeId }): [string, string] => [name, JSON.stringify([on, typeId])]),
  ]);
}

/** An index on fields as a text that is the same for the same index. */
export function indexText({ fields, unique, where }: StoredIndex): string {
  return JSON.stringify([fields, unique ?? false, where?.map(({ field, values }) => [field, values]) ?? null]);
}

function isSameButIndexes(a: StoredSchema, b: StoredSchema): boolean {
  if (canonicalRows(a) !== canonicalRows(b)) return false;
  const others = indexTexts(b);
  const isOther = ([name, text]: [string, string]): boolean => (others.get(name) ?? text) !== text;
  return ![...indexTexts(a)].some(isOther);
}

/** Shapes that somebody uses, by their schemas as text, in the very order in which those have their fields. */
const shapes = new Map<string, WeakRef<TableShape>>();
/** So many entries there may be before those of shapes that nobody uses are removed. */
let maxShapes = 64;

/**
 * The shape of a schema: one for all who have the same in this process. Databases of the same tables share it, and the code that
 * the runtime makes for it.
 */
export function shapeOf(schema: StoredSchema): TableShape {
  const text = JSON.stringify(schema);
  const known = shapes.get(text)?.deref();
  if (known !== undefined) return known;
  const shape = new TableShape(schema);
  shapes.set(text, new WeakRef(shape));
  if (shapes.size > maxShapes) {
    for (const [other, unused] of shapes) if (unused.deref() === undefined) shapes.delete(other);
    maxShapes = Math.max(64, shapes.size * 2);
  }
  return shape;
}

/** Whether keys may hold only the first bytes of a field's values. */
export function isTextField({ typeId }: LayoutField): boolean {
  return typeId === Types.varchar || typeId === Types.bytes;
}

/** The component of a row's field as indexes have it. */
export function writeFieldComponent(writer: ByteWriter, source: RowSource, base: number, field: LayoutField): void {
  if (isTextField(field) && !isNull(source, base, field)) {
    writeTextField(writer, source, base, field, writeTextComponent);
  } else writeKeyComponent(writer, field.typeId, readField(source, base, field) as OrderedValue);
}

/**
 * What a row has in the fields of an index, as components that hold every value whole: equal bytes are equal values. False,
 * and then what was appended means nothing, if one of them is null, or the index is not of the row: it agrees with no other then.
 */
export function writeWholeValues(
  writer: ByteWriter,
  { fields, where }: TableIndex,
  source: RowSource,
  base: number,
): boolean {
  if (where !== undefined && !isInside(where, source, base)) return false;
  for (const field of fields) {
    if (isNull(source, base, field)) return false;
    if (isTextField(field)) writeTextField(writer, source, base, field, writeWholeTextComponent);
    else writeKeyComponent(writer, field.typeId, readField(source, base, field) as OrderedValue);
  }
  return true;
}

/** The values that a key begins with, by the fields that they are of: a text that the key holds in part, as far as it does. */
export function valuesIn(key: Uint8Array, fields: readonly LayoutField[]): OrderedValue[] {
  let from = 0;
  return fields.map(({ typeId }) => {
    const end = skipKeyComponent(key, from, typeId);
    const value = readKeyComponent(key, from, end, typeId);
    from = end;
    return value;
  });
}

/** Where the indexed values end in the key of an entry: the primary key follows. Throws `MalformedKey`. */
export function endOfValues(key: Uint8Array, { fields, result }: TableIndex): number {
  if (result !== undefined) return endOfResult(key, result.typeId);
  let end = 0;
  for (let i = 0; i < fields.length; i++) end = skipKeyComponent(key, end, (fields[i] as LayoutField).typeId);
  return end;
}

/** Where the indexed values end in the key of an entry: the primary key follows. */
export function endOfValue(node: Node, key: Uint8Array, keyLength: number, index: TableIndex): number {
  let end: number;
  try {
    end = endOfValues(key, index);
  } catch (error) {
    if (!(error instanceof MalformedKey)) throw error;
    throw new CorruptionError(node.name, `An index entry is malformed: ${error.message}`, { cause: error });
  }
  if (end >= keyLength) throw new CorruptionError(node.name, 'An index entry names no primary key');
  return end;
}

/** The component of a text or bytes field, from where its bytes lie. */
function writeTextField(
  writer: ByteWriter,
  source: RowSource,
  base: number,
  field: LayoutField,
  write: typeof writeTextComponent,
): void {
  const at = base + field.offset;
  const length = (source.rowsView.getUint32(at, true) & ~nonAsciiFlag) >>> 0;
  if (length <= inlineBytes) {
    write(writer, source.rows, at + 4, at + 4 + length);
    return;
  }
  const start = heapPlace(source, at, length, field);
  write(writer, source.heap, start, start + length);
}

/** Shape of the leaves of an index. */
export const indexLeafShape: EntryShape = { kind: BlockKind.index, level: 0 };

// An index that is being added to a table that has rows: it is no index of its schema yet. Every merge changes the entries of
// rows up to `built` with their rows, whichever node does it, and the others have none (docs/protocol.md, "Added indexes").

export interface AddedIndex {
  readonly stored: StoredIndex;
  readonly index: TableIndex;
  /** The entries. */
  readonly tree: Tree;
  /** The last key whose entry was made; undefined before the first, null once all are. */
  readonly built: Bound;
  /** Rows whose entries were made, for people. */
  readonly rows: number;
  /** Generation in which it came to be. */
  readonly birth: number;
  /** Why it cannot be; undefined: no reason is known. */
  readonly problem: string | undefined;
}

/** Whether it has the entries of all rows, and of nothing else. */
export function isComplete({ built, problem }: Pick<AddedIndex, 'built' | 'problem'>): boolean {
  return built === null && problem === undefined;
}

// Primary keys as calls give them: checked, and in the form that keys are made of.

/**
 * Checks a value as a primary key, an array of values where it is made of several fields, and returns it in the form that keys are
 * made of. Throws {@link FieldProblem}.
 */
export function normalizeKey({ keyField, keyFields }: TableShape, value: unknown): KeyValue {
  if (keyField !== undefined) {
    const normal = normalizeKeyField(keyField, value, 'the primary key is missing, or null: every row needs one');
    const isLong = isTextField(keyField) && (normal as string | Uint8Array).length > maxKeyBytes / 3;
    if (isLong) checkKeyBytes(keyField.name, value, keyFields, [normal]);
    return normal;
  }
  if (!Array.isArray(value) || value.length !== keyFields.length) {
    const names = namesOf(keyFields);
    const found = Array.isArray(value) ? `an array of ${value.length}` : describeValue(value);
    const message = `the primary key is an array of ${keyFields.length} values, [${names}], not ${found}`;
    throw new FieldProblem(names, value, message);
  }
  const normal: OrderedValue[] = [];
  for (let i = 0; i < keyFields.length; i++) {
    const field = keyFields[i] as LayoutField;
    const part: unknown = value[i];
    if (part === undefined || part === null) {
      const missing = `it is missing, or null, and the primary key is made of ${namesOf(keyFields)}: every row needs all of them`;
      throw new FieldProblem(field.name, part, missing);
    }
    normal.push(normalizeKeyField(field, part, ''));
  }
  if (sumOf(keyFields, normal, maxTextBytes) > maxKeyBytes) {
    checkKeyBytes(namesOf(keyFields), value, keyFields, normal);
  }
  return normal;
}

function namesOf(fields: readonly LayoutField[]): string {
  return fields.map(({ name }) => name).join(', ');
}

function normalizeKeyField({ name, typeId }: LayoutField, value: unknown, missing: string): OrderedValue {
  if (value === undefined || value === null) throw new FieldProblem(name, value, missing);
  try {
    return normalizeValue(typeId, value);
  } catch (error) {
    if (error instanceof ValueProblem) throw new FieldProblem(name, value, error.message);
    throw error;
  }
}

/** Refuses a primary key whose texts and bytes are too long together. */
function checkKeyBytes(
  name: string,
  value: unknown,
  fields: readonly LayoutField[],
  normal: readonly OrderedValue[],
): void {
  if (sumOf(fields, normal, maxTextBytes) <= maxKeyBytes) return;
  const bytes = sumOf(fields, normal, (text) => encodeUtf8(text).length);
  if (bytes <= maxKeyBytes) return;
  const message = `${describeKey(value)} has ${bytes} bytes, and a primary key takes up to ${maxKeyBytes}`;
  throw new FieldProblem(name, value, message);
}

/** Bytes that the texts of a key can have at most. */
function maxTextBytes(text: string): number {
  return text.length * 3;
}

function sumOf(
  fields: readonly LayoutField[],
  values: readonly OrderedValue[],
  textBytes: (text: string) => number,
): number {
  let sum = 0;
  for (let i = 0; i < fields.length; i++) {
    const { typeId } = fields[i] as LayoutField;
    if (typeId === Types.varchar) sum += textBytes(values[i] as string);
    else if (typeId === Types.bytes) sum += (values[i] as Uint8Array).length;
  }
  return sum;
}
