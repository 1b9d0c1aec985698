/** Decodes blocks of trees: their keys as values, with the rows of leaves and the children of inner blocks. */
import { isError } from '../../base/brands.ts';
import { toHex } from '../../base/bytes.ts';
import { defined } from '../../base/options.ts';
import { BlockKind } from '../../format/block.ts';
import type { BlockRef } from '../../format/block.ts';
import type { Node } from '../../format/node.ts';
import {
  endOfResult,
  isFailedEntry,
  MalformedKey,
  readKeyComponent,
  skipKeyComponent,
} from '../../format/ordered-key.ts';
import { decodeRow } from '../../format/row-decode.ts';
import { RowLayout } from '../../format/row-layout.ts';
import type { StoredSchema } from '../../format/stored-schema.ts';
import { Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import { isDeleted } from '../../view/merged-cursor.ts';

/** The components of the keys of a tree. */
export interface KeyForm {
  readonly types: readonly TypeId[];
  /** Whether the first component is the result of a function, which may be of another type, or have failed. */
  readonly isOfFunction?: boolean;
  /** Whether bytes that are no components may follow the last one. */
  readonly hasMore?: boolean;
}

/** Returns a value in the form that a caller shows. */
export type ShowValue = (type: TypeId, value: unknown) => unknown;

/** One entry of a block. */
export interface BlockContentEntry<Child> {
  /**
   * The key: the value of a key of one field, or a list of values. Keys of inner blocks may be cut short, and parts that are no value are
   * hexadecimal digits after `0x`.
   */
  readonly key: unknown;
  /** In inner blocks, the block with the entries from this key on. */
  readonly child?: Child;
  /** In blocks of rows, the row; absent if it is marked as deleted, or its version of the schema is not known. */
  readonly row?: Readonly<Record<string, unknown>>;
  /** Whether the row is marked as deleted. */
  readonly deleted?: true;
}

/** A block, decoded. */
export interface BlockContent<Child> {
  /** `table`: a leaf with rows. `index`: a leaf of an index. `inner`: a block that refers to others. */
  readonly kind: string;
  /** The level: 0 for leaves, and the greatest for the root. */
  readonly level: number;
  /** Number of entries in the block. */
  readonly count: number;
  /** Number of rows or index entries under the block. */
  readonly rows: number;
  /** Size of the block in bytes, before compression and encryption. */
  readonly sizeBytes: number;
  /** The version of the schema of the rows. Only in blocks of rows. */
  readonly schemaVersion?: number;
  /** The entries, in the order of their keys. */
  readonly entries: readonly BlockContentEntry<Child>[];
}

const kinds = new Map<number, string>(Object.entries(BlockKind).map(([name, kind]) => [kind, name]));

function typesOf(schema: StoredSchema, names: readonly string[]): TypeId[] {
  return names.map((name) => schema.fields.find((field) => field.name === name)?.typeId as TypeId);
}

/** Returns the form of a table's keys. */
export function tableKeys(schema: StoredSchema): KeyForm {
  return { types: typesOf(schema, schema.primaryKey) };
}

/** Returns the form of an index's keys; undefined if the schema has no such index. */
export function indexKeys(schema: StoredSchema, index: string): KeyForm | undefined {
  const { types } = tableKeys(schema);
  const onFields = schema.indexes.find(({ name }) => name === index);
  if (onFields !== undefined) {
    const { fields, paths = [], include = [], text } = onFields;
    // How often the word is there follows the primary key.
    if (text !== undefined) return { types: [Types.varchar, ...types], hasMore: true };
    const typeOfPath = new Map<string, TypeId>(paths.map(({ path, typeId }) => [path, typeId]));
    const indexed = typesOf(schema, fields).map((type, i) => {
      // Of a list, an entry holds the text of an element.
      const read = typeOfPath.get(fields[i] as string) ?? type;
      return read === Types.json ? Types.varchar : read;
    });
    // Of a path, it holds the text of any value.
    const held = typesOf(schema, include).map((type: TypeId | undefined) => type ?? Types.varchar);
    return { types: [...indexed, ...types, ...held] };
  }
  const onFunction = schema.functionIndexes?.find(({ name }) => name === index);
  if (onFunction === undefined) return undefined;
  const { typeId, each } = onFunction;
  return { types: [each === true ? Types.varchar : typeId, ...types], isOfFunction: true };
}

/** Decodes the result of a function in a key, which ends at `end`. */
function resultOf(key: Uint8Array, end: number, type: TypeId, show: ShowValue): unknown {
  if (isFailedEntry(key)) return '(the function failed)';
  return (key[0] as number) < 2 ? show(type, readKeyComponent(key, 0, end, type)) : '(another type)';
}

function keyOf(key: Uint8Array, form: KeyForm | undefined, show: ShowValue): unknown {
  const hex = (from: number): string => `0x${toHex(key.subarray(from))}`;
  if (form === undefined) return hex(0);
  const { types, isOfFunction = false, hasMore = false } = form;
  const values: unknown[] = [];
  let at = 0;
  try {
    for (const [i, type] of types.entries()) {
      if (at >= key.length) break;
      const isResult = isOfFunction && i === 0;
      const end = isResult ? endOfResult(key, type) : skipKeyComponent(key, at, type);
      values.push(isResult ? resultOf(key, end, type, show) : show(type, readKeyComponent(key, at, end, type)));
      at = end;
    }
    if (hasMore && at < key.length) values.push(hex(at));
  } catch (error) {
    if (!(error instanceof MalformedKey) && !(isError(error) && error.name === 'RangeError')) throw error;
    values.push(hex(at));
  }
  return types.length === 1 ? values[0] : values;
}

/**
 * Decodes a block. `schema`: the schema of the rows of a leaf; without it, rows have only their keys. `child`: describes a reference to
 * another block.
 */
export function blockContent<Child>(
  node: Node,
  form: KeyForm | undefined,
  schema: StoredSchema | undefined,
  show: ShowValue,
  child: (ref: BlockRef) => Child,
): BlockContent<Child> {
  const layout = schema === undefined ? undefined : new RowLayout(schema.fields);
  const rowOf = (i: number): Record<string, unknown> | undefined => {
    if (schema === undefined || layout === undefined) return undefined;
    const row = decodeRow(layout, node, node.rowBase(i));
    return Object.fromEntries(schema.fields.map(({ name, typeId }) => [name, show(typeId, row[name])]));
  };
  const entries = Array.from({ length: node.count }, (_, i): BlockContentEntry<Child> => {
    const key = keyOf(node.key(i), form, show);
    if (node.level > 0) return { key, child: child(node.child(i)) };
    if (node.kind !== BlockKind.table) return { key };
    return isDeleted(node, i) ? { key, deleted: true } : { key, ...defined({ row: rowOf(i) }) };
  });
  return {
    kind: kinds.get(node.kind) ?? String(node.kind),
    level: node.level,
    count: node.count,
    rows: node.totalCount(),
    sizeBytes: node.sizeBytes,
    ...(node.kind === BlockKind.table && { schemaVersion: node.schemaVersion }),
    entries,
  };
}
