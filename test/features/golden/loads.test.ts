/**
 * The system tables of loads that can be resumed, as a release wrote them: a release that resumes a load of an older one must read them.
 * `UPDATE_GOLDEN=1` writes the files that are not there.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { checkStoredLoad, checkStoredRun, objectsOf, schemaOfLoad } from '../../../src/catalog/unfinished-loads.ts';
import { openNode } from '../../../src/format/node.ts';
import { decodeRow } from '../../../src/format/row-decode.ts';
import { blockFormatVersion } from '../../../src/format/version.ts';
import { loadRuns, loads, loadSamples } from './load-samples.ts';
import { schema } from './samples.ts';

function stored(name: keyof typeof loadSamples): Uint8Array {
  const file = new URL(`v${blockFormatVersion}/${name}.bin`, import.meta.url);
  if (process.env['UPDATE_GOLDEN'] === '1' && !existsSync(file)) writeFileSync(file, loadSamples[name].bytes);
  return new Uint8Array(readFileSync(file));
}

function rowsIn(name: keyof typeof loadSamples, bytes: Uint8Array): Readonly<Record<string, unknown>>[] {
  const { shape, name: block } = loadSamples[name];
  const node = openNode(block, bytes);
  return Array.from({ length: node.count }, (_, i) => decodeRow(shape.layout, node, node.rowBase(i)));
}

/** A row with bytes as text, whatever class they are of. */
function plain(row: object): readonly unknown[] {
  return Object.entries(row).map(([field, value]: [string, unknown]) => [
    field,
    value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value,
  ]);
}

describe('the records of loads', () => {
  it.each(Object.keys(loadSamples) as (keyof typeof loadSamples)[])('in %s are stored as the same bytes', (name) => {
    expect(Buffer.from(loadSamples[name].bytes).toString('hex')).toBe(Buffer.from(stored(name)).toString('hex'));
  });

  it('are read from the bytes of then', () => {
    const found = rowsIn('loads', stored('loads')).map((row) => checkStoredLoad(String(row['name']), row));
    expect(found).toEqual(loads);
    expect(found.map((load) => schemaOfLoad(load.schema))).toEqual([schema, undefined]);
    const runs = rowsIn('load-runs', stored('load-runs')).map((row) => checkStoredRun('yearbooks', row));
    expect(runs.map(plain)).toEqual(loadRuns.map(plain));
    expect(runs.map(({ objects }) => objectsOf(objects)?.length)).toEqual([2, 1]);
  });
});
