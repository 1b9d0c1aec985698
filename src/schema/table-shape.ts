/**
 * The compiled form of a table version: its stored schema with the layout, keys and indexes that follow from it. Everything that reads
 * or writes rows, keys and entries uses this form; definitions and stored schemas are turned into it once.
 */
import { ByteWriter, encodeUtf8 } from '../base/bytes.ts';
import type { OrderedValue } from '../base/bytes.ts';
import { CorruptionError } from '../base/errors.ts';
import { describeKey, describeValue } from '../base/messages.ts';
import { oneOrList } from '../base/one-or-list.ts';
import type { OneOrList } from '../base/one-or-list.ts';
import { defined } from '../base/options.ts';
import { BlockKind } from '../format/block.ts';
import type { EntryShape } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';
import {
  MalformedKey,
  readKeyComponent,
  skipKeyComponent,
  writeKeyComponent,
  endOfResult,
} from '../format/ordered-key.ts';
import { isNull, readField, rowDecoder } from '../format/row-decode.ts';
import type { RowDecoder } from '../format/row-decode.ts';
import { FieldProblem } from '../format/row-encode.ts';
import { RowLayout } from '../format/row-layout.ts';
import type { LayoutField, RowSource } from '../format/row-layout.ts';
import { canonicalSchema } from '../format/stored-schema.ts';
import type { StoredDefault, StoredFunctionIndex, StoredIndex, StoredSchema } from '../format/stored-schema.ts';
import type { Bound } from '../format/stored-table.ts';
import { Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import { maxKeyBytes, normalizeValue, ValueProblem } from '../format/values.ts';
import type { Tree } from '../tree/tree.ts';
import { rulesOf } from './field-rules.ts';
import type { FieldRule } from './field-rules.ts';
import { compiledCondition } from './index-condition.ts';
import type { IndexCondition } from './index-condition.ts';
import { constantDefault } from './schema.ts';
import type { TextFields } from './text-fields.ts';

/** An index of a table in its compiled form. On fields, it is made from a `StoredIndex`. */
export interface TableIndex {
  readonly name: string;
  /** The indexed fields, in the order of their components in an entry; the primary key follows. Empty for an index on a function. */
  readonly fields: readonly LayoutField[];
  /** Whether no two rows of the index may agree in all of its fields. */
  readonly unique: boolean;
  /** The condition on rows of the index. Undefined: all rows. */
  readonly where?: IndexCondition;
  /** The function whose results its entries begin with, for an index on a function. */
  readonly result?: FunctionResult;
  /** The fields whose values follow the primary key in an entry. Undefined: none. */
  readonly included?: IncludedFields;
  /** The texts whose words it has entries for. `fields` is then one field, which stands for a word. Undefined: none. */
  readonly text?: TextFields;
  /** The field of `fields` that stands for the elements of a list, each with an entry of its own. Undefined: one entry for a row. */
  readonly each?: LayoutField;
}

/** The fields whose values follow the primary key in the entries of an index, and the fields of that key, which tell where it ends. */
export interface IncludedFields {
  readonly fields: readonly LayoutField[];
  readonly keyFields: readonly LayoutField[];
}

/** The result of one version of a function. */
export interface FunctionResult {
  readonly name: string;
  /** The type of the component in an entry: varchar where it holds the text of an element. */
  readonly typeId: TypeId;
  readonly version: number;
  /** Whether each element of the list that it returns has an entry of its own. */
  readonly each: boolean;
}

/** Whether a row may have none or several entries in an index, for the elements of a list. */
export function isOfElements({ each, result }: TableIndex): boolean {
  return each !== undefined || result?.each === true;
}

/** Compiles an index on one version of a function. */
export function functionIndex({ name, function: on, typeId, each }: StoredFunctionIndex, version: number): TableIndex {
  const result = { name: on, typeId: each === true ? Types.varchar : typeId, version, each: each === true };
  return { name, fields: [], unique: false, result };
}

/** A primary key: the value of its field, or an array of the values if it has several. */
export type KeyValue = OneOrList<OrderedValue>;

export interface FieldDefault {
  readonly field: LayoutField;
  readonly stored: StoredDefault;
  readonly constant: unknown;
}

/** The last shapes that were compared with one. They are kept since comparing texts is slow, and views check all tables often. */
interface Compared {
  /** One that is the same. */
  same?: TableShape;
  /** A definition without a missing index. */
  withoutMore?: TableShape;
}

/** A table version in its compiled form. {@link shapeOf} makes it from a `StoredSchema`, which it keeps in `schema`. */
export class TableShape {
  readonly name: string;
  readonly version: number;
  readonly schema: StoredSchema;
  /** A text that is equal for equal definitions. */
  readonly canonical: string;
  readonly layout: RowLayout;
  /** The fields of the primary key, in the order of their components in a key. */
  readonly keyFields: readonly LayoutField[];
  /** The field of a primary key of one field; undefined for a key of several. */
  readonly keyField: LayoutField | undefined;
  /** For each field, its position in the primary key, or -1. */
  readonly keyPlaces: readonly number[];
  /** The indexes on fields. */
  readonly indexes: readonly TableIndex[];
  readonly functionIndexes: readonly StoredFunctionIndex[];
  readonly defaults: readonly FieldDefault[];
  /** The rules for values beyond their types; undefined for none. */
  readonly rules: readonly FieldRule[] | undefined;
  /** The fields that hold references to blobs. */
  readonly blobFields: readonly LayoutField[];
  /** The shape of leaves of the table's tree. */
  readonly leafShape: EntryShape;
  /** The shape of leaves in commits, whose rows may be marked as deleted or updated. */
  readonly changeShape: EntryShape;
  /** The field with the time from which on rows expire, and how many milliseconds later they do; undefined if they do not. */
  readonly expiry: { readonly field: LayoutField; readonly afterMs: number } | undefined;
  /** Decodes rows to objects. */
  readonly decoder: RowDecoder;
  /** Results of comparisons with other shapes. */
  readonly compared: Compared = {};

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
    this.indexes = schema.indexes.map((index) => tableIndex(this.layout, this.keyFields, index));
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
    const { expireAfter } = schema;
    this.expiry = expireAfter && { field: field(expireAfter.field), afterMs: expireAfter.seconds * 1000 };
  }

  /** The name or names of the primary key's fields, by which a query looks up a row. */
  get keyNames(): OneOrList<string> {
    return oneOrList(this.schema.primaryKey);
  }

  /** Returns the bytes of a normalized primary key. */
  keyBytes(value: KeyValue): Uint8Array {
    const writer = new ByteWriter(64);
    this.writeKey(writer, value);
    return writer.finish();
  }

  /** Appends the bytes of a normalized primary key. */
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

  /** Whether a row has expired at a time. */
  isExpired({ source, base }: { readonly source: RowSource; readonly base: number }, nowMs: number): boolean {
    const { expiry } = this;
    if (expiry === undefined || isNull(source, base, expiry.field)) return false;
    return Number(readField(source, base, expiry.field)) <= nowMs - expiry.afterMs;
  }

  /** Decodes the bytes of a primary key. */
  keyValue(key: Uint8Array): KeyValue {
    const { keyField } = this;
    if (keyField === undefined) return valuesIn(key, this.keyFields);
    return readKeyComponent(key, 0, skipKeyComponent(key, 0, keyField.typeId), keyField.typeId);
  }

  /** Reads the primary key of a row. */
  rowKey(source: RowSource, base: number): KeyValue {
    if (this.keyField !== undefined) return readField(source, base, this.keyField) as OrderedValue;
    return this.keyFields.map((field) => readField(source, base, field) as OrderedValue);
  }
}

/** Compiles an index on fields. */
export function tableIndex(
  layout: RowLayout,
  keyFields: readonly LayoutField[],
  { name, fields, paths = [], unique, where, include, each, text }: StoredIndex,
): TableIndex {
  const field = (one: string): LayoutField => layout.field(one) as LayoutField;
  const tested = (one: string): LayoutField => layout.field(one) ?? (layout.path(one, Types.json, true) as LayoutField);
  if (text !== undefined) {
    const { language, weights = fields.map(() => 1) } = text;
    const word = wordField(field(fields[0] as string));
    return {
      name,
      fields: [word],
      unique: false,
      ...defined({ where: where && compiledCondition(where, tested) }),
      included: { fields: [], keyFields },
      text: { fields: fields.map(field), language, weights },
      each: word,
    };
  }
  const indexed = fields.map((one): LayoutField => {
    const typed = paths.find(({ path }) => path === one);
    const found = typed === undefined ? field(one) : (layout.path(one, typed.typeId, true) as LayoutField);
    // Entries hold the JSON text of an element.
    return each === true && found.typeId === Types.json ? { ...asText(found), elementsOf: found } : found;
  });
  const held = (one: string): LayoutField => {
    const found = tested(one);
    return found.typeId === Types.json ? { ...asText(found), jsonOf: found } : found;
  };
  return {
    name,
    fields: indexed,
    unique: unique === true,
    ...defined({
      where: where && compiledCondition(where, tested),
      included: include && { fields: include.map(held), keyFields },
      each: indexed.find(({ elementsOf }) => elementsOf !== undefined),
    }),
  };
}

/** Returns what stands for a text that entries have of a json field, or of the value at a path. */
function asText(field: LayoutField): LayoutField {
  return { ...field, typeId: Types.varchar, path: undefined };
}

/** The field that stands for a word of texts. No condition and no order is on it. */
function wordField(of: LayoutField): LayoutField {
  return { ...of, name: '', typeId: Types.varchar };
}

/** Shapes in use, by the text of their schemas. The order of fields matters. */
const shapes = new Map<string, WeakRef<TableShape>>();
/** The number of entries at which unused shapes are removed. */
let maxShapes = 64;

/**
 * Returns the shape of a schema: one per process for equal schemas. So databases with the same tables share it, and the machine code
 * compiled for it.
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

/** Decodes the values of some fields at the beginning of a key. A text that is shortened in the key stays shortened. */
export function valuesIn(key: Uint8Array, fields: readonly LayoutField[]): OrderedValue[] {
  let from = 0;
  return fields.map(({ typeId }) => {
    const end = skipKeyComponent(key, from, typeId);
    const value = readKeyComponent(key, from, end, typeId);
    from = end;
    return value;
  });
}

/** Returns the length of the indexed values in the key of an entry, after which the primary key follows. Throws `MalformedKey`. */
export function endOfValues(key: Uint8Array, { fields, result }: TableIndex): number {
  if (result !== undefined) return endOfResult(key, result.typeId);
  let end = 0;
  for (let i = 0; i < fields.length; i++) end = skipKeyComponent(key, end, (fields[i] as LayoutField).typeId);
  return end;
}

/** Returns the end of the primary key that begins at `start` in the key of an entry of `length` bytes. Throws `MalformedKey`. */
export function endOfPrimaryKey(key: Uint8Array, start: number, length: number, { included }: TableIndex): number {
  if (included === undefined) return length;
  let end = start;
  for (const { typeId } of included.keyFields) end = skipKeyComponent(key, end, typeId);
  if (end > length) throw new MalformedKey('key ends within a component');
  return end;
}

/** Returns the primary key in the key of an entry; a part of it, not a copy. Throws `MalformedKey`. */
export function primaryKeyOf(key: Uint8Array, index: TableIndex): Uint8Array {
  const start = endOfValues(key, index);
  return key.subarray(start, endOfPrimaryKey(key, start, key.length, index));
}

/** As {@link primaryKeyOf}, but throws `CorruptionError`, also if there is no primary key. */
export function primaryKeyIn(node: Node, key: Uint8Array, index: TableIndex): Uint8Array {
  const start = endOfValue(node, key, key.length, index);
  return key.subarray(start, endOfKey(node, key, start, key.length, index));
}

/** As {@link endOfPrimaryKey}, but throws `CorruptionError`. */
export function endOfKey(node: Node, key: Uint8Array, start: number, length: number, index: TableIndex): number {
  if (index.included === undefined) return length;
  try {
    return endOfPrimaryKey(key, start, length, index);
  } catch (error) {
    throw malformedEntry(node, error);
  }
}

/** Returns the error for an entry that could not be read. */
function malformedEntry(node: Node, error: unknown): unknown {
  if (!(error instanceof MalformedKey)) return error;
  return new CorruptionError(node.name, `An index entry is malformed: ${error.message}`, { cause: error });
}

/** As {@link endOfValues}, but throws `CorruptionError`, also if there is no primary key. */
export function endOfValue(node: Node, key: Uint8Array, keyLength: number, index: TableIndex): number {
  let end: number;
  try {
    end = endOfValues(key, index);
  } catch (error) {
    throw malformedEntry(node, error);
  }
  if (end >= keyLength) throw new CorruptionError(node.name, 'An index entry names no primary key');
  return end;
}

/** The shape of the leaves of an index. */
export const indexLeafShape: EntryShape = { kind: BlockKind.index, level: 0 };

/**
 * An index that is being added to a table with rows, and is not in the schema yet. Rows up to `built` have entries, and every merge
 * updates them, on any node. The other rows have none (docs/protocol.md, "Added indexes").
 */
export interface AddedIndex {
  readonly stored: StoredIndex;
  readonly index: TableIndex;
  /** The entries. */
  readonly tree: Tree;
  /** The last key with an entry; undefined before the first, null once all rows have one. */
  readonly built: Bound;
  /** The number of rows with an entry, to show progress. */
  readonly rows: number;
  /** The generation in which it was created. */
  readonly birth: number;
  /** The reason for which it cannot be added; undefined for none. */
  readonly problem: string | undefined;
}

/** Whether an added index has entries for all rows. */
export function isComplete({ built, problem }: Pick<AddedIndex, 'built' | 'problem'>): boolean {
  return built === null && problem === undefined;
}

/**
 * Checks a primary key passed to a call, an array for a key of several fields, and returns it in normalized form. Throws
 * {@link FieldProblem}.
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

/** Throws {@link FieldProblem} if the texts and bytes of a primary key are too long together. */
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

/** Returns an upper bound for the UTF-8 bytes of a text. */
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
