/**
 * The check of a whole database: everything is read from the store, past the cache that queries use. Trees must be
 * sorted and balanced with right counts; every row must decode and stand under its own key; every index must hold
 * exactly the entries that the rows imply; pending commits must be whole.
 */
import { ByteWriter, compareBytes } from '../base/bytes.ts';
import type { Environment } from '../base/env.ts';
import { CorruptionError } from '../base/errors.ts';
import { Pacer } from '../base/pacer.ts';
import { MalformedKey, skipKeyComponent } from '../format/ordered-key.ts';
import type { Node } from '../format/node.ts';
import { decodeRow, readField } from '../format/row-decode.ts';
import { rowMarks } from '../format/row-layout.ts';
import type { OrderedValue } from '../base/order.ts';
import { CommitLog } from '../log/commit-log.ts';
import { BlockCache } from '../memory/block-cache.ts';
import type { Block0Register } from '../root/block0-register.ts';
import type { StorageDriver } from '../storage/driver.ts';
import { indexLeafShape } from '../table/table-shape.ts';
import type { TableIndex } from '../table/table-shape.ts';
import { isDeleted } from '../table/merged-cursor.ts';
import type { TableState } from '../table/table-state.ts';
import { View, ViewContext } from '../table/view.ts';
import { BlockReader } from '../tree/block-source.ts';
import { checkTree } from '../tree/check.ts';
import type { Finding } from '../tree/check.ts';
import type { Tree } from '../tree/tree.ts';

/** A table as `db.verify()` found it. */
export interface VerifiedTable {
  /** Name of the table; `_blobs` and `_deleted_blobs` are the database's own. */
  readonly name: string;
  /** Rows in blocks; those of pending commits are not counted. */
  readonly rows: number;
  /** Blocks of the table and its indexes, roots in Block 0 included. */
  readonly blocks: number;
  /** Each index and how many entries it has: as many as there are rows. */
  readonly indexes: readonly { readonly name: string; readonly entries: number }[];
}

/** What `db.verify()` found. */
export interface VerifyReport {
  /** Whether nothing is wrong. */
  readonly ok: boolean;
  /** What is wrong, and in which object; at most 100 findings a tree. */
  readonly findings: readonly Finding[];
  /** Every table, the database's own included. */
  readonly tables: readonly VerifiedTable[];
  /** Commits in the log that are not merged yet. */
  readonly pendingCommits: number;
}

export interface VerifyOptions {
  readonly environment: Environment;
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly register: Block0Register;
  /** Memory for blocks while checking, in bytes. */
  readonly cacheBytes: number;
}

/** Attempts where other nodes merge, and remove what this check is about to read. */
const maxAttempts = 5;

export async function verifyDatabase(options: VerifyOptions, signal?: AbortSignal): Promise<VerifyReport> {
  for (let attempt = 1; ; attempt++) {
    const { block0 } = await options.register.refresh(signal);
    const report = await new Verification(options, signal).run(block0);
    if (report.ok || attempt >= maxAttempts) return report;
    const present = await options.register.refresh(signal);
    // A finding counts only if the database has not moved on from what was checked.
    if (present.block0.generation === block0.generation) return report;
  }
}

class Verification {
  readonly #options: VerifyOptions;
  readonly #signal: AbortSignal | undefined;
  readonly #pacer: Pacer;
  readonly #findings: Finding[] = [];
  readonly #key = new ByteWriter();

  constructor(options: VerifyOptions, signal: AbortSignal | undefined) {
    this.#options = options;
    this.#signal = signal;
    this.#pacer = new Pacer(options.environment);
  }

  async run(block0: Parameters<typeof View.ofBlock0>[1]): Promise<VerifyReport> {
    const { driver, prefix, cacheBytes } = this.#options;
    const reader = new BlockReader(driver, prefix, new BlockCache(cacheBytes));
    const view = View.ofBlock0(new ViewContext(reader), block0);
    const tail = await this.#readLog(view);
    const tables: VerifiedTable[] = [];
    for (const table of tail.tables.values()) {
      tables.push(await this.#checkTable(table));
      await this.#checkLayers(table);
    }
    const { length: pendingCommits } = tail.pending;
    return { ok: this.#findings.length === 0, findings: this.#findings, tables, pendingCommits };
  }

  /** The view with the commits of the log, as far as they can be read. */
  async #readLog(view: View): Promise<View> {
    const log = new CommitLog(this.#options.driver, this.#options.prefix);
    let tail = view;
    for (;;) {
      try {
        const commit = await log.read(tail.tail + 1, this.#signal);
        if (commit === undefined) return tail;
        tail = tail.withCommit({ seq: tail.tail + 1, commit });
      } catch (error) {
        if (!(error instanceof CorruptionError)) throw error;
        this.#findings.push({ name: error.key, message: error.message });
        return tail;
      }
    }
  }

  /** What pending commits hold: rows that decode, in order, each under its own key. */
  async #checkLayers(table: TableState): Promise<void> {
    for (const layer of table.layers) {
      const onRun = (leaf: Node, from: number, to: number): void => {
        for (let i = from; i < to; i++) if (!isDeleted(leaf, i)) this.#checkRow(table, leaf, i);
      };
      await this.#check(layer, { leaf: table.shape.changeShape, onRun });
    }
  }

  async #checkTable(table: TableState): Promise<VerifiedTable> {
    const { shape } = table;
    let blocks = 0;
    const onNode = (): void => {
      blocks++;
      this.#signal?.throwIfAborted();
    };
    const onRun = (leaf: Node, from: number, to: number): void => this.#checkRows(table, leaf, from, to);
    await this.#check(table.tree, { leaf: shape.leafShape, onRun, onNode });
    const indexes: { name: string; entries: number }[] = [];
    for (const index of shape.indexes) {
      const tree = table.indexes.get(index.name) as Tree;
      const place = `indexes/${shape.name}/${index.name}`;
      if (tree.count !== table.tree.count) {
        const message = `The index has ${tree.count} entries, and the table ${table.tree.count} rows`;
        this.#findings.push({ name: place, message });
      }
      // Strictly ascending entries, as many as there are rows, each the one that its row implies: exactly those.
      const onEntries = (leaf: Node, from: number, to: number): Promise<void> => {
        return this.#checkEntries(table, index, leaf, from, to);
      };
      await this.#check(tree, { leaf: indexLeafShape, onRun: onEntries, onNode });
      indexes.push({ name: index.name, entries: tree.count });
    }
    return { name: shape.name, rows: table.tree.count, blocks, indexes };
  }

  async #check(tree: Tree, options: Omit<Parameters<typeof checkTree>[1], 'pacer'>): Promise<void> {
    this.#findings.push(...(await checkTree(tree, { ...options, pacer: this.#pacer })));
  }

  #checkRows(table: TableState, leaf: Node, from: number, to: number): void {
    for (let i = from; i < to; i++) {
      if (((leaf.rows[leaf.rowBase(i)] as number) & rowMarks) !== 0) {
        this.#findings.push({ name: leaf.name, message: `Row ${i} is marked as a change, and this is a table` });
      }
      this.#checkRow(table, leaf, i);
    }
  }

  #checkRow({ shape }: TableState, leaf: Node, i: number): void {
    const base = leaf.rowBase(i);
    const key = this.#key;
    try {
      decodeRow(shape.layout, leaf, base);
      key.length = 0;
      shape.writeKey(key, readField(leaf, base, shape.primaryKey) as OrderedValue);
      if (leaf.compareKey(i, key.bytes, key.length) !== 0) {
        this.#findings.push({ name: leaf.name, message: `Row ${i} stands under the key of another` });
      }
    } catch (error) {
      if (!(error instanceof CorruptionError)) throw error;
      this.#findings.push({ name: error.key, message: `Row ${i}: ${error.message}` });
    }
  }

  async #checkEntries(table: TableState, index: TableIndex, leaf: Node, from: number, to: number): Promise<void> {
    const implied = new ByteWriter();
    for (let i = from; i < to; i++) {
      const entry = leaf.key(i);
      try {
        const primaryKey = entry.subarray(skipKeyComponent(entry, 0, index.field.typeId));
        const found = table.tree.lookup(primaryKey);
        const row = found instanceof Promise ? await found : found;
        if (row === undefined) {
          this.#findings.push({ name: leaf.name, message: `Index entry ${i} names a row that does not exist` });
          continue;
        }
        implied.length = 0;
        table.shape.writeIndexEntry(implied, index, row.source, row.base, primaryKey);
        if (compareBytes(implied.finish(), entry) !== 0) {
          this.#findings.push({ name: leaf.name, message: `Index entry ${i} is not the one that its row implies` });
        }
      } catch (error) {
        if (error instanceof CorruptionError) this.#findings.push({ name: error.key, message: error.message });
        else if (error instanceof MalformedKey) this.#findings.push({ name: leaf.name, message: error.message });
        else throw error;
      }
    }
  }
}
