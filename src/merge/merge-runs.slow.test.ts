/**
 * Merges that take many rows and index entries at once, appended, put between others, replaced and deleted: rows and indexes
 * equal a naive model's.
 */
import { describe, expect, it } from 'vitest';
import { keyOf, layerOf } from '../../test/features/query/layers.ts';
import { ByteWriter, compareBytes, toHex } from '../base/bytes.ts';
import { realEnvironment } from '../base/env.ts';
import { Pacer } from '../base/pacer.ts';
import { decodeRow } from '../format/row-decode.ts';
import { appendNullRow, writeField, RowArena } from '../format/row-encode.ts';
import type { LayoutField } from '../format/row-layout.ts';
import { Types } from '../format/types.ts';
import { BlockCache } from '../cache/block-cache.ts';
import { MemoryDriver } from '../storage/memory-driver.ts';
import { writeIndexEntry } from '../schema/index-entries.ts';
import { indexLeafShape, TableShape } from '../schema/table-shape.ts';
import { layeredState } from '../view/layered-state.ts';
import { BlockReader } from '../tree/block-source.ts';
import { Uploads } from '../tree/block-writer.ts';
import { checkTree } from '../tree/check.ts';
import { TreeCursor } from '../tree/cursor.ts';
import { Tree } from '../tree/tree.ts';
import { mergeVersion } from './merge-table.ts';
import type { MergedTree } from './growing-tree.ts';

const shape = new TableShape({
  name: 't',
  version: 1,
  fields: [
    { name: 'id', typeId: Types.uint32 },
    { name: 'group', typeId: Types.varchar },
    { name: 'size', typeId: Types.uint32 },
    { name: 'note', typeId: Types.varchar },
  ],
  primaryKey: ['id'],
  indexes: [
    { name: 'group', fields: ['group'] },
    { name: 'size', fields: ['size'] },
  ],
});

interface Row {
  readonly id: number;
  readonly group: string;
  readonly size: number;
  readonly note: string | null;
}

type Random = (below: number) => number;

function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 0x1_0000_0000) * below);
  };
}

/** A commit: the row that each key has after it, or null. */
type Commit = ReadonlyMap<number, Row | null>;

/** A comparison that is fast where it holds. */
function expectSame(found: readonly unknown[], expected: readonly unknown[]): void {
  if (JSON.stringify(found) !== JSON.stringify(expected)) expect(found).toEqual(expected);
}

class Lab {
  readonly model = new Map<number, Row>();
  /** Bytes of blocks that were stored, by the folder of their tree. */
  readonly stored = new Map<string, number>();
  readonly #driver = new MemoryDriver();
  readonly #reader = new BlockReader(this.#driver, 'db', new BlockCache(64 * 1024 * 1024));
  #birth = 0;
  #state = layeredState(
    shape,
    this.#tree(undefined),
    new Map(shape.indexes.map(({ name }) => [name, this.#tree(name)])),
  );

  constructor() {
    const put = this.#driver.put.bind(this.#driver);
    this.#driver.put = (name, body, options) => {
      const folder = name.slice(0, name.lastIndexOf('/'));
      this.stored.set(folder, (this.stored.get(folder) ?? 0) + (body as Uint8Array).length);
      return put(name, body, options);
    };
  }

  #tree(index: string | undefined, ref: Tree['ref'] = null): Tree {
    const place = index === undefined ? { table: 't' } : { table: 't', index };
    return new Tree(this.#reader.tree(place, index === undefined ? shape.leafShape : indexLeafShape), ref);
  }

  async #stored(merged: MergedTree): Promise<Tree> {
    const { index } = merged.place;
    const { root, writer } = merged;
    if (root.kind === 'empty') return this.#tree(index);
    if (root.kind === 'stored') return this.#tree(index, { ...root.ref, level: root.level });
    const ref = await writer.put(root.entries, 0, root.entries.count);
    return this.#tree(index, { ...ref, level: root.entries.shape.level });
  }

  /** Merges commits, the first of which came first. */
  async merge(commits: readonly Commit[], indexBufferBytes: number): Promise<void> {
    for (const commit of commits) {
      this.#state = this.#state.withLayer(layerOf(shape, commit));
      for (const [id, row] of commit) {
        if (row === null) this.model.delete(id);
        else this.model.set(id, row);
      }
    }
    const uploads = new Uploads({ driver: this.#driver, prefix: 'db', environment: realEnvironment });
    const merged = await mergeVersion(this.#state, {
      environment: realEnvironment,
      cache: this.#reader.cache,
      uploads,
      birth: ++this.#birth,
      pacer: new Pacer(realEnvironment),
      counters: { merges: 0, lostMerges: 0, blocksWritten: 0, splits: 0, joins: 0, rootSplits: 0 },
      blockSizeBytes: 1024,
      indexBufferBytes,
      functions: () => undefined,
    });
    const indexes = new Map<string, Tree>();
    for (const [name, tree] of merged.indexes) indexes.set(name, await this.#stored(tree));
    this.#state = layeredState(shape, await this.#stored(merged.tree), indexes);
    await uploads.finish();
  }

  async check(): Promise<void> {
    const rows = [...this.model.values()].toSorted((a, b) => a.id - b.id);
    const { tree, indexes } = this.#state;
    expect(await checkTree(tree, { leaf: shape.leafShape })).toEqual([]);
    const found: unknown[] = [];
    for (const cursor = new TreeCursor(tree); await cursor.next(); ) {
      for (let i = cursor.from; i < cursor.to; i++) {
        found.push(decodeRow(shape.layout, cursor.node, cursor.node.rowBase(i)));
      }
    }
    expectSame(found, rows);
    for (const index of shape.indexes) {
      const entries = indexes.get(index.name) as Tree;
      expect(await checkTree(entries, { leaf: indexLeafShape })).toEqual([]);
      const keys: string[] = [];
      for (const cursor = new TreeCursor(entries); await cursor.next(); ) {
        for (let i = cursor.from; i < cursor.to; i++) keys.push(toHex(cursor.node.key(i)));
      }
      expectSame(keys, this.#expectedEntries(index.fields[0] as LayoutField, rows));
    }
  }

  #expectedEntries(field: LayoutField, rows: readonly Row[]): string[] {
    const index = shape.indexes.find(({ name }) => name === field.name) as (typeof shape.indexes)[number];
    const entries = rows.map((row) => {
      const arena = new RowArena('memory/test');
      const base = appendNullRow(shape.layout, arena.writer);
      writeField(arena.writer, base, arena.heapWriter, field, row[field.name as keyof Row]);
      const writer = new ByteWriter();
      writeIndexEntry(writer, index, arena, base, keyOf(shape, row.id));
      return writer.finish();
    });
    return entries.toSorted(compareBytes).map(toHex);
  }
}

function rowOf(id: number, random: Random): Row {
  const note = random(4) === 0 ? null : `note ${'é'.repeat(random(20))}${random(1000)}`;
  return { id, group: ['a', 'b', 'ü', 'a long name of a group'][random(4)] as string, size: random(300), note };
}

/** Commits of one merge: runs of new rows at the end or in between, and some changes of existing rows. */
function commitsOf(lab: Lab, random: Random, round: number): Commit[] {
  const ids = [...lab.model.keys()];
  return Array.from({ length: 1 + random(3) }, () => {
    const commit = new Map<number, Row | null>();
    const start = random(3) === 0 ? round * 100_000 : random(round * 100_000 + 1);
    const length = random(4) === 0 ? 0 : random(300);
    const step = random(3) === 0 ? 1 + random(50) : 1;
    for (let i = 0; i < length; i++) commit.set(start + i * step, rowOf(start + i * step, random));
    for (let i = random(30); i > 0 && ids.length > 0; i--) {
      const id = ids[random(ids.length)] as number;
      commit.set(id, random(2) === 0 ? null : rowOf(id, random));
    }
    // Rows that go in the middle of a run of others.
    if (length > 0 && random(2) === 0) commit.set(start + random(length) * step, null);
    if (commit.size === 0) commit.set(start, rowOf(start, random));
    return commit;
  });
}

describe('merging many rows at once', () => {
  it.each(Array.from({ length: 6 }, (_, seed) => seed))('has the results of a model (seed %i)', async (seed) => {
    const random = randomOf(seed * 7919 + 1);
    const lab = new Lab();
    for (let round = 0; round < 12; round++) {
      // Now and then the entries of indexes are applied in several rounds.
      await lab.merge(commitsOf(lab, random, round), random(3) === 0 ? 512 : 1024 * 1024);
      await lab.check();
    }
  });

  it('more of them than are taken at once, into a tree that was empty, and after its end', async () => {
    const random = randomOf(5);
    const lab = new Lab();
    for (const start of [10_000, 20_000, 0]) {
      const rows = Array.from({ length: 5000 }, (_, i): [number, Row] => [start + i, rowOf(start + i, random)]);
      await lab.merge([new Map(rows)], 1024 * 1024);
      await lab.check();
    }
  });

  describe('whose entries take several times the memory for them', () => {
    const ids = Array.from({ length: 6000 }, (_, i) => 2 * i);
    const mixed = (id: number): number => (id * 7919) % 6007;

    /** Merges rows, and those after them, and returns how many bytes of an index the last merge wrote. */
    async function bytesWritten(bufferBytes: number, sizeOf: (id: number) => number, ...merges: number[][]) {
      const random = randomOf(9);
      const lab = new Lab();
      for (const merged of merges) {
        lab.stored.clear();
        await lab.merge([new Map(merged.map((id) => [id, { ...rowOf(id, random), size: sizeOf(id) }]))], bufferBytes);
        await lab.check();
      }
      return lab.stored.get('db/indexes/t/size') as number;
    }

    /** Returns how many times as much is written as with memory for all entries. */
    async function timesWritten(sizeOf: (id: number) => number, ...merges: number[][]): Promise<number> {
      const few = await bytesWritten(16 * 1024, sizeOf, ...merges);
      return few / (await bytesWritten(1024 * 1024, sizeOf, ...merges));
    }

    it('writes an entry twice if they come in no order', async () => {
      expect(await timesWritten(mixed, ids)).toBeLessThan(2.5);
    });

    it('writes an entry once if they come in order', async () => {
      expect(await timesWritten((id) => id, ids)).toBeLessThan(1.3);
    });

    it('writes the entries of earlier rows once', async () => {
      const others = ids.map((id) => id + 1);
      expect(await timesWritten(mixed, ids, others)).toBeLessThan(1.7);
    });
  });
});
