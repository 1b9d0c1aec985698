/** Leaves of the system tables of loads that can be resumed, always the same: golden files pin them, and the fuzzer damages them. */
import { realEnvironment } from '../../../src/base/env.ts';
import { Operation, TableOperations } from '../../../src/batch/table-operations.ts';
import { loadRunsShape, loadsShape } from '../../../src/catalog/unfinished-loads.ts';
import type { StoredLoad, StoredLoadRun } from '../../../src/catalog/unfinished-loads.ts';
import { blockName } from '../../../src/format/object-names.ts';
import { NodeEntries } from '../../../src/format/node-entries.ts';
import type { TableShape } from '../../../src/schema/table-shape.ts';
import { schema } from './samples.ts';

/** Two loads, one of which has stored nothing yet. */
export const loads: readonly StoredLoad[] = [
  {
    name: 'yearbooks',
    table: schema.name,
    schema: JSON.stringify(schema),
    worker: '00112233445566778899aabbccddeeff',
    nodeId: 255,
    startedAt: new Date('2026-11-29T08:00:00.001Z'),
    takenAt: new Date('2026-11-29T09:30:00.500Z'),
    pin: '000000000005-00112233445566cc',
  },
  {
    name: 'ß'.repeat(100),
    table: 'other',
    schema: '{}',
    worker: 'f'.repeat(32),
    nodeId: 0,
    startedAt: new Date(0),
    takenAt: new Date(0),
    pin: '000000000006-00112233445566dd',
  },
];

/** The runs of the first one. */
export const loadRuns: readonly StoredLoadRun[] = [
  {
    load: 'yearbooks',
    run: 0,
    sourceRows: 2 ** 40,
    sourceKeys: 0xfedc_ba98,
    sourceKey: Uint8Array.of(1, 0x61),
    firstKey: Uint8Array.of(1, 0x61),
    lastKey: Uint8Array.of(1, 0x61, 0x62, 0),
    objects: JSON.stringify([
      '0000000000000041-99999999-8888-4777-8666-555555555555',
      '0000000000000057-99999999-8888-4777-8666-555555555556',
    ]),
    rootOffset: 8_388_600,
    rootBytes: 65_536,
    level: 2,
    count: 2 ** 40,
  },
  {
    load: 'yearbooks',
    run: 1,
    sourceRows: 2 ** 40 + 1,
    sourceKeys: 0,
    sourceKey: new Uint8Array(300).fill(7),
    firstKey: Uint8Array.of(2),
    lastKey: Uint8Array.of(2),
    objects: JSON.stringify(['0000000000000058-99999999-8888-4777-8666-555555555557']),
    rootOffset: 0,
    rootBytes: 120,
    level: 0,
    count: 1,
  },
];

interface LoadSample {
  readonly shape: TableShape;
  readonly name: string;
  readonly bytes: Uint8Array;
}

function leafOf(shape: TableShape, rows: readonly object[]): LoadSample {
  const operations = new TableOperations(shape, realEnvironment);
  for (const row of rows) operations.addDocument(Operation.insert, row);
  const entries = new NodeEntries(shape.leafShape);
  const { keys, arena } = operations;
  rows.forEach((_, i) => {
    entries.addRow(keys.bytes, keys.start(i), keys.endOf(i), arena, operations.base(i));
  });
  const name = blockName({ table: shape.name }, { birth: 5, id: '00112233445566ff' });
  return { shape, name, bytes: entries.encode(name, 0, entries.count) };
}

/** The leaves, by the names of their golden files. */
export const loadSamples: Readonly<Record<'loads' | 'load-runs', LoadSample>> = {
  loads: leafOf(loadsShape, loads),
  'load-runs': leafOf(loadRunsShape, loadRuns),
};
