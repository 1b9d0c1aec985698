/** Entries for the rows of a layer match the rows, are in order, and are made once. */
import { describe, expect, it } from 'vitest';
import { keyOf, layerOf } from '../../test/features/query/layers.ts';
import { realEnvironment } from '../base/env.ts';
import { Pacer } from '../base/pacer.ts';
import { Types } from '../format/types.ts';
import type { Node } from '../format/node.ts';
import { noBlocks } from '../tree/block-source.ts';
import { PartialNode, Tree, treeOfNode } from '../tree/tree.ts';
import { LayerIndexes, haveEntries } from './layer-indexes.ts';
import { endOfValues, TableShape } from '../schema/table-shape.ts';
import type { TableIndex } from '../schema/table-shape.ts';
import { layeredState } from './layered-state.ts';
import type { TableState } from './table-state.ts';

const shape = new TableShape({
  name: 't',
  version: 1,
  fields: [
    { name: 'id', typeId: Types.uint32 },
    { name: 'rank', typeId: Types.int32 },
  ],
  primaryKey: ['id'],
  indexes: [{ name: 'rank', fields: ['rank'] }],
});
const index = shape.indexes[0] as TableIndex;
const pacer = new Pacer(realEnvironment);

function stateOf(...layers: readonly Tree[]): TableState {
  return layeredState(shape, new Tree(noBlocks, null), new Map(), layers);
}

describe('Entries of a layer', () => {
  it('are in the order of the index, and know their rows; rows that are marked as deleted have none', async () => {
    const layer = layerOf(
      shape,
      new Map([
        [1, { id: 1, rank: 7 }],
        [2, null],
        [3, { id: 3, rank: -4 }],
        [4, { id: 4, rank: null }],
        [5, { id: 5, rank: 7 }],
      ]),
    );
    const { tree, rows } = await new LayerIndexes().entriesOf(layer, index, pacer);
    const node = tree.node as Node;
    const ids = Array.from({ length: node.count }, (_, i) => {
      const entry = node.key(i);
      const id = shape.keyValue(entry.slice(endOfValues(entry, index)));
      expect((layer.node as Node).key(rows[i] as number)).toEqual(keyOf(shape, id as number));
      return id;
    });
    expect(ids).toEqual([4, 3, 1, 5]);
  });

  it('are made once, for everybody, and count as memory of the layer', async () => {
    const layer = layerOf(shape, new Map([[1, { id: 1, rank: 7 }]]));
    const before = (layer.node as Node).memoryBytes;
    const indexes = new LayerIndexes();
    const [one, other] = await Promise.all([
      indexes.entriesOf(layer, index, pacer),
      indexes.entriesOf(layer, index, pacer),
    ]);
    expect(other).toBe(one);
    expect(indexes.entriesOf(layer, index, pacer)).toBe(one);
    expect((layer.node as Node).memoryBytes).toBeGreaterThan(before);
  });

  it('cannot be made where a layer is not all in memory, where a row could not be made, and of functions', () => {
    const whole = layerOf(shape, new Map([[1, { id: 1, rank: 7 }]]));
    const staged = new Tree(noBlocks, { birth: 0, id: '0'.repeat(16), count: 1, sizeBytes: 1, level: 0 });
    const { name, kind, rows } = whole.node as Node;
    const broken = new PartialNode(name, kind, rows, new Map([[0, new Error('not made')]]));
    const result = { name: 'f', typeId: Types.int32, version: 1, each: false } as const;
    expect(haveEntries(stateOf(whole), index)).toBe(true);
    expect(haveEntries(stateOf(whole, staged), index)).toBe(false);
    expect(haveEntries(stateOf(treeOfNode(broken), whole), index)).toBe(false);
    expect(haveEntries(stateOf(whole), { name: 'f', fields: [], unique: false, result })).toBe(false);
  });
});
