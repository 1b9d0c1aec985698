/** The record of a load decides which objects are read and deleted: one that cannot be is refused, whatever its bytes are. */
import { describe, expect, it } from 'vitest';
import { CorruptionError, UnknownFormatError } from '../../../src/base/errors.ts';
import { checkStoredLoad, checkStoredRun, objectsOf, schemaOfLoad } from '../../../src/catalog/unfinished-loads.ts';
import { parseStagedName, stagedName } from '../../../src/format/object-names.ts';
import { openNode } from '../../../src/format/node.ts';
import { decodeRow } from '../../../src/format/row-decode.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { leafProblem } from '../../../src/tree/block-source.ts';
import { loadRuns, loads, loadSamples } from '../../features/golden/load-samples.ts';
import { mutate, mutateNode, resealBlock } from './mutations.ts';

const [right] = loadRuns;

const wrong: readonly (readonly [what: string, changes: Readonly<Record<string, unknown>>])[] = [
  ['no rows', { count: 0 }],
  ['half a row', { count: 1.5 }],
  ['less than no rows', { count: -1 }],
  ['rows without a number', { sourceRows: null }],
  ['a place in the source that is no number', { sourceRows: Number.NaN }],
  ['an offset below zero', { rootOffset: -1 }],
  ['an infinite offset', { rootOffset: Number.POSITIVE_INFINITY }],
  ['a tree that is too deep', { level: 41 }],
  ['no level', { level: null }],
  ['no key', { lastKey: null }],
  ['no objects', { objects: '[]' }],
  ['objects that are no list', { objects: '{"length":1}' }],
  ['objects that are no JSON', { objects: '[' }],
  ['an object that is no text', { objects: '[7]' }],
  ['an object outside its folder', { objects: '["../block0"]' }],
  ['an object of another name', { objects: '["0000000000000041-99999999-8888-4777-8666-555555555555/x"]' }],
];

describe('the record of a run', () => {
  it.each(wrong)('is refused with %s', (_, changes) => {
    expect(() => checkStoredRun('yearbooks', { ...right, ...changes })).toThrow(CorruptionError);
  });

  it('names nothing but staged objects', () => {
    for (const { objects } of loadRuns) {
      for (const id of objectsOf(objects) ?? []) expect(parseStagedName(stagedName(id))).toBeDefined();
    }
  });
});

describe('the record of a load', () => {
  it.each(Object.keys(loads[0] as object))('is refused without %s', (field) => {
    expect(() => checkStoredLoad('yearbooks', { ...loads[0], [field]: null })).toThrow(CorruptionError);
  });

  it.each(['', '[', '7', 'null', '{}', '{"name":"t"}', '[[]]'])('has no schema in the text %j', (text) => {
    expect(schemaOfLoad(text)).toBeUndefined();
  });
});

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

/** Reads everything in a leaf of records, as the engine does. Returns how many were read; throws what must not be thrown. */
function readRecords(kind: keyof typeof loadSamples, bytes: Uint8Array): number {
  const { shape, name } = loadSamples[kind];
  let read = 0;
  try {
    const node = openNode(name, bytes);
    if (leafProblem(node, shape.leafShape) !== undefined) return 0;
    for (let i = 0; i < node.count; i++) {
      const row = decodeRow(shape.layout, node, node.rowBase(i));
      if (kind === 'loads') schemaOfLoad(checkStoredLoad('yearbooks', row).schema);
      else {
        const { count, rootOffset, objects } = checkStoredRun('yearbooks', row);
        for (const id of objectsOf(objects) as string[]) {
          check(/^staged\/[^/]+$/.test(stagedName(id)), `an object outside its folder: ${id}`);
        }
        check(Number.isSafeInteger(count) && count > 0, `a run of ${count} rows`);
        check(Number.isSafeInteger(rootOffset), `a root at ${rootOffset}`);
      }
      read++;
    }
  } catch (error) {
    if (!(error instanceof CorruptionError || error instanceof UnknownFormatError)) throw error;
  }
  return read;
}

describe('damaged records of loads', () => {
  it.each(Object.keys(loadSamples) as (keyof typeof loadSamples)[])('in %s are read or refused', (kind) => {
    const random = new SeededRandom(`records of ${kind}`);
    const { name, bytes } = loadSamples[kind];
    expect(readRecords(kind, bytes)).toBe(2);
    let read = 0;
    let refused = 0;
    for (let i = 0; i < 2000; i++) {
      let damaged: Uint8Array;
      if (random.chance(0.5)) damaged = mutateNode(name, bytes, random);
      else {
        damaged = mutate(bytes, random);
        if (damaged.length >= 16) resealBlock(name, damaged);
      }
      if (readRecords(kind, damaged) > 0) read++;
      else refused++;
    }
    expect(Math.min(read, refused)).toBeGreaterThan(100);
  });
});
