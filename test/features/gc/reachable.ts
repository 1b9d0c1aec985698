/**
 * What a database consists of, worked out from nothing but the format: Block 0, the states that it keeps, every block that
 * their trees reach, the blobs that their rows and those of pending commits list, and the log. It shares no code with
 * what collects garbage, so that each checks the other.
 */
import { blobsSchema } from '../../../src/blob/blob-tables.ts';
import type { Block0 } from '../../../src/format/block0.ts';
import type { StoredRoot } from '../../../src/format/stored-table.ts';
import type { BlockRef } from '../../../src/format/block.ts';
import { catalogueName } from '../../../src/format/catalogue.ts';
import { decodeCommit } from '../../../src/format/commit.ts';
import {
  blobName,
  blockName,
  commitName,
  historyName,
  rootName,
  stagedName,
} from '../../../src/format/object-names.ts';
import type { TreePlace } from '../../../src/format/object-names.ts';
import { openNode } from '../../../src/format/node.ts';
import type { Node } from '../../../src/format/node.ts';
import { decodeRow } from '../../../src/format/row-decode.ts';
import { rowDeletedFlag, RowLayout } from '../../../src/format/row-layout.ts';
import { Block0Reader } from '../../../src/block0/block0-reader.ts';
import type { StorageDriver } from '../../../src/storage/contract/driver.ts';

const blobLayout = new RowLayout(blobsSchema.fields);

class Walk {
  readonly names = new Set<string>();
  readonly #store: StorageDriver;
  readonly #prefix: string;

  constructor(store: StorageDriver, prefix: string) {
    this.#store = store;
    this.#prefix = prefix;
  }

  async #read(name: string): Promise<Uint8Array> {
    const found = await this.#store.get(`${this.#prefix}/${name}`);
    if (found.status !== 'found') throw new Error(`${name} is reachable, and missing`);
    this.names.add(name);
    return found.bytes;
  }

  async #readRoot(name: string): Promise<Block0> {
    const block0 = await new Block0Reader(this.#store, this.#prefix).decode(await this.#read(name));
    if (block0.catalogue !== undefined) this.names.add(catalogueName(block0.catalogue.ref));
    return block0;
  }

  async run(): Promise<void> {
    const block0 = await this.#readRoot('block0');
    await this.#addState(block0);
    for (const { id } of block0.snapshots) await this.#addState(await this.#readRoot(rootName(id)));
    const { history, generation } = block0;
    for (let kept = history?.floor ?? generation; kept < generation; kept++) {
      await this.#addState(await this.#readRoot(historyName(kept)));
    }
    await this.#addLog(block0);
  }

  async #addState(block0: Block0): Promise<void> {
    const inlined = new Map(
      block0.inlined.map(({ name, block }) => [name, openNode(name, new Uint8Array(Buffer.from(block, 'base64')))]),
    );
    for (const { name: table, versions } of block0.tables) {
      for (const { root, indexes } of versions) {
        await this.#addTree({ table }, root, inlined);
        for (const index of indexes) await this.#addTree({ table, index: index.name }, index.root, inlined);
      }
    }
    for (const { table, base } of block0.migrations) await this.#addTree({ table }, base, inlined);
  }

  async #addTree(place: TreePlace, root: StoredRoot, inlined: ReadonlyMap<string, Node>): Promise<void> {
    if (root === null) return;
    const node = inlined.get(blockName(place, root)) ?? (await this.#block(place, root));
    await this.#addNode(place, node);
  }

  async #block(place: TreePlace, ref: BlockRef): Promise<Node> {
    const name = blockName(place, ref);
    return openNode(name, await this.#read(name));
  }

  async #addNode(place: TreePlace, node: Node): Promise<void> {
    if (node.level === 0) {
      if (place.table === blobsSchema.name && place.index === undefined) this.#addBlobs(node);
      return;
    }
    for (let i = 0; i < node.count; i++) {
      const ref = node.child(i);
      if (!this.names.has(blockName(place, ref))) await this.#addNode(place, await this.#block(place, ref));
    }
  }

  #addBlobs(leaf: Node): void {
    for (let i = 0; i < leaf.count; i++) {
      const base = leaf.rowBase(i);
      if (((leaf.rows[base] as number) & rowDeletedFlag) !== 0) continue;
      this.names.add(blobName(decodeRow(blobLayout, leaf, base)['id'] as string));
    }
  }

  /** Slots over the floor may still be read; those that are not merged name more. The slot at the floor stays, if it is there. */
  async #addLog({ logFloor, appliedSeq }: Block0): Promise<void> {
    if (logFloor > 0) this.names.add(commitName(logFloor));
    for (let slot = logFloor + 1; ; slot++) {
      const found = await this.#store.get(`${this.#prefix}/${commitName(slot)}`);
      if (found.status !== 'found') return;
      this.names.add(commitName(slot));
      if (slot <= appliedSeq) continue;
      for (const { changes } of decodeCommit(slot, found.bytes).members) {
        for (const { schema, node, staged } of changes) {
          for (const run of staged?.runs ?? []) await this.#read(stagedName(run));
          if (schema.name === blobsSchema.name && staged === undefined) this.#addBlobs(node);
        }
      }
    }
  }
}

/** Names of all objects that a database consists of. Rejects if one that a tree refers to is missing. */
export async function reachableNames(store: StorageDriver, prefix: string): Promise<Set<string>> {
  const walk = new Walk(store, prefix);
  await walk.run();
  return walk.names;
}

/** Of all that lies under a database's prefix, what it does not consist of. */
export async function superfluousNames(store: StorageDriver, prefix: string): Promise<string[]> {
  const reachable = await reachableNames(store, prefix);
  const superfluous: string[] = [];
  for (let after: string | undefined; ; ) {
    const { entries, more } = await store.list(`${prefix}/`, after === undefined ? {} : { after });
    for (const { key } of entries) {
      const name = key.slice(prefix.length + 1);
      if (!reachable.has(name)) superfluous.push(name);
    }
    after = entries.at(-1)?.key;
    if (!more || after === undefined) return superfluous;
  }
}
