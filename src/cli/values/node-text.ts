/** Turns nodes of trees and commits into readable plain values. */
import type { StoredSchema } from '../../format/stored-schema.ts';
import { isError } from '../../base/brands.ts';
import { defined } from '../../base/options.ts';
import { BlockKind } from '../../format/block.ts';
import type { Commit } from '../../format/commit.ts';
import type { Node } from '../../format/node.ts';
import { MalformedKey, readKeyComponent, skipKeyComponent } from '../../format/ordered-key.ts';
import { decodeRow } from '../../format/row-decode.ts';
import { RowLayout } from '../../format/row-layout.ts';
import type { TypeId } from '../../format/types.ts';
import { isDeleted } from '../../view/merged-cursor.ts';
import { toJson } from './row-values.ts';

const kinds = new Map<number, string>(Object.entries(BlockKind).map(([name, kind]) => [kind, name]));

/** The types of the components that keys consist of. */
type KeyTypes = readonly TypeId[];

function typesOf(schema: StoredSchema, names: readonly string[]): KeyTypes {
  return names.map((name) => schema.fields.find((field) => field.name === name)?.typeId as TypeId);
}

/** Returns the types of the components of a table's keys. */
export function tableKeyTypes(schema: StoredSchema): KeyTypes {
  return typesOf(schema, schema.primaryKey);
}

/** Returns the types of the components of an index's keys; undefined if there is no such index. */
export function indexKeyTypes(schema: StoredSchema, index: string): KeyTypes | undefined {
  const found = schema.indexes.find(({ name }) => name === index);
  return found === undefined ? undefined : [...typesOf(schema, found.fields), ...tableKeyTypes(schema)];
}

/** Decodes the values of a key. A separator of an inner node may be cut short: a part that is no value becomes hexadecimal digits. */
function keyText(key: Uint8Array, types: KeyTypes | undefined): unknown {
  const hex = (from: number): string => `0x${Buffer.from(key.subarray(from)).toString('hex')}`;
  if (types === undefined) return hex(0);
  const values: unknown[] = [];
  let at = 0;
  try {
    for (const type of types) {
      if (at >= key.length) break;
      const end = skipKeyComponent(key, at, type);
      values.push(toJson(type, readKeyComponent(key, at, end, type)));
      at = end;
    }
  } catch (error) {
    if (!(error instanceof MalformedKey) && !(isError(error) && error.name === 'RangeError')) throw error;
    values.push(hex(at));
  }
  return types.length === 1 ? values[0] : values;
}

export function rowText(schema: StoredSchema, layout: RowLayout, node: Node, i: number): Record<string, unknown> {
  const row = decodeRow(layout, node, node.rowBase(i));
  return Object.fromEntries(schema.fields.map(({ name, typeId }) => [name, toJson(typeId, row[name])]));
}

/** Returns a node with all of its entries. `schema`: the schema of the rows of a leaf; without it, rows have only their keys. */
export function nodeText(node: Node, types: KeyTypes | undefined, schema: StoredSchema | undefined): object {
  const head = {
    kind: kinds.get(node.kind) ?? node.kind,
    level: node.level,
    count: node.count,
    rows: node.totalCount(),
    sizeBytes: node.sizeBytes,
    ...(node.kind === BlockKind.table && { schemaVersion: node.schemaVersion }),
  };
  const layout = schema === undefined ? undefined : new RowLayout(schema.fields);
  const entries = Array.from({ length: node.count }, (_, i) => {
    const key = keyText(node.key(i), types);
    if (node.level > 0) return { key, child: node.child(i) };
    if (node.kind !== BlockKind.table || schema === undefined || layout === undefined) return { key };
    return isDeleted(node, i) ? { key, deleted: true } : { key, row: rowText(schema, layout, node, i) };
  });
  return { ...head, entries };
}

/** Summarizes a commit: its ids, its time, and the number of rows that it changes in each table. */
export function commitSummary(slot: number, { commitId, nodeId, atMs, members }: Commit): CommitSummary {
  const tables = new Map<string, number>();
  for (const { changes } of members) {
    for (const { schema, node } of changes) {
      tables.set(schema.name, (tables.get(schema.name) ?? 0) + node.totalCount());
    }
  }
  return { slot, commitId, nodeId, atMs, members: members.length, tables: Object.fromEntries(tables) };
}

export interface CommitSummary {
  readonly slot: number;
  readonly commitId: string;
  readonly nodeId: number;
  readonly atMs: number;
  readonly members: number;
  /** Rows that were inserted, updated or deleted, by table. */
  readonly tables: Readonly<Record<string, number>>;
}

/** Returns a commit with all of its changes. */
export function commitText(slot: number, commit: Commit): object {
  const { databaseId, commitId, nodeId, atMs, members } = commit;
  return {
    slot,
    databaseId,
    commitId,
    nodeId,
    atMs,
    members: members.map(({ changes }) => ({
      changes: changes.map(({ schema, node, staged }) => ({
        table: schema.name,
        version: schema.version,
        ...defined({ staged: staged?.runs }),
        ...nodeText(node, tableKeyTypes(schema), schema),
      })),
    })),
  };
}
