import { describe, expect, it } from 'vitest';
import { encodeUtf8 } from '../base/bytes.ts';
import { CorruptionError } from '../base/errors.ts';
import { BlockKind } from '../format/block.ts';
import type { BlockRef } from '../format/block.ts';
import { blockName } from '../format/object-names.ts';
import { NodeEntries } from '../format/node-entries.ts';
import type { EntryShape } from '../format/node-entries.ts';
import { BlockCache } from '../cache/block-cache.ts';
import { MemoryDriver } from '../storage/memory-driver.ts';
import { BlockReader } from './block-source.ts';
import { checkTree } from './check.ts';
import type { CheckOptions, Finding } from './check.ts';
import { TreeCursor } from './cursor.ts';
import { Tree } from './tree.ts';

const place = { table: 't', index: 'i' };
const leafShape: EntryShape = { kind: BlockKind.index, level: 0 };

/** A tree that is built by hand, correct or damaged. */
class Lab {
  readonly driver = new MemoryDriver();
  #next = 0;

  async put(entries: NodeEntries, count: number, changes: Partial<BlockRef> = {}): Promise<BlockRef> {
    const identity = { birth: 1, id: (this.#next++).toString(16).padStart(16, '0') };
    const name = blockName(place, identity);
    const bytes = entries.encode(name, 0, entries.count);
    await this.driver.put(`db/${name}`, bytes, { if: 'absent' });
    return { ...identity, count, sizeBytes: bytes.length, ...changes };
  }

  leaf(keys: readonly string[], changes?: Partial<BlockRef>, shape: EntryShape = leafShape): Promise<BlockRef> {
    const entries = new NodeEntries(shape);
    for (const key of keys) entries.addKey(encodeUtf8(key));
    return this.put(entries, keys.length, changes);
  }

  inner(level: number, children: readonly (readonly [string, BlockRef])[]): Promise<BlockRef> {
    const entries = new NodeEntries({ kind: BlockKind.inner, level });
    for (const [separator, ref] of children) entries.addChild(encodeUtf8(separator), ref);
    return this.put(entries, entries.rowCount(0, children.length));
  }

  tree(root: BlockRef, level: number): Tree {
    const reader = new BlockReader(this.driver, 'db', new BlockCache(1_000_000));
    return new Tree(reader.tree(place, leafShape), { ...root, level });
  }

  async check(root: BlockRef, level: number, options: Partial<CheckOptions> = {}): Promise<readonly Finding[]> {
    return checkTree(this.tree(root, level), { leaf: leafShape, ...options });
  }
}

describe('checkTree', () => {
  it('finds nothing in a tree that is right, and shows every leaf in order', async () => {
    const lab = new Lab();
    const left = await lab.inner(1, [
      ['', await lab.leaf(['a', 'b'])],
      ['c', await lab.leaf(['c', 'd'])],
    ]);
    // The first separator of a node bounds nothing.
    const right = await lab.inner(1, [['x', await lab.leaf(['e', 'f'])]]);
    const root = await lab.inner(2, [
      ['', left],
      ['e', right],
    ]);
    const seen: string[] = [];
    const findings = await lab.check(root, 2, {
      onRun: async (leaf, from, to) => {
        await Promise.resolve();
        for (let i = from; i < to; i++) seen.push(Buffer.from(leaf.key(i)).toString());
      },
    });
    expect(findings).toEqual([]);
    expect(seen.join('')).toBe('abcdef');
    expect(await checkTree(new Tree(lab.tree(root, 2).source, null), { leaf: leafShape })).toEqual([]);
  });

  it('finds keys that do not ascend or lie outside their separators', async () => {
    const lab = new Lab();
    const root = await lab.inner(1, [
      ['', await lab.leaf(['a', 'c', 'b'])],
      ['d', await lab.leaf(['cc', 'e'])],
      ['f', await lab.leaf(['f', 'fa', 'fa'])],
      ['g', await lab.leaf(['h'])],
      ['g', await lab.leaf(['i'])],
    ]);
    const findings = await lab.check(root, 1);
    const texts = findings.map(({ message }) => message).join('\n');
    expect(findings).toHaveLength(5);
    expect(texts).toContain('Entry 2 is not above the one before it');
    expect(texts).toContain('Entry 0 is below the separator of its node');
    expect(texts).toContain('Entry 4 is not above the one before it');
    expect(texts).toContain('Entry 0 is not below the separator of the next node');
  });

  it('finds wrong counts, sizes, levels, kinds, and blocks that are missing or damaged', async () => {
    const lab = new Lab();
    const damaged = await lab.leaf(['e']);
    const name = `db/${blockName(place, damaged)}`;
    await lab.driver.put(name, new Uint8Array(damaged.sizeBytes), { if: 'any' });
    const root = await lab.inner(1, [
      ['', await lab.leaf(['a'], { count: 2 })],
      ['b', await lab.leaf(['b'], { sizeBytes: 5 })],
      ['c', await lab.inner(1, [['', await lab.leaf(['c'])]])],
      ['d', await lab.leaf([])],
      ['e', damaged],
      ['f', { ...damaged, id: 'f'.repeat(16) }],
      ['g', await lab.leaf(['g'], {}, { ...leafShape, schemaVersion: 3 })],
    ]);
    const findings = await lab.check({ ...root, count: 1 }, 1);
    expect(findings).toHaveLength(8);
    expect(new Set(findings.map((finding) => finding.name)).size).toBe(8);
    expect(await lab.check(root, 1, { maxFindings: 3 })).toHaveLength(3);
    expect(await lab.check(root, 2)).toHaveLength(1);
    expect(await lab.check({ ...root, id: 'e'.repeat(16) }, 1)).toHaveLength(1);
  });
});

describe('cursors and searches over damaged trees', () => {
  it('end with an error, and never go round in circles', async () => {
    const lab = new Lab();
    const empty = await lab.leaf([]);
    const unsorted = await lab.leaf(['b', 'a', 'c']);
    const trees = [
      lab.tree(await lab.inner(1, [['', await lab.inner(1, [['', unsorted]])]]), 1),
      lab.tree(await lab.inner(1, [['', empty]]), 1),
      lab.tree(unsorted, 0),
      lab.tree(unsorted, 3),
    ];
    for (const tree of trees) {
      for (const descending of [false, true]) {
        const cursor = new TreeCursor(tree, { from: encodeUtf8('a'), to: encodeUtf8('bb') }, descending);
        await expect(
          (async () => {
            while (await cursor.next());
          })(),
        ).rejects.toThrow(CorruptionError);
      }
      await expect((async () => tree.lookup(encodeUtf8('b')))()).rejects.toThrow(CorruptionError);
    }
  });
});
