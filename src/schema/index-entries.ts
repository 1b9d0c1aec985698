/** Writes the entries that indexes have for a row. */
import type { ByteWriter, OrderedValue } from '../base/bytes.ts';
import {
  mergesZeros,
  writeKeyComponent,
  writeSignedComponent,
  writeTextComponent,
  writeWholeTextComponent,
} from '../format/ordered-key.ts';
import { bytesAtPath, heapPlace, isNull, readField } from '../format/row-decode.ts';
import { inlineBytes, nonAsciiFlag } from '../format/row-layout.ts';
import type { LayoutField, RowSource } from '../format/row-layout.ts';
import { Types } from '../format/types.ts';
import { isInside } from './index-condition.ts';
import { elementTexts } from './list-elements.ts';
import { isTextField } from './table-shape.ts';
import type { TableIndex } from './table-shape.ts';
import type { EntrySink } from './text-fields.ts';
import { loadedWordWriter } from './text-writer.ts';

/**
 * Appends the index entries of a row, and returns their number: one, or one for each element of its list or word of its texts; none if
 * the row does not meet the condition of the index. For an index on texts, `prepareTexts` comes first.
 */
export function writeIndexEntries(
  to: EntrySink,
  index: TableIndex,
  source: RowSource,
  base: number,
  primaryKey: Uint8Array,
  primaryKeyLength: number = primaryKey.length,
): number {
  const { each, where } = index;
  if (each === undefined) {
    if (!writeIndexEntry(to.writer, index, source, base, primaryKey, primaryKeyLength)) return 0;
    to.end();
    return 1;
  }
  if (where !== undefined && !isInside(where, source, base)) return 0;
  if (index.text !== undefined) {
    return loadedWordWriter()(to, index.text, source, base, primaryKey, primaryKeyLength);
  }
  const elements = elementTexts(readField(source, base, each.elementsOf as LayoutField));
  for (const element of elements) {
    for (const field of index.fields) {
      if (field === each) writeKeyComponent(to.writer, Types.varchar, element);
      else writeFieldComponent(to.writer, source, base, field);
    }
    writeEntryEnd(to.writer, index, source, base, primaryKey, primaryKeyLength);
    to.end();
  }
  return elements.length;
}

/**
 * Appends the index entry of a row, for an index with one for each row: its indexed values, its primary key, and the values of included
 * fields. Returns false and appends nothing if the row does not meet the condition of the index.
 */
export function writeIndexEntry(
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
  writeEntryEnd(writer, index, source, base, primaryKey, primaryKeyLength);
  return true;
}

/** Appends the part of an entry after the indexed values. */
function writeEntryEnd(
  writer: ByteWriter,
  { included }: TableIndex,
  source: RowSource,
  base: number,
  primaryKey: Uint8Array,
  primaryKeyLength: number,
): void {
  writer.appendRange(primaryKey, 0, primaryKeyLength);
  if (included !== undefined) for (const field of included.fields) writeIncluded(writer, source, base, field);
}

/** Appends the component of a row's field in an index entry. */
export function writeFieldComponent(writer: ByteWriter, source: RowSource, base: number, field: LayoutField): void {
  if (isTextField(field) && !isNull(source, base, field)) {
    writeTextField(writer, source, base, field, writeTextComponent);
  } else writeKeyComponent(writer, field.typeId, readField(source, base, field) as OrderedValue);
}

/** Appends the component of an included field, which tells -0 from 0 and values of json from each other: it need not be found. */
function writeIncluded(writer: ByteWriter, source: RowSource, base: number, field: LayoutField): void {
  const { typeId, jsonOf } = field;
  if (jsonOf !== undefined) {
    const value = readField(source, base, jsonOf);
    writeKeyComponent(writer, typeId, value === null ? null : JSON.stringify(value));
  } else if (!mergesZeros(typeId) || isNull(source, base, field)) writeFieldComponent(writer, source, base, field);
  else writeSignedComponent(writer, typeId, readField(source, base, field) as number);
}

/**
 * Appends the values of a row in the fields of an index, without shortening them: equal bytes are equal values. Returns false if a value
 * is null or the row does not meet the condition of the index: the row then agrees with no other, and the appended bytes mean nothing.
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

/** Appends the component of a text or bytes field directly from the bytes of the row. */
function writeTextField(
  writer: ByteWriter,
  source: RowSource,
  base: number,
  field: LayoutField,
  write: typeof writeTextComponent,
): void {
  if (field.path !== undefined) {
    const bytes = bytesAtPath(source, base, field);
    write(writer, bytes, 0, bytes.length);
    return;
  }
  const at = base + field.offset;
  const length = (source.rowsView.getUint32(at, true) & ~nonAsciiFlag) >>> 0;
  if (length <= inlineBytes) {
    write(writer, source.rows, at + 4, at + 4 + length);
    return;
  }
  const start = heapPlace(source, at, length, field);
  write(writer, source.heap, start, start + length);
}
