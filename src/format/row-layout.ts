/**
 * The layout of rows: the offset of each field. All rows of a table version have the same length, so the position of a row is a
 * product, and a field is read without the others.
 *
 *   [flags and null bitmap][field][field]...
 *
 * Bit 0 of the bitmap marks a deletion and bit 1 an update, and both together the deletion of a row that had expired; they occur only
 * in commits. Bit 2 + i says that field i is null,
 * and its bytes are then zero. Fields are sorted by the code points of their names, not by the order of the definition. Text,
 * json and bytes are 16-byte views:
 *
 *   [u32 length, bit 31 set unless all ASCII][the value, zero-padded to 12 bytes] for up to 12 bytes;
 *   [u32 length, same bit 31][first 4 bytes][u32 offset in the block's heap][4 zero bytes] for longer values
 */
import { compareStrings } from '../base/bytes.ts';
import { partsOfPath } from './path-text.ts';
import { isVariable, Types, widthOf } from './types.ts';
import type { TypeId } from './types.ts';

/** Bit of the first bitmap byte: the row is deleted. */
export const rowDeletedFlag = 1;
/** Bit of the first bitmap byte: the row image came from an update, so fields that its version does not have carry over. */
export const rowUpdatedFlag = 2;
/** Both marks: the row was deleted because it had expired. */
export const rowMarks = 3;
const flagBits = 2;

/** Longest value that fits in its view, in bytes. */
export const inlineBytes = 12;
/** Set in the length of a view if the value has a byte above 0x7F. */
export const nonAsciiFlag = 0x80000000;

/** The parts of a field that decide the bytes of its values. */
export interface TypedField {
  readonly name: string;
  readonly typeId: TypeId;
}

/** A field with its place in the rows of one layout. */
export interface LayoutField extends TypedField {
  /** Position in the row, by code-point order of the names. */
  readonly index: number;
  /** Offset of the value in the row, in bytes. */
  readonly offset: number;
  readonly nullByte: number;
  readonly nullMask: number;
  readonly variable: boolean;
  /** Whether `Object.prototype` has a property of this name; its inherited value does not count as the field's. */
  readonly inherited: boolean;
  /** The json field, or path, whose elements index entries have in this field's place. Rows have no such field. Undefined: a field of rows. */
  readonly elementsOf?: LayoutField;
  /** The value at a path whose JSON text index entries have in this field's place. Rows have no such field. */
  readonly jsonOf?: LayoutField;
  /** The json field and the keys in it that lead to the value, for one inside of a field. Rows have no such field of their own. */
  readonly path?: FieldPath | undefined;
}

/** The place of a value in a json field. */
export interface FieldPath {
  readonly of: LayoutField;
  readonly keys: readonly string[];
}

/** Paths that queries named are forgotten once there are so many: applications may make them up. */
const maxPaths = 256;

function bitmapBytesOf(fields: readonly TypedField[]): number {
  return (fields.length + flagBits + 7) >> 3;
}

/** Returns the length of a row with these fields, in bytes. */
export function rowStride(fields: readonly TypedField[]): number {
  return fields.reduce((sum, { typeId }) => sum + widthOf(typeId), bitmapBytesOf(fields));
}

/** A decoded row in which every field is null. */
export type NullObject = Readonly<Record<string, null>>;

/** Returns a decoded row of some fields in which all of them are null. */
export function nullObjectOf(fields: readonly LayoutField[]): NullObject {
  // When it parses JSON, the runtime knows the number of fields before it creates the object.
  const members = fields.map(({ name }) => `${JSON.stringify(name)}:null`);
  return JSON.parse(`{${members.join(',')}}`) as NullObject;
}

/** The layout of one table version's rows. */
export class RowLayout {
  /** The fields in the order of the row. */
  readonly fields: readonly LayoutField[];
  /** The fields in the order of the definition, which is the order of properties in decoded rows. */
  readonly declared: readonly LayoutField[];
  readonly variableFields: readonly LayoutField[];
  readonly bitmapBytes: number;
  /** Length of every row in bytes. */
  readonly stride: number;
  /** A row in which every field is null. */
  readonly nullRow: Uint8Array;
  /** A decoded row in which every field is null. */
  readonly nullObject: NullObject;
  readonly #byName: ReadonlyMap<string, LayoutField>;
  /** Paths by type and text: those of indexes, which stay, and those of queries. */
  readonly #indexed = new Map<string, LayoutField>();
  readonly #asked = new Map<string, LayoutField>();

  constructor(fields: readonly TypedField[]) {
    const sorted = fields.toSorted((a, b) => compareStrings(a.name, b.name));
    this.bitmapBytes = bitmapBytesOf(fields);
    let offset = this.bitmapBytes;
    this.fields = sorted.map(({ name, typeId }, index) => {
      const bit = index + flagBits;
      const field: LayoutField = {
        name,
        typeId,
        index,
        offset,
        nullByte: bit >> 3,
        nullMask: 1 << (bit & 7),
        variable: isVariable(typeId),
        inherited: name in Object.prototype,
      };
      offset += widthOf(typeId);
      return field;
    });
    this.stride = offset;
    this.nullRow = new Uint8Array(offset);
    for (const { nullByte, nullMask } of this.fields)
      this.nullRow[nullByte] = (this.nullRow[nullByte] as number) | nullMask;
    this.#byName = new Map(this.fields.map((field) => [field.name, field]));
    this.declared = fields.map(({ name }) => this.#byName.get(name) as LayoutField);
    this.nullObject = nullObjectOf(this.declared);
    this.variableFields = this.fields.filter((field) => field.variable);
  }

  field(name: string): LayoutField | undefined {
    return this.#byName.get(name);
  }

  /**
   * Returns what stands for the value at a path into a json field, read as a type; undefined if the text is no such path. It is the same
   * for the same type and text, as that of an index always is. `isIndexed`: it is one of an index.
   */
  path(text: string, typeId: TypeId, isIndexed = false): LayoutField | undefined {
    const id = `${typeId} ${text}`;
    const known = this.#indexed.get(id) ?? this.#asked.get(id);
    if (known !== undefined && !isIndexed) return known;
    const field = known ?? this.#pathField(text, typeId);
    if (field === undefined) return undefined;
    if (!isIndexed && this.#asked.size >= maxPaths) this.#asked.clear();
    (isIndexed ? this.#indexed : this.#asked).set(id, field);
    return field;
  }

  #pathField(text: string, typeId: TypeId): LayoutField | undefined {
    const parts = partsOfPath(text, (name) => this.field(name)?.typeId === Types.json);
    if (parts === undefined || this.#byName.has(text)) return undefined;
    const of = this.field(parts.field) as LayoutField;
    return { ...of, name: text, typeId, variable: true, inherited: false, path: { of, keys: parts.keys } };
  }
}

/**
 * Rows in a block, a commit or a batch. Row `i` begins at `rowsStart + i * stride`; the heap that its views point into is
 * `heap[heapStart .. heapEnd)`.
 */
export interface RowSource {
  readonly rows: Uint8Array;
  readonly rowsView: DataView;
  readonly rowsStart: number;
  readonly heap: Uint8Array;
  readonly heapStart: number;
  readonly heapEnd: number;
  /** Name of the object that the bytes came from, for messages. */
  readonly name: string;
  /**
   * The bytes of `rows` from `rowsStart` on as Latin-1 text, if many strings were read from them: slicing the text is faster.
   */
  readonly text: string | undefined;
}
