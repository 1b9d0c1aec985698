/** The messages between the thread of the application and the thread of a load. */
import { invariant } from '../base/errors.ts';
import { KeyList } from '../format/key-list.ts';
import type { BlockRef } from '../format/block.ts';
import type { RowSource } from '../format/row-layout.ts';
import type { RunEnd, RunLimits, UnsortedRows } from './row-run.ts';
import type { FilledRows, SourcePlace } from './row-source.ts';
import { ownBytes } from './thread-channel.ts';
import type { Answer } from './thread-channel.ts';

/** Facts about a load that its thread needs. */
export interface ThreadStart {
  readonly table: string;
  /** The stored schema of the table, as JSON. */
  readonly schema: string;
  readonly prefix: string;
  readonly blockSizeBytes: number;
  /** Whether the roots of runs are stored as well. */
  readonly storesRoots: boolean;
  /** Bytes that the blocks of the thread may take. */
  readonly memoryBytes: number;
  /** An estimate of the size of a block. */
  readonly blockBytes: number;
}

/** Names of runs that may be stored next, the newest last. */
export interface NewRuns {
  readonly names: readonly string[];
}

/** Asks the thread to stage the rows of the source as sorted runs. */
export interface RunsCall extends NewRuns {
  readonly limits: RunLimits | undefined;
}

/** A root that is stored. */
export interface StoredRoot extends BlockRef {
  readonly level: number;
}

/** A staged tree: its runs, and its root, as a block of them or as bytes. */
export interface SentPart {
  readonly runs: readonly string[];
  readonly root: StoredRoot | Uint8Array;
}

/** Asks the thread to stage the rows of several trees as one. */
export interface MergeCall extends NewRuns {
  readonly parts: readonly SentPart[];
}

/** A tree that the thread has staged. */
export interface SentTree {
  /** The root, as a sealed block. */
  readonly node: Uint8Array;
  readonly runs: readonly string[];
  readonly root: BlockRef | undefined;
}

/** A run that the thread has staged. */
export interface SentRun {
  readonly tree: SentTree;
  readonly run: RunEnd;
}

/** Asks for an object, or a range of one. */
export interface GetCall {
  readonly key: string;
  readonly range: { readonly start: number; readonly end: number } | undefined;
}

/** Asks for an object to be stored. The answer is a {@link NewRuns}. */
export interface PutCall {
  readonly key: string;
  readonly bytes: Uint8Array;
}

/** One buffer of encoded rows. */
export interface SentRows {
  readonly count: number;
  readonly sizeBytes: number;
  readonly keys: Uint8Array;
  /** Where the keys end. */
  readonly keyEnds: Uint32Array<ArrayBuffer>;
  /** The rows, one behind the other, and their heap. */
  readonly rows: Uint8Array;
  readonly heap: Uint8Array;
  readonly heapEnd: number;
  readonly end: SourcePlace;
}

/** Makes the message of a buffer of rows, which are gone from this thread then. `stride`: the bytes of a row without its heap. */
export function rowsMessage({ rows, end }: FilledRows, stride: number): Answer {
  const { count, sizeBytes, keys, arena } = rows;
  invariant(rows.base(count - 1) === (count - 1) * stride, 'Rows of a load do not follow each other');
  const value: SentRows = {
    count,
    sizeBytes,
    keys: ownBytes(keys.bytes, keys.sizeBytes),
    keyEnds: keys.ends,
    rows: ownBytes(arena.rows, arena.writer.length),
    heap: ownBytes(arena.heap, arena.heapEnd),
    heapEnd: arena.heapEnd,
    end,
  };
  const buffers = [value.keys, value.keyEnds, value.rows, value.heap].map(({ buffer }) => buffer as ArrayBuffer);
  return { value, buffers };
}

/** Returns the rows of a message. */
export function receivedRows(sent: SentRows, stride: number): UnsortedRows {
  const { count, sizeBytes, end } = sent;
  const arena: RowSource = {
    name: 'memory/load',
    rows: sent.rows,
    rowsView: new DataView(sent.rows.buffer, sent.rows.byteOffset, sent.rows.byteLength),
    rowsStart: 0,
    heap: sent.heap,
    heapStart: 0,
    heapEnd: sent.heapEnd,
    text: undefined,
  };
  const keys = KeyList.of(sent.keys, sent.keyEnds, count);
  return { rows: { keys, arena, sizeBytes, base: (i) => i * stride }, end };
}
