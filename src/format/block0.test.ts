import { describe, expect, it } from 'vitest';
import { encodeUtf8, checksum } from '../base/bytes.ts';
import { CorruptionError, UnknownFormatError } from '../base/errors.ts';
import { decodeBlock0, encodeBlock0 } from './block0.ts';
import type { Block0 } from './block0.ts';
import type { StoredMigration } from './stored-table.ts';
import { Types } from './types.ts';
import { newestVersion } from './version.ts';

const schema = {
  name: 't',
  version: 1,
  fields: [
    { name: 'id', typeId: Types.varchar, maxLength: 9 },
    { name: 'n', typeId: Types.int64, default: { constant: '-5' } },
    { name: 'j', typeId: Types.json },
  ],
  primaryKey: ['id'],
  indexes: [{ name: 'n', fields: ['n'] }],
};
const root = { birth: 1, id: '0123456789abcdef', count: 5, sizeBytes: 100, level: 0 };

const schema1 = {
  name: 'm',
  version: 1,
  fields: [{ name: 'id', typeId: Types.uuid }],
  primaryKey: ['id'],
  indexes: [],
};
const migration: StoredMigration = {
  table: 'm',
  from: 1,
  to: 2,
  phase: 'blocked',
  base: root,
  built: 'AQID',
  users: [
    { nodeId: 3, version: 2 },
    { nodeId: 0, version: null },
  ],
  problems: [{ key: '7', message: 'it threw' }],
  birth: 4,
  target: { rowsPerSecond: 100, keepOld: true },
};

const sample: Block0 = {
  format: 1,
  databaseId: 'db',
  revision: 4,
  generation: 2,
  changedMs: 1_700_000_000_400,
  nonce: 'n',
  appliedSeq: 7,
  logFloor: 3,
  applied: [
    { seq: 6, id: 'a' },
    { seq: 7, id: 'b' },
  ],
  tables: [
    { name: 't', versions: [{ schema, root, indexes: [{ name: 'n', root: null }] }] },
    {
      name: 'm',
      versions: [
        { schema: schema1, root, indexes: [] },
        { schema: { ...schema1, version: 2 }, root: null, indexes: [] },
      ],
    },
  ],
  inlined: [{ name: 'data/t/1', block: 'AAAA' }],
  collected: 1,
  history: { windowMs: 604_800_000, floor: 1 },
  snapshots: [
    {
      id: '000000000001-00112233445566cc',
      generation: 1,
      appliedSeq: 40,
      nodeId: 3,
      createdMs: 1_700_000_000_111,
      expiresMs: 1_700_003_600_111,
    },
  ],
  migrations: [migration],
  nodes: [0, 3],
  writer: { nodeId: 3, atMs: 5 },
};

function sealed(json: string): Uint8Array {
  const rest = `",${json.slice(1)}`;
  return encodeUtf8(`{"crc32":"${checksum(encodeUtf8(rest)).toString(16).padStart(8, '0')}${rest}`);
}

type Path = readonly (string | number)[];

/** Returns a copy in which the value at a path is replaced, or removed if the new value is undefined. */
function changed(path: Path, value: unknown): string {
  const copy = JSON.parse(JSON.stringify(sample)) as Record<string, unknown>;
  let place: Record<string | number, unknown> = copy;
  for (const step of path.slice(0, -1)) place = place[step] as Record<string | number, unknown>;
  place[path[path.length - 1] as string] = value;
  return JSON.stringify(copy);
}

function valueAt(path: Path): unknown {
  return path.reduce<unknown>((place, step) => (place as Record<string | number, unknown>)[step], sample);
}

const version: Path = ['tables', 0, 'versions', 0];
/** The fields that each object in Block 0 must have, by its path. */
const required: readonly (readonly [place: Path, names: readonly string[]])[] = [
  [[], ['databaseId', 'revision', 'generation', 'nonce', 'appliedSeq', 'logFloor', 'applied', 'tables', 'inlined']],
  [[], ['changedMs', 'collected', 'history', 'snapshots', 'migrations', 'nodes', 'writer']],
  [['history'], ['windowMs', 'floor']],
  [
    ['snapshots', 0],
    ['id', 'generation', 'appliedSeq', 'nodeId', 'createdMs', 'expiresMs'],
  ],
  [
    ['applied', 0],
    ['seq', 'id'],
  ],
  [
    ['tables', 0],
    ['name', 'versions'],
  ],
  [version, ['schema', 'root', 'indexes']],
  [
    [...version, 'root'],
    ['birth', 'id', 'count', 'sizeBytes', 'level'],
  ],
  [
    [...version, 'indexes', 0],
    ['name', 'root'],
  ],
  [
    [...version, 'schema'],
    ['name', 'version', 'fields', 'primaryKey', 'indexes'],
  ],
  [
    [...version, 'schema', 'fields', 0],
    ['name', 'typeId'],
  ],
  [
    [...version, 'schema', 'indexes', 0],
    ['name', 'fields'],
  ],
  [
    ['inlined', 0],
    ['name', 'block'],
  ],
  [['writer'], ['nodeId', 'atMs']],
  [
    ['migrations', 0],
    ['table', 'from', 'to', 'phase', 'base', 'built', 'users', 'problems', 'birth', 'target'],
  ],
  [['migrations', 0, 'target'], ['rowsPerSecond']],
  [
    ['migrations', 0, 'base'],
    ['birth', 'id', 'count', 'sizeBytes', 'level'],
  ],
  [
    ['migrations', 0, 'users', 0],
    ['nodeId', 'version'],
  ],
  [
    ['migrations', 0, 'problems', 0],
    ['key', 'message'],
  ],
];

/** Fields that may be null: an empty tree has no root, history is kept only on request, and `built` is null at the end. */
const nullable: ReadonlySet<string> = new Set(['root', 'history', 'base', 'built', 'version']);

const wrong: readonly (readonly [Path, unknown])[] = [
  [['revision'], -1],
  [['revision'], 1.5],
  [['generation'], 2 ** 53],
  [['logFloor'], 8],
  [['appliedSeq'], 8],
  [['collected'], 3],
  [['history', 'floor'], -1],
  [['snapshots', 0, 'generation'], 2],
  [['snapshots', 0, 'id'], '000000000001-../../../block0'],
  [['applied', 0, 'seq'], 5],
  [['nodes', 0], '0'],
  [['nodes', 0], -1],
  [['tables', 2], sample.tables[0]],
  [['tables', 0, 'versions', 1], sample.tables[0]?.versions[0]],
  [['tables', 1, 'versions', 1], undefined],
  [['tables', 1, 'versions', 1, 'schema', 'version'], 3],
  [['migrations'], []],
  [['migrations', 1], migration],
  [['migrations', 0, 'table'], 't'],
  [['migrations', 0, 'table'], 'nobody'],
  [['migrations', 0, 'from'], 2],
  [['migrations', 0, 'to'], 1],
  [['migrations', 0, 'phase'], 'done'],
  [['migrations', 0, 'phase'], 'switched'],
  [['migrations', 0, 'built'], 'A'],
  [['migrations', 0, 'target', 'rowsPerSecond'], 0],
  [['migrations', 0, 'target', 'keepOld'], 'yes'],
  [['migrations', 0, 'base', 'id'], 'x'],
  [['migrations', 0, 'users', 0, 'nodeId'], -1],
  [['tables', 0, 'name'], 'other'],
  [['tables', 0, 'versions'], []],
  [[...version, 'root', 'id'], '0123456789ABCDEF'],
  [[...version, 'root', 'level'], -1],
  [[...version, 'indexes'], []],
  [[...version, 'schema', 'version'], -1],
  [[...version, 'schema', 'primaryKey'], []],
  [[...version, 'schema', 'primaryKey'], ['nobody']],
  [[...version, 'schema', 'primaryKey'], ['j']],
  [[...version, 'schema', 'indexes', 0, 'fields'], ['j']],
  [[...version, 'schema', 'indexes', 0, 'fields'], ['nobody']],
  [[...version, 'schema', 'fields', 2], { name: 'n', typeId: 1 }],
  [[...version, 'schema', 'fields', 2, 'typeId'], 18],
  [[...version, 'schema', 'fields', 0, 'maxLength'], 0],
  [[...version, 'schema', 'fields', 1, 'default'], { constant: 'five' }],
  [[...version, 'schema', 'fields', 1, 'default'], { constant: null }],
  [[...version, 'schema', 'fields', 1, 'default'], {}],
];

const indexVersion = { index: 'by', version: 1.5, root: null, base: root, built: '', failed: 0, behindFrom: null };
const onFunction = [{ name: 'by', function: 'f', typeId: Types.varchar }];

/** Returns a table with an index on a function, or with other indexes instead, and with index versions. */
function withIndexVersions(
  indexVersions: unknown,
  { indexes }: { readonly indexes: unknown } = { indexes: onFunction },
): string {
  const copy = JSON.parse(changed(['format'], 2)) as typeof sample;
  const stored = copy.tables[0]?.versions[0] as unknown as { schema: Record<string, unknown>; editions?: unknown };
  stored.schema['functionIndexes'] = indexes;
  stored.editions = indexVersions;
  return JSON.stringify(copy);
}

describe('Block 0', () => {
  it('reads back as it was written', () => {
    expect(decodeBlock0(encodeBlock0(sample))).toEqual(sample);
    const unicode = { ...sample, tables: [], migrations: [], inlined: [], databaseId: 'naïve \u{1F600}' };
    expect(decodeBlock0(encodeBlock0(unicode))).toEqual(unicode);
    expect(decodeBlock0(sealed(JSON.stringify(sample)))).toEqual(sample);
  });

  it('is refused where anything is missing, null or of another type', () => {
    for (const [place, names] of required) {
      for (const name of names) {
        const path = [...place, name];
        const others: unknown[] = [undefined, true, {}];
        if (typeof valueAt(path) !== 'string') others.push('zz');
        if (!nullable.has(name)) others.push(null);
        for (const value of others) {
          const what = `${path.join('.')}: ${JSON.stringify(value)}`;
          expect(() => decodeBlock0(sealed(changed(path, value))), what).toThrow(CorruptionError);
        }
      }
    }
  });

  it('is refused where its values do not go together', () => {
    for (const [path, value] of wrong) {
      expect(() => decodeBlock0(sealed(changed(path, value))), path.join('.')).toThrow(CorruptionError);
    }
  });

  it('is refused if its drops are not such a list, or its format does not go with them', () => {
    const first = { table: 'a', slot: 0, nodeId: 1, atMs: 5 };
    const withDrops = (dropped: unknown, format = 11): Uint8Array =>
      sealed(JSON.stringify({ ...sample, format, dropped }));
    expect(decodeBlock0(withDrops({ tables: [first], forgotten: 0 })).dropped?.tables).toEqual([first]);
    expect(decodeBlock0(withDrops({ tables: [], forgotten: 0 })).dropped?.forgotten).toBe(0);
    const beyond = sample.appliedSeq + 1;
    const others = [
      null,
      true,
      [],
      {},
      { tables: [first] },
      { forgotten: 0 },
      { tables: first, forgotten: 0 },
      ...[-1, 0.5, '0', beyond].map((forgotten) => ({ tables: [], forgotten })),
      ...[
        null,
        {},
        { ...first, slot: -1 },
        { ...first, slot: beyond },
        { ...first, table: 1 },
        { ...first, nodeId: -1 },
      ].map((drop) => ({ tables: [drop], forgotten: 0 })),
      { tables: [first, first], forgotten: 0 },
      {
        tables: [
          { ...first, slot: 1 },
          { ...first, table: 'b' },
        ],
        forgotten: 0,
      },
    ];
    for (const dropped of others) {
      expect(() => decodeBlock0(withDrops(dropped)), JSON.stringify(dropped)).toThrow(CorruptionError);
    }
    expect(() => decodeBlock0(withDrops({ tables: [first], forgotten: 0 }, sample.format))).toThrow(CorruptionError);
    expect(() => decodeBlock0(withDrops(undefined))).toThrow(CorruptionError);
  });

  it('is refused if its index versions do not match its indexes on functions', () => {
    const functional = withIndexVersions([indexVersion]);
    expect(decodeBlock0(sealed(functional))).toEqual(JSON.parse(functional));
    expect(decodeBlock0(sealed(withIndexVersions([])))).toEqual(JSON.parse(withIndexVersions([])));
    expect(decodeBlock0(sealed(withIndexVersions([indexVersion, { ...indexVersion, version: 3 }])))).toBeDefined();
    for (const name of Object.keys(indexVersion)) {
      for (const value of [undefined, 'z z', {}, true]) {
        const what = `${name}: ${JSON.stringify(value)}`;
        expect(() => decodeBlock0(sealed(withIndexVersions([{ ...indexVersion, [name]: value }]))), what).toThrow(
          CorruptionError,
        );
      }
    }
    const others: readonly (readonly [unknown, unknown?])[] = [
      [undefined],
      [null],
      [[indexVersion, indexVersion]],
      [[{ ...indexVersion, failed: -1 }]],
      [[{ ...indexVersion, behindFrom: 0.5 }]],
      [[{ ...indexVersion, version: null }]],
      [[indexVersion], []],
      [[indexVersion], [{ name: 'by', function: 'f', typeId: Types.timestamp }]],
      [[indexVersion], [{ name: 'by', function: 'f' }]],
      [[indexVersion], [{ name: 'by', typeId: Types.varchar }]],
      [[], [{ name: 'n', function: 'f', typeId: Types.varchar }]],
      [[indexVersion], undefined],
    ];
    for (const [indexVersions, ...indexes] of others) {
      const text = withIndexVersions(indexVersions, ...(indexes.length > 0 ? [{ indexes: indexes[0] }] : []));
      expect(() => decodeBlock0(sealed(text)), text).toThrow(CorruptionError);
    }
    // A release that cannot read them would drop them, so the format must refuse it.
    expect(() => decodeBlock0(sealed(functional.replace('"format":2', '"format":1')))).toThrow(CorruptionError);
    expect(() => decodeBlock0(sealed(changed(['format'], 2)))).toThrow(CorruptionError);
  });

  it('is refused where its format is not known', () => {
    for (const format of [0, newestVersion + 1, '1', null, undefined]) {
      expect(() => decodeBlock0(sealed(changed(['format'], format)))).toThrow(UnknownFormatError);
    }
  });

  it('is refused where it is not JSON with its checksum in front', () => {
    const texts = ['', '{}', 'null', '[]', '{"crc32":"00000000"}', '{"crc32":"xxxxxxxx","format":1}'];
    for (const text of [...texts, JSON.stringify(sample)]) {
      expect(() => decodeBlock0(encodeUtf8(text)), text).toThrow(CorruptionError);
    }
  });
});
