/**
 * The part of an entry of an index on texts behind the primary key, all numbers as LEB128: the words of the row in all fields together,
 * and then, for each field that has the entry's word, in ascending order, its number plus the number of fields times one less than how
 * often the word is there.
 */
import { CountReader } from '../format/counts.ts';
import type { EntryShape } from '../format/node-entries.ts';
import { endOfPrimaryKey, endOfValues, indexLeafShape } from './table-shape.ts';
import type { TableIndex } from './table-shape.ts';

/** Returns the number of words of the row that an entry is of. Throws `MalformedKey`. */
export function rowWords(entry: Uint8Array, index: TableIndex): number {
  const reader = new CountReader();
  reader.bytes = entry;
  reader.at = endOfPrimaryKey(entry, endOfValues(entry, index), entry.length, index);
  return reader.next();
}

/** Returns the shape in which the leaves of an index are written: dense for one on texts. Leaves of both kinds are read. */
export function entryShape(index: TableIndex | undefined): EntryShape {
  if (index?.text === undefined) return indexLeafShape;
  return { ...indexLeafShape, dense: (index.included?.keyFields ?? []).map(({ typeId }) => typeId) };
}
