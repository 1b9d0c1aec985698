/** The filter never denies a key that layers have, and denies most other keys. */
import { describe, expect, it } from 'vitest';
import { ByteWriter } from '../base/bytes.ts';
import { keyOf, layerOf } from '../../test/features/query/layers.ts';
import { NodeEntries } from '../format/node-entries.ts';
import { Types } from '../format/types.ts';
import { SeededRandom } from '../testing/seeded-random.ts';
import { noBlocks } from '../tree/block-source.ts';
import { Tree, treeOfNode } from '../tree/tree.ts';
import type { RowRef } from '../tree/tree.ts';
import { layeredState } from './layered-state.ts';
import { KeyFilter } from './table-state.ts';
import { indexLeafShape, TableShape } from '../schema/table-shape.ts';

const shape = new TableShape({
  name: 't',
  version: 1,
  fields: [{ name: 'id', typeId: Types.uint32 }],
  primaryKey: ['id'],
  indexes: [],
});

function layerOfIds(...ids: readonly number[]): Tree {
  return layerOf(shape, new Map(ids.map((id) => [id, { id }])));
}

/** A layer that counts how often it is searched. */
class CountedTree extends Tree {
  searches = 0;

  override lookup(...given: Parameters<Tree['lookup']>): RowRef | undefined | Promise<RowRef | undefined> {
    this.searches++;
    return super.lookup(...given);
  }
}

function counted({ ref, node }: Tree): CountedTree {
  return new CountedTree(noBlocks, ref, node);
}

const ids = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

describe('A filter of keys', () => {
  it.each([1, 2, 3])('knows the keys of all layers, however many there are, seed %i', (seed) => {
    const random = new SeededRandom(seed);
    const layers: Tree[] = [];
    let filter: KeyFilter | undefined;
    const known = new Set<number>();
    for (let i = 0; i < 40; i++) {
      const own = Array.from({ length: random.integer(1, 200) }, () => random.integer(0, 1e6));
      own.forEach((id) => known.add(id));
      const layer = layerOfIds(...new Set(own));
      layers.unshift(layer);
      filter = KeyFilter.with(filter, [layer], layers);
      for (const id of known) expect(filter?.mayHave(keyOf(shape, id), 5)).toBe(true);
    }
    const others = ids(2e6, 2e6 + 20_000).filter((id) => filter?.mayHave(keyOf(shape, id), 5) === true);
    expect(others.length).toBeLessThan(20_000 / 20);
  });

  it('distinguishes long keys by their ends, and treats keys with equal ends as one', () => {
    const key = (beginning: string, end: number): Uint8Array => {
      const writer = new ByteWriter();
      writer.append(new TextEncoder().encode(beginning.repeat(200)));
      writer.u8(end);
      return writer.finish();
    };
    const entries = new NodeEntries(indexLeafShape);
    entries.addKey(key('a', 1), 0, 201);
    const layers = [treeOfNode(entries.toNode('memory/test'))];
    const filter = KeyFilter.with(undefined, layers, layers);
    expect(filter?.mayHave(key('a', 1), 201)).toBe(true);
    expect(ids(2, 200).filter((end) => filter?.mayHave(key('a', end), 201)).length).toBeLessThan(20);
  });

  it('is none where a layer is not all in memory', () => {
    const staged = new Tree(noBlocks, { birth: 0, id: '0'.repeat(16), count: 1, sizeBytes: 1, level: 0 });
    expect(KeyFilter.with(undefined, [staged], [staged])).toBeUndefined();
    const state = layeredState(shape, new Tree(noBlocks, null), new Map()).withLayer(staged).withLayer(layerOfIds(1));
    expect(state.mayBeOverlaid(keyOf(shape, 2))).toBe(true);
  });

  it('spares the search of layers, of committed rows as of those that are being validated', () => {
    // Each a quarter of the one below, so that they are not joined.
    const layers = ids(0, 6).map((i) => counted(layerOfIds(...ids(1e5 * i, 1e5 * i + 4 ** (6 - i)))));
    const empty = layeredState(shape, new Tree(noBlocks, null), new Map());
    const committed = layers.reduce((state, layer) => state.withLayer(layer), empty);
    const validated = layers.reduce((state, layer) => state.withLooseLayer(layer), empty);
    for (const state of [committed, validated]) {
      layers.forEach((layer) => (layer.searches = 0));
      for (const id of ids(1e6, 1e6 + 1000)) expect(state.lookup(keyOf(shape, id))).toBeUndefined();
      for (const id of ids(1e6, 1e6 + 1000)) expect(state.isOverlaid(keyOf(shape, id))).toBe(false);
      expect(layers.reduce((sum, { searches }) => sum + searches, 0)).toBeLessThan(2000);
      expect(state.lookup(keyOf(shape, 5))).toBeDefined();
      expect(state.isOverlaid(keyOf(shape, 5))).toBe(true);
    }
  });

  it('is none for layers that were there before there was a filter', () => {
    const below = layerOfIds(1);
    const state = layeredState(shape, new Tree(noBlocks, null), new Map(), [below]).withLayer(layerOfIds(2, 3, 4));
    expect(state.lookup(keyOf(shape, 1))).toBeDefined();
    expect(state.lookup(keyOf(shape, 2))).toBeDefined();
  });
});
