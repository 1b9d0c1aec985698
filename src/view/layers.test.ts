/** However layers are put together, a table shows the same rows, and looking for one goes through few of them. */
import { describe, expect, it } from 'vitest';
import { keyOf, layerOf } from '../../test/features/query/layers.ts';
import { decodeRow } from '../format/row-decode.ts';
import { Types } from '../format/types.ts';
import { SeededRandom } from '../testing/seeded-random.ts';
import { noBlocks } from '../tree/block-source.ts';
import { Tree } from '../tree/tree.ts';
import { TableShape } from '../schema/table-shape.ts';
import { layeredState } from './layered-state.ts';
import type { TableState } from './table-state.ts';

const shape = new TableShape({
  name: 't',
  version: 1,
  fields: [
    { name: 'id', typeId: Types.uint32 },
    { name: 'note', typeId: Types.varchar },
  ],
  primaryKey: ['id'],
  indexes: [],
});

type Change = readonly [id: number, note: string | null];

/** A row with a note, or the mark of one that was deleted; of several changes of a row the last counts. */
function layerOfChanges(changes: readonly Change[]): Tree {
  return layerOf(shape, new Map(changes.map(([id, note]) => [id, note === null ? null : { id, note }])));
}

const empty = layeredState(shape, new Tree(noBlocks, null), new Map());

function shown(state: TableState, keys: number): (unknown[] | undefined)[] {
  return Array.from({ length: keys }, (_, id) => {
    const rowRef = state.lookup(keyOf(shape, id));
    if (rowRef instanceof Promise) throw new Error('A layer in memory is read without waiting');
    return rowRef && Object.values(decodeRow(shape.layout, rowRef.source, rowRef.base));
  });
}

/** The changes of some commits: for each commit, a list of the changes of its flushes. */
function someCommits(random: SeededRandom, keys: number, most: number): Change[][][] {
  return Array.from({ length: random.integer(1, 8) }, (_, commit) =>
    Array.from({ length: random.integer(1, most) }, (_flush, flush) =>
      Array.from({ length: random.integer(1, 4) }, (): Change => {
        const id = random.integer(0, keys - 1);
        return [id, random.chance(0.25) ? null : `${commit}.${flush} of ${id}`];
      }),
    ),
  );
}

describe('Layers', () => {
  it.each([1, 2, 3, 4, 5, 6])('show the newest of each row, seed %i', (seed) => {
    const random = new SeededRandom(seed);
    const keys = random.integer(1, 60);
    const model = new Map<number, string | null>();
    let state = empty;
    for (const flushes of someCommits(random, keys, 40)) {
      let loose = state;
      for (const changes of flushes) {
        loose = loose.withLooseLayer(layerOfChanges(changes));
        for (const [id, note] of changes) model.set(id, note);
        const expected = Array.from({ length: keys }, (_, id) => {
          const note = model.get(id) ?? null;
          return note === null ? undefined : [id, note];
        });
        expect(shown(loose, keys)).toEqual(expected);
      }
      state = state.withLayers(flushes.map(layerOfChanges));
      expect(shown(state, keys)).toEqual(shown(loose, keys));
    }
  });

  it('of one commit become one, and few stay separate', () => {
    const flushes = Array.from({ length: 64 }, (_, id): Change[] => [[id, 'x']]);
    expect(empty.withLayers(flushes.map(layerOfChanges)).layers).toHaveLength(1);
    let loose = empty;
    let most = 0;
    for (const changes of flushes) {
      loose = loose.withLooseLayer(layerOfChanges(changes));
      most = Math.max(most, loose.layers.length);
    }
    expect(most).toBeLessThan(24);
    expect(shown(loose, 64)).toEqual(shown(empty.withLayers(flushes.map(layerOfChanges)), 64));
  });

  it('of many rows are merged instead of sorted', () => {
    const even = layerOfChanges(Array.from({ length: 800 }, (_, i): Change => [i * 2, 'even']));
    const some = layerOfChanges(Array.from({ length: 800 }, (_, i): Change => [i, i % 3 === 0 ? null : 'some']));
    const state = empty.withLayers([even, some]);
    expect(state.layers).toHaveLength(1);
    const found = shown(state, 1600);
    expect(found[2]).toEqual([2, 'some']);
    expect(found[3]).toBeUndefined();
    expect(found[1000]).toEqual([1000, 'even']);
    expect(found.filter((row) => row !== undefined)).toHaveLength(533 + 400);
  });
});
