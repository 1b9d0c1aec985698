/** A cluster whose stored objects a test damages, also in ways that no checksum shows. */
import { Operation, TableOperations } from '../../../src/batch/table-operations.ts';
import { makeMember } from '../../../src/batch/make-member.ts';
import { blobsSchema, deletedBlobsSchema } from '../../../src/blob/blob-tables.ts';
import type { Finding, VerifyReport } from '../../../src/index.ts';
import { encodeBlock0 } from '../../../src/format/block0.ts';
import type { StoredTable, StoredRoot } from '../../../src/format/stored-table.ts';
import { encodeCommit } from '../../../src/format/commit.ts';
import { blobName, blockName, commitName } from '../../../src/format/object-names.ts';
import type { TreePlace } from '../../../src/format/object-names.ts';
import { NodeEntries } from '../../../src/format/node-entries.ts';
import { openNode } from '../../../src/format/node.ts';
import type { Node } from '../../../src/format/node.ts';
import { BlockCache } from '../../../src/cache/block-cache.ts';
import { Block0Reader } from '../../../src/block0/block0-reader.ts';
import { View, ViewContext } from '../../../src/view/view.ts';
import { TableShape } from '../../../src/schema/table-shape.ts';
import { BlockReader } from '../../../src/tree/block-source.ts';
import { resealBlock } from '../../properties/fuzz/mutations.ts';
import { Cluster, items, prefix } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';

export const itemsIndex = { table: 'items', index: 'group' };

/** A table without a say in what its blob fields hold, so that nothing refuses a reference. */
class LaxShape extends TableShape {
  override readonly blobFields = [];
}

type Row = Record<string, unknown>;

export class DamagedCluster extends Cluster {
  async bytes(name: string): Promise<Uint8Array> {
    const found = await this.store.get(`${prefix}/${name}`);
    if (found.status !== 'found') throw new Error(`there is no ${name}`);
    return new Uint8Array(found.bytes);
  }

  async putObject(name: string, bytes: Uint8Array): Promise<void> {
    await this.store.put(`${prefix}/${name}`, Uint8Array.from(bytes), { if: 'any' });
  }

  /** Changes the bytes of a block and makes its checksum right again. */
  async reseal(name: string, change: (bytes: Uint8Array, node: Node) => void): Promise<void> {
    const bytes = await this.bytes(name);
    change(bytes, openNode(name, bytes.slice()));
    resealBlock(name, bytes);
    await this.putObject(name, bytes);
  }

  /** Changes the root of a table, or of one of its indexes, as Block 0 has it: no merge does that. */
  rewriteRoot(place: TreePlace, change: (root: NonNullable<StoredRoot>) => StoredRoot): Promise<void> {
    const changed = (root: StoredRoot): StoredRoot => change(root as NonNullable<StoredRoot>);
    return this.replaceBlock0(({ generation, tables }) => ({
      generation: generation + 1,
      tables: tables.map((table): StoredTable => {
        if (table.name !== place.table) return table;
        const versions = table.versions.map((version) => {
          if (place.index === undefined) return { ...version, root: changed(version.root) };
          const indexes = version.indexes.map(({ name, root }) => {
            return { name, root: name === place.index ? changed(root) : root };
          });
          return { ...version, indexes };
        });
        return { ...table, versions };
      }),
    }));
  }

  /** Rewrites the root node of a table in a kept Block 0 that holds it, under right checksums. */
  async rewriteKeptRoot(name: string, table: string, fill: (root: Node, entries: NodeEntries) => void): Promise<void> {
    const block0 = await new Block0Reader(this.store, prefix).decode(await this.bytes(name));
    const root = block0.tables.find((each) => each.name === table)?.versions[0]?.root as NonNullable<StoredRoot>;
    const rootName = blockName({ table }, root);
    const inlined = block0.inlined.map((each) => {
      if (each.name !== rootName) return each;
      const node = openNode(rootName, new Uint8Array(Buffer.from(each.block, 'base64')));
      const entries = new NodeEntries({ kind: node.kind, level: node.level });
      fill(node, entries);
      const bytes = entries.encode(rootName, 0, entries.count);
      return { name: rootName, block: Buffer.from(bytes).toString('base64') };
    });
    await this.putObject(name, encodeBlock0({ ...block0, inlined }));
  }

  /** Names of the blocks of a tree of the present state, by their level, in key order. Roots in Block 0 are left out. */
  async blocks(place: TreePlace): Promise<string[][]> {
    const levels: string[][] = [];
    const block0 = await this.block0();
    const { tree } = this.#context()
      .trees(block0)
      .find((each) => blockName(each.place, nobody) === blockName(place, nobody)) as ReturnType<
      ViewContext['trees']
    >[number];
    const visit = async (node: Node): Promise<void> => {
      (levels[node.level] ??= []).push(node.name);
      for (let i = 0; node.level > 0 && i < node.count; i++) await visit(await tree.source.load(node.child(i)));
    };
    if (tree.ref !== null) await visit(await tree.loadRoot());
    const inlined = new Set(block0.inlined.map(({ name }) => name));
    return levels.map((names) => names.filter((name) => !inlined.has(name)));
  }

  async leaves(place: TreePlace): Promise<string[]> {
    return (await this.blocks(place))[0] as string[];
  }

  #context(): ViewContext {
    return new ViewContext(new BlockReader(this.store, prefix, new BlockCache(1_000_000)));
  }

  /** Puts a commit into the next slot that changes tables in ways in which no flush does. */
  async commitRows(changes: { readonly [table: string]: readonly Row[] }): Promise<void> {
    const environment = this.clock;
    const block0 = await this.block0();
    const view = View.ofBlock0(this.#context(), block0);
    const lists = Object.entries(changes).map(([table, rows]) => {
      const schema = [items, blobsSchema, deletedBlobsSchema].find(({ name }) => name === table);
      const stored = view.table(table)?.shape.schema ?? (schema as typeof blobsSchema);
      const list = new TableOperations(new LaxShape(stored), environment);
      for (const row of rows) list.addDocument(Operation.upsert, row);
      return list;
    });
    let slot = block0.appliedSeq + 1;
    while ((await this.store.get(`${prefix}/${commitName(slot)}`)).status === 'found') slot++;
    const options = { environment, driver: this.store, prefix, blockSizeBytes: 512, maxCommitBytes: 1_000_000, slot };
    const member = await makeMember(
      lists,
      new Map(),
      ({ shape }) => ({
        state: view.table(shape.name) ?? view.emptyTable(shape.schema),
        isWhole: true,
        isSole: false,
        active: undefined,
        checked: [],
      }),
      options,
    );
    const commit = {
      databaseId: block0.databaseId,
      commitId: `by hand ${slot}`,
      nodeId: 99,
      atMs: 0,
      members: [member],
    };
    await this.putObject(commitName(slot), encodeCommit(slot, commit));
  }

  verify({ db }: ClusterNode, deep = true): Promise<VerifyReport> {
    return this.run(db.verify({ deep }));
  }

  async findings(node: ClusterNode, deep = true): Promise<readonly Finding[]> {
    return (await this.verify(node, deep)).findings;
  }

  /** Stores blobs with rows of their own; returns their names. */
  async storeBlobs(node: ClusterNode, blobs: Readonly<Record<number, string | Uint8Array>>): Promise<string[]> {
    const ids = Object.keys(blobs).map(Number);
    await this.run(
      this.flush(node, (batch) => {
        for (const id of ids) void batch.upsert(items, { id, group: id % 10, file: node.db.Blob(blobs[id] as string) });
      }),
    );
    const names: string[] = [];
    for (const id of ids) names.push(blobName((await this.run(node.db.get(items, id)))?.file as string));
    return names;
  }

  /** Throws unless a query by the index finds for every value what a scan of the table finds. */
  async checkIndex({ db }: ClusterNode): Promise<number> {
    const all = await this.run(db.query(items).execute());
    let found = 0;
    for (const group of [null, ...Array.from({ length: 10 }, (_, i) => i)]) {
      const query = db.query(items).where('group', '=', group);
      if (!JSON.stringify(await this.run(query.explain())).includes('group')) throw new Error('The index is not used');
      const expected = all.filter((row) => row.group === group).map(({ id }) => id);
      const rows = (await this.run(query.execute())).map(({ id }) => id);
      if (rows.join() !== expected.join())
        throw new Error(`group ${group}: ${rows.join()} instead of ${expected.join()}`);
      found += rows.length;
    }
    return found;
  }
}

const nobody = { birth: 0, id: '0'.repeat(16) };
