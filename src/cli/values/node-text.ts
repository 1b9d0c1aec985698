/** Turns nodes of trees and commits into readable plain values. */
import type { StoredSchema } from '../../format/stored-schema.ts';
import { defined } from '../../base/options.ts';
import { dropsIn } from '../../format/commit.ts';
import type { Commit } from '../../format/commit.ts';
import type { Node } from '../../format/node.ts';
import { blockContent, tableKeys } from '../../maintenance/inspect/block-content.ts';
import type { KeyForm } from '../../maintenance/inspect/block-content.ts';
import { rowsOf } from '../../maintenance/inspect/log-list.ts';
import { toJson } from '../../text/cell-values.ts';

/** Returns a node with all of its entries. `schema`: the schema of the rows of a leaf; without it, rows have only their keys. */
export function nodeText(node: Node, form: KeyForm | undefined, schema: StoredSchema | undefined): object {
  return blockContent(node, form, schema, toJson, (ref) => ref);
}

/** Summarizes a commit: its ids, its time, and the number of rows that it changes in each table. */
export function commitSummary(slot: number, commit: Commit): CommitSummary {
  const { commitId, nodeId, atMs, members } = commit;
  return { slot, commitId, nodeId, atMs, members: members.length, tables: rowsOf(commit), ...dropsIn(commit) };
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
        ...nodeText(node, tableKeys(schema), schema),
      })),
    })),
  };
}
