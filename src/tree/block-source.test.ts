import { describe, expect, it } from 'vitest';
import { encodeUtf8 } from '../base/bytes.ts';
import { realEnvironment } from '../base/env.ts';
import { CorruptionError } from '../base/errors.ts';
import { BlockCache } from '../cache/block-cache.ts';
import { BlockKind } from '../format/block.ts';
import { NodeEntries } from '../format/node-entries.ts';
import type { EntryShape } from '../format/node-entries.ts';
import { openNode } from '../format/node.ts';
import type { Node } from '../format/node.ts';
import { RowLayout } from '../format/row-layout.ts';
import { Types } from '../format/types.ts';
import { MemoryDriver } from '../storage/memory-driver.ts';
import { BlockReader, checkLeaf, SingleFlight } from './block-source.ts';
import { BlockWriter, Uploads } from './block-writer.ts';

const layout = new RowLayout([{ name: 'id', typeId: Types.uint8 }]);
const longer = new RowLayout([{ name: 'id', typeId: Types.uint32 }]);
const rows: EntryShape = { kind: BlockKind.table, level: 0, layout, schemaVersion: 2 };
const entries: EntryShape = { kind: BlockKind.index, level: 0 };

function rowList({ layout: shape = layout, ...rest }: EntryShape): NodeEntries {
  const list = new NodeEntries({ ...rest, layout: shape });
  const row = shape.nullRow;
  const rowsView = new DataView(row.buffer);
  const source = { rows: row, rowsView, rowsStart: 0, heap: row, heapStart: 0, heapEnd: 0, name: '', text: undefined };
  list.addRow(encodeUtf8('k'), 0, 1, source, 0);
  return list;
}

function keyList(): NodeEntries {
  const list = new NodeEntries(entries);
  list.addKey(encodeUtf8('k'));
  return list;
}

function nodeOf(list: NodeEntries): Node {
  return openNode('b', list.encode('b', 0, list.count));
}

const strangers: readonly (readonly [what: string, NodeEntries, EntryShape])[] = [
  ['index entries where rows should be', keyList(), rows],
  ['rows where index entries should be', rowList(rows), entries],
  ['rows of another length', rowList({ ...rows, layout: longer }), rows],
  ['rows of another version', rowList({ ...rows, schemaVersion: 3 }), rows],
];

describe('a leaf', () => {
  it('is taken where it is of its tree', () => {
    checkLeaf(nodeOf(rowList(rows)), rows);
    checkLeaf(nodeOf(keyList()), entries);
    const inner = new NodeEntries({ kind: BlockKind.inner, level: 1 });
    inner.addChild(encodeUtf8(''), { birth: 1, id: '0'.repeat(16), count: 1, sizeBytes: 9 });
    checkLeaf(nodeOf(inner), rows);
  });

  it.each(strangers)('is refused: %s', async (_, list, expected) => {
    expect(() => checkLeaf(nodeOf(list), expected)).toThrow(CorruptionError);
    // Read from the store, with the right name and checksum.
    const driver = new MemoryDriver();
    const uploads = new Uploads({ driver, prefix: 'db', environment: realEnvironment });
    const writer = new BlockWriter(uploads, new BlockCache(10_000), realEnvironment, { table: 't' }, 1);
    const ref = await writer.put(list, 0, list.count);
    await uploads.finish();
    const reader = new BlockReader(driver, 'db', new BlockCache(10_000));
    await expect(reader.tree({ table: 't' }, expected).load(ref)).rejects.toThrow(CorruptionError);
    expect((await reader.tree({ table: 't' }, list.shape).load(ref)).count).toBe(1);
  });
});

function later(name: string): Promise<Node> {
  const empty = new NodeEntries({ kind: BlockKind.index, level: 0 });
  return Promise.resolve(openNode(name, empty.encode(name, 0, 0)));
}

describe('SingleFlight', () => {
  it('reads once for all callers at the same time, and again for later ones', async () => {
    const loads = new SingleFlight();
    let reads = 0;
    const read = (): Promise<Node> => {
      reads++;
      return later('n');
    };
    const [a, b] = await Promise.all([loads.share('n', read), loads.share('n', read)]);
    expect([a === b, reads]).toEqual([true, 1]);
    expect(await loads.share('n', read)).not.toBe(a);
    expect(reads).toBe(2);
    const failing = (): Promise<Node> => Promise.reject(new Error('gone'));
    await expect(loads.share('n', failing)).rejects.toThrow('gone');
    await loads.share('n', read);
    expect(reads).toBe(3);
  });
});
