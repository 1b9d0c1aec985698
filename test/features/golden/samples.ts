/** One sample of everything that the format stores, always the same: golden files pin it, and the fuzzer damages it. */
import { ByteWriter } from '../../../src/base/bytes.ts';
import { CorruptionError } from '../../../src/base/errors.ts';
import { BlockKind } from '../../../src/format/block.ts';
import { encodeBlock0 } from '../../../src/format/block0.ts';
import type { Block0 } from '../../../src/format/block0.ts';
import { catalogueName, encodeCatalogue } from '../../../src/format/catalogue.ts';
import type { Catalogue, CatalogueRef } from '../../../src/format/catalogue.ts';
import { commitBlockName, encodeCommit } from '../../../src/format/commit.ts';
import type { Commit } from '../../../src/format/commit.ts';
import { writeCount } from '../../../src/format/counts.ts';
import { blockName, commitName } from '../../../src/format/object-names.ts';
import { NodeEntries } from '../../../src/format/node-entries.ts';
import type { EntryShape } from '../../../src/format/node-entries.ts';
import { openNode } from '../../../src/format/node.ts';
import { writeKeyComponent, writeFailure, writeResult } from '../../../src/format/ordered-key.ts';
import { RowArena, appendNullRow, writeField } from '../../../src/format/row-encode.ts';
import { rowDeletedFlag, rowUpdatedFlag, RowLayout } from '../../../src/format/row-layout.ts';
import type { LayoutField } from '../../../src/format/row-layout.ts';
import type { StoredField, StoredSchema } from '../../../src/format/stored-schema.ts';
import type { StoredRoot, StoredTable, StoredTableVersion } from '../../../src/format/stored-table.ts';
import { Types } from '../../../src/format/types.ts';
import { TableShape } from '../../../src/schema/table-shape.ts';

export type Row = Readonly<Record<string, unknown>>;

/** In place of a result. */
export const failure: unique symbol = Symbol('failure');

/** A field of every type, the names out of order and one of them awkward. */
export const schema: StoredSchema = {
  name: 'Every Type',
  version: 3,
  fields: [
    { name: 'id', typeId: Types.varchar, maxLength: 40 },
    ...Object.entries(Types).map(([name, typeId]) => ({ name, typeId })),
    { name: '__proto__', typeId: Types.varchar },
    { name: 'status', typeId: Types.varchar, default: { constant: 'new' } },
    { name: 'key', typeId: Types.uuid, default: { generated: 'uuidv7' } },
  ],
  primaryKey: ['id'],
  indexes: [{ name: 'int32', fields: ['int32'] }],
};
export const layout = new RowLayout(schema.fields);

function rowOf(fields: Row): Row {
  const row: Record<string, unknown> = {};
  for (const { name } of schema.fields) {
    const value = Object.hasOwn(fields, name) ? fields[name] : null;
    Object.defineProperty(row, name, { value, enumerable: true, writable: true, configurable: true });
  }
  return row;
}

/** In key order: every type, everything null, text in the heap, and the extremes. */
export const rows: readonly Row[] = [
  rowOf({
    id: 'row 1',
    uint8: 200,
    uint16: 60_000,
    uint32: 4_000_000_000,
    uint64: 2n ** 63n + 5n,
    int8: -100,
    int16: -30_000,
    int32: -2_000_000_000,
    int64: -(2n ** 62n),
    float64: 0.1,
    float32: 0.5,
    varchar: 'twelve bytes',
    blob: '01234567-89ab-cdef-0123-456789abcdef',
    boolean: true,
    timestamp: new Date('2024-02-29T12:34:56.789Z'),
    json: { a: [1, 'é', true] },
    uuid: 'ffffffff-0000-4000-8000-00000000abcd',
    bytes: Buffer.from([0, 1, 254, 255]),
    status: 'old',
    ['__proto__']: 'own',
    key: '018f0000-0000-7000-8000-000000000001',
  }),
  rowOf({ id: 'row 2' }),
  rowOf({
    id: 'row 3 has a key of forty characters, all in all',
    varchar: 'naïve '.repeat(20),
    uint8: 0,
    json: ['x'.repeat(50)],
    bytes: Buffer.alloc(13, 7),
    status: '',
    float64: -Infinity,
    boolean: false,
  }),
  rowOf({
    id: 'row 4 \u{1F600}',
    uint64: 2n ** 64n - 1n,
    int64: -(2n ** 63n),
    timestamp: new Date(-8.64e15),
    varchar: 'ß'.repeat(6),
    float32: -0,
    bytes: Buffer.alloc(12, 9),
  }),
];

function rowKey(row: Row): Uint8Array {
  const writer = new ByteWriter();
  writeKeyComponent(writer, Types.varchar, row['id'] as string);
  return writer.finish();
}

/** The rows as a table leaf; in commits, the second row says that it was deleted and the third that it was updated. */
function tableLeaf(name: string, keepsMarks: boolean, schemaVersion: number = schema.version): Uint8Array {
  const shape: EntryShape = { kind: BlockKind.table, level: 0, layout, schemaVersion, keepsMarks };
  const entries = new NodeEntries(shape);
  const arena = new RowArena('memory/sample');
  rows.forEach((row, i) => {
    const base = appendNullRow(layout, arena.writer);
    for (const field of layout.fields) {
      const value = row[field.name];
      if (value !== null) writeField(arena.writer, base, arena.heapWriter, field, value);
    }
    const mark = i === 1 ? rowDeletedFlag : i === 2 ? rowUpdatedFlag : 0;
    arena.rows[base] = (arena.rows[base] as number) | mark;
    const key = rowKey(row);
    entries.addRow(key, 0, key.length, arena, base);
  });
  return entries.encode(name, 0, entries.count);
}

export const indexEntries: readonly (readonly [number | null, string])[] = [
  [null, 'row 2'],
  [null, 'row 4 \u{1F600}'],
  [-2_000_000_000, 'row 1'],
  [7, 'row 3\0with a zero'],
];

function indexLeaf(name: string): Uint8Array {
  const entries = new NodeEntries({ kind: BlockKind.index, level: 0 });
  for (const [value, id] of indexEntries) {
    const writer = new ByteWriter();
    writeKeyComponent(writer, Types.int32, value);
    writeKeyComponent(writer, Types.varchar, id);
    entries.addKey(writer.finish());
  }
  return entries.encode(name, 0, entries.count);
}

export const children = [
  { birth: 0, id: '00000000000000ff', count: 4, sizeBytes: 1000 },
  { birth: 0x0123_4567_89ab, id: 'fedcba9876543210', count: 0xba98_7654_3210, sizeBytes: 0xfedc_ba98 },
  { birth: 2, id: '0102030405060708', count: 1, sizeBytes: 65_536 },
];
export const separators = [new Uint8Array(0), Uint8Array.of(1, 0x61), Uint8Array.of(1, 0x61, 0x62, 0)];

function innerNode(name: string): Uint8Array {
  const entries = new NodeEntries({ kind: BlockKind.inner, level: 2 });
  children.forEach((child, i) => {
    entries.addChild(separators[i] as Uint8Array, child);
  });
  return entries.encode(name, 0, entries.count);
}

export const slot = 41;
export const commit: Commit = {
  databaseId: '11111111-2222-4333-8444-555555555555',
  commitId: 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
  nodeId: 9,
  atMs: 1_700_000_000_123,
  members: [
    {
      changes: [
        { schema, node: openNode(commitBlockName(schema.name), tableLeaf(commitBlockName(schema.name), true)) },
      ],
    },
    {
      changes: [
        {
          schema,
          node: openNode(commitBlockName(schema.name), innerNode(commitBlockName(schema.name))),
          staged: { runs: ['0000000000000041-99999999-8888-4777-8666-555555555555'] },
        },
      ],
    },
  ],
};

export const leafName = blockName({ table: schema.name }, { birth: 5, id: '00112233445566ff' });
export const indexLeafName = blockName({ table: schema.name, index: 'int32' }, { birth: 5, id: '00112233445566aa' });
export const innerName = blockName({ table: schema.name }, { birth: 6, id: '00112233445566bb' });

export const block0: Block0 = {
  format: 1,
  databaseId: commit.databaseId,
  revision: 77,
  generation: 6,
  changedMs: 1_700_000_000_400,
  nonce: '0123456789abcdef0123456789abcdef',
  appliedSeq: 41,
  logFloor: 12,
  applied: [
    { seq: 40, id: 'ffffffff-bbbb-4ccc-8ddd-eeeeeeeeeeee' },
    { seq: 41, id: commit.commitId },
  ],
  tables: [
    {
      name: schema.name,
      versions: [
        {
          schema,
          root: { birth: 6, id: '00112233445566bb', count: 12, sizeBytes: 164, level: 2 },
          indexes: [{ name: 'int32', root: null }],
        },
      ],
    },
  ],
  inlined: [{ name: innerName, block: Buffer.from(innerNode(innerName)).toString('base64') }],
  collected: 4,
  history: { windowMs: 604_800_000, floor: 2 },
  snapshots: [
    {
      id: '000000000005-00112233445566cc',
      generation: 5,
      appliedSeq: 40,
      nodeId: 3,
      createdMs: 1_700_000_000_111,
      expiresMs: 1_700_003_600_111,
    },
  ],
  migrations: [],
  nodes: [3, 9],
  writer: { nodeId: 9, atMs: 1_700_000_000_456 },
};

const [stored] = block0.tables[0]?.versions ?? [];
const schema4: StoredSchema = { ...schema, version: 4, indexes: [] };

/** The same while the table is migrated. */
export const migrating: Block0 = {
  ...block0,
  tables: [
    { name: schema.name, versions: stored === undefined ? [] : [stored, { schema: schema4, root: null, indexes: [] }] },
  ],
  migrations: [
    {
      table: schema.name,
      from: 3,
      to: 4,
      phase: 'building',
      base: { birth: 6, id: '00112233445566bb', count: 12, sizeBytes: 164, level: 2 },
      built: 'AWFi',
      users: [
        { nodeId: 3, version: 4 },
        { nodeId: 9, version: null },
      ],
      problems: [{ key: 'row 2', message: 'no' }],
      birth: 5,
      target: { rowsPerSecond: 500, keepOld: false },
    },
  ],
};

/** The same table with indexes on functions. */
export const schemaOfFunctions: StoredSchema = {
  ...schema,
  version: 5,
  functionIndexes: [
    { name: 'by domain', function: 'domain', typeId: Types.varchar },
    { name: 'rank', function: 'rank', typeId: Types.int32 },
  ],
};

/** What a function returned; two of them are not of the index's type, and on one row it failed. */
export const results: readonly (readonly [unknown, string])[] = [
  [null, 'row 2'],
  ['example.org', 'row 1'],
  ['\u{10000}', 'row 3'],
  [7, 'row 4'],
  [undefined, 'row 5'],
  [failure, 'row 6'],
];

function resultLeaf(name: string): Uint8Array {
  const entries = new NodeEntries({ kind: BlockKind.index, level: 0 });
  for (const [result, id] of results) {
    const writer = new ByteWriter();
    if (result === failure) writeFailure(writer);
    else writeResult(writer, Types.varchar, result);
    writeKeyComponent(writer, Types.varchar, id);
    entries.addKey(writer.finish());
  }
  return entries.encode(name, 0, entries.count);
}

export const resultLeafName = blockName(
  { table: schema.name, index: 'by domain' },
  { birth: 5, id: '00112233445566dd' },
);

/** Block 0 with index versions: one that is current, one that the table left behind, and one that is being made. */
export const functional: Block0 = {
  ...block0,
  format: 2,
  tables: [
    {
      name: schema.name,
      versions:
        stored === undefined
          ? []
          : [
              {
                ...stored,
                schema: schemaOfFunctions,
                editions: [
                  {
                    index: 'by domain',
                    version: 2,
                    root: { birth: 5, id: '00112233445566dd', count: 6, sizeBytes: 190, level: 0 },
                    base: stored.root,
                    built: null,
                    failed: 1,
                    behindFrom: null,
                  },
                  {
                    index: 'by domain',
                    version: 1.5,
                    root: null,
                    base: { birth: 3, id: '00112233445566ee', count: 11, sizeBytes: 160, level: 1 },
                    built: null,
                    failed: 0,
                    behindFrom: 4,
                  },
                  {
                    index: 'rank',
                    version: -1,
                    root: null,
                    base: stored.root,
                    built: 'AWFi',
                    failed: 0,
                    behindFrom: 6,
                  },
                ],
              },
            ],
    },
  ],
};

const other: StoredTable = {
  name: 'other',
  versions: stored === undefined ? [] : [{ ...stored, schema: { ...stored.schema, name: 'other' }, root: null }],
};
const catalogueId = { birth: 5, id: '00112233445566ee' };

/** Two tables of one schema. */
export const writtenCatalogue: ReturnType<typeof encodeCatalogue> = encodeCatalogue(
  catalogueId,
  [...block0.tables, other],
  [{ name: 'data/t/1', block: 'AAAA' }],
);

/** Its reference says a length that does not depend on who compresses it. */
export const catalogue: Catalogue = { ...writtenCatalogue.catalogue, ref: { ...catalogueId, sizeBytes: 512 } };

/** Gives the only catalogue that there is. */
export function findCatalogue({ birth, id, sizeBytes }: CatalogueRef): Catalogue {
  const { ref } = catalogue;
  if (birth === ref.birth && id === ref.id && sizeBytes === ref.sizeBytes) return catalogue;
  throw new CorruptionError(catalogueName({ birth, id }), 'The catalogue is missing');
}

/** Block 0 of which one table has changed since its catalogue was written, and one is new. */
export const catalogued: Block0 = {
  ...block0,
  format: 3,
  tables: [
    ...block0.tables,
    { ...other, versions: stored === undefined ? [] : [{ ...stored, schema: { ...stored.schema, name: 'other' } }] },
    {
      ...other,
      name: 'new',
      versions: stored === undefined ? [] : [{ ...stored, schema: { ...stored.schema, name: 'new' }, root: null }],
    },
  ],
  inlined: [
    { name: 'data/t/1', block: 'AAAA' },
    { name: 'data/t/2', block: 'BBBB' },
  ],
  catalogue,
};

/** A commit that names a staged run of a later slot, as loads write them. */
export const commitOfLoad: Commit = {
  ...commit,
  since: 40,
  members: [
    {
      changes: [
        {
          schema,
          node: openNode(commitBlockName(schema.name), innerNode(commitBlockName(schema.name))),
          staged: {
            runs: [
              '0000000000000041-99999999-8888-4777-8666-555555555555',
              '0000000000000057-99999999-8888-4777-8666-555555555555',
            ],
          },
        },
      ],
    },
  ],
};

/** A commit to the table in a version of its own. */
function commitOf(changed: StoredSchema): Commit {
  const name = commitBlockName(changed.name);
  const node = openNode(name, tableLeaf(name, true, changed.version));
  return { ...commit, members: [{ changes: [{ schema: changed, node }] }] };
}

export const commitOfFunctions = commitOf(schemaOfFunctions);

/** The same table after a field got another name, as instances write it that bring it up by a function. */
export const renamedSchema: StoredSchema = {
  ...schema,
  version: 5,
  renames: [{ field: schema.fields[1]?.name ?? '', from: ['before', 'long before'] }],
  code: '7',
};

const [firstTable] = block0.tables;

/** A Block 0 of the table in that version alone. */
function block0Of(changed: StoredSchema, format: number): Block0 {
  const versions = firstTable === undefined || stored === undefined ? [] : [{ ...stored, schema: changed }];
  return { ...block0, format, tables: firstTable === undefined ? [] : [{ ...firstTable, versions }] };
}

export const renamed = block0Of(renamedSchema, 4);

const commitOfRenamed = commitOf(renamedSchema);

function withRules(field: StoredField): StoredField {
  if (field.typeId === Types.int64) return { ...field, oneOf: ['-1', '9007199254740993'] };
  if (field.typeId === Types.timestamp) return { ...field, default: { generated: 'now' }, required: true };
  return field.typeId === Types.varchar ? { ...field, oneOf: ['draft', 'live'], required: true } : field;
}

/** The same table after its fields got rules. */
export const ruledSchema: StoredSchema = {
  ...schema,
  version: 6,
  fields: schema.fields.map(withRules),
};

export const ruled = block0Of(ruledSchema, 5);

const commitOfRules = commitOf(ruledSchema);

/** The same table with an index on some of its rows. */
export const partialSchema: StoredSchema = {
  ...schema,
  version: 7,
  indexes: schema.indexes.map((index, i) =>
    i > 0
      ? index
      : Object.assign({}, index, {
          unique: true as const,
          where: schema.fields
            .filter(({ typeId }) => typeId === Types.int64 || typeId === Types.boolean || typeId === Types.timestamp)
            .map(({ name, typeId }) => {
              if (typeId === Types.timestamp) return { field: name, values: 'not null' as const };
              return { field: name, values: typeId === Types.boolean ? [null, true] : ['-1', '9007199254740993'] };
            }),
        }),
  ),
};

export const partial = block0Of(partialSchema, 6);

const commitOfPartial = commitOf(partialSchema);

/** The same table with a primary key of two fields. */
export const compoundSchema: StoredSchema = { ...schema, version: 8, primaryKey: ['uint8', 'id'] };

export const compound: Block0 = block0Of(compoundSchema, 8);

/** The same table with an index that holds more fields than it is on, and has an entry for each element of a list. */
export const includingSchema: StoredSchema = {
  ...schema,
  version: 12,
  indexes: schema.indexes.map(({ name, fields }) => ({
    name,
    fields: [...fields, 'json'],
    include: ['float64', 'varchar'],
    each: true as const,
  })),
};

export const including: Block0 = block0Of(includingSchema, 12);

const commitOfIncluding = commitOf(includingSchema);

/** The same table with an index on the words of a text. */
export const textSchema: StoredSchema = {
  ...schema,
  version: 13,
  indexes: schema.indexes.map(({ name }) => ({
    name,
    fields: ['varchar'],
    text: { language: 'en', weights: [2.5] },
  })),
};

/** Words and primary keys of entries in the index on words of {@link textSchema}, in their order, and the numbers behind them. */
export const wordEntries: readonly (readonly [string, string, readonly number[]])[] = [
  ['cellar', 'a', [3, 0]],
  ['cellar', 'b', [200, 0]],
  ['cellar', 'bcd', [3, 1]],
  ['cellar', 'bce', [3, 7]],
  ['cellars', 'bce', [3, 0]],
  ['wine', 'a', [3, 300]],
];

/** The key of an entry of a word. */
export function wordKey([word, id, counts]: (typeof wordEntries)[number]): Uint8Array {
  const writer = new ByteWriter();
  writeKeyComponent(writer, Types.varchar, word);
  writeKeyComponent(writer, Types.varchar, id);
  for (const count of counts) writeCount(writer, count);
  return writer.finish();
}

function wordsLeaf(name: string): Uint8Array {
  const entries = new NodeEntries({ kind: BlockKind.index, level: 0, dense: [Types.varchar] });
  for (const entry of wordEntries) entries.addKey(wordKey(entry));
  return entries.encode(name, 0, entries.count);
}

export const wordsLeafName = blockName({ table: schema.name, index: 'int32' }, { birth: 5, id: '00112233445566ee' });

const withoutWords: Block0 = block0Of(textSchema, 13);

function rootWithWords(root: StoredRoot): StoredRoot {
  return root && { ...root, words: 4_294_967_297 };
}

function versionWithWords(version: StoredTableVersion): StoredTableVersion {
  const indexes = version.indexes.map(({ name, root }) => ({ name, root: rootWithWords(root) }));
  return { ...version, indexes };
}

/** The roots of its indexes say how many words there are. */
export const withWords: Block0 = {
  ...withoutWords,
  tables: withoutWords.tables.map(({ name, versions }) => ({ name, versions: versions.map(versionWithWords) })),
};

const commitOfTexts = commitOf(textSchema);

/** The same table with indexes on paths into a json field. */
export const pathsSchema: StoredSchema = {
  ...schema,
  version: 14,
  indexes: schema.indexes.map(({ name, fields }) => ({
    name,
    fields: ['json.0.b', ...fields, 'json.c\\.d'],
    paths: [
      { path: 'json.0.b', typeId: Types.float64 },
      { path: 'json.c\\.d', typeId: Types.timestamp },
    ],
    unique: true as const,
    include: ['float64'],
  })),
};

export const withPaths: Block0 = block0Of(pathsSchema, 14);

const commitOfPaths = commitOf(pathsSchema);

/** The same table with paths in the parts of an index: its list, its condition, and its included values. */
export const pathPartsSchema: StoredSchema = {
  ...schema,
  version: 15,
  indexes: schema.indexes.map(({ name, fields }) => ({
    name,
    fields: [...fields, 'json.a.b'],
    paths: [{ path: 'json.a.b', typeId: Types.json }],
    where: [{ field: 'json.c', values: [1, 'a', null, true] }],
    include: ['json.c\\.d', 'float64'],
    each: true as const,
  })),
};

export const withPathParts: Block0 = block0Of(pathPartsSchema, 14);

const commitOfPathParts = commitOf(pathPartsSchema);

/** The same table with an index on the elements of the lists that a function returns. */
export const functionListsSchema: StoredSchema = {
  ...schema,
  version: 16,
  functionIndexes: [{ name: 'words', function: 'wordsOf', typeId: Types.json, each: true }],
};

const withoutEntries: Block0 = block0Of(functionListsSchema, 12);

/** No version of the function has entries yet. */
export const withFunctionLists: Block0 = {
  ...withoutEntries,
  tables: withoutEntries.tables.map(({ name, versions }) => ({
    name,
    versions: versions.map((version) => ({ ...version, editions: [] })),
  })),
};

const commitOfFunctionLists = commitOf(functionListsSchema);

/** Keys of a table with a primary key of two fields, in their order. */
export const compoundKeys: readonly (readonly [number, string])[] = [
  [0, ''],
  [0, 'a'],
  [0, 'a\0b'],
  [7, 'a'],
  [7, 'aa'],
  [255, '\u{1F600}'],
];

/** The first row under each of these keys. */
function compoundLeaf(name: string): Uint8Array {
  const entries = new NodeEntries({ kind: BlockKind.table, level: 0, layout, schemaVersion: 8 });
  const shape = new TableShape(compoundSchema);
  for (const [uint8, id] of compoundKeys) {
    const arena = new RowArena('memory/sample');
    const base = appendNullRow(layout, arena.writer);
    for (const [field, value] of Object.entries({ uint8, id })) {
      writeField(arena.writer, base, arena.heapWriter, layout.field(field) as LayoutField, value);
    }
    const writer = new ByteWriter();
    shape.writeKey(writer, [uint8, id]);
    const key = writer.finish();
    entries.addRow(key, 0, key.length, arena, base);
  }
  return entries.encode(name, 0, entries.count);
}

const commitOfCompound: Commit = {
  ...commit,
  members: [
    {
      changes: [
        {
          schema: compoundSchema,
          node: openNode(commitBlockName(schema.name), compoundLeaf(commitBlockName(schema.name))),
        },
      ],
    },
  ],
};

/** The same table with rows that expire. */
export const expiringSchema: StoredSchema = { ...schema, expireAfter: { field: 'timestamp', seconds: 3600 } };

export const expiring: Block0 = block0Of(expiringSchema, 10);

const commitOfExpiring = commitOf(expiringSchema);

/** A commit that drops a table, and changes another one. */
export const commitOfDrop: Commit = {
  ...commit,
  members: [
    {
      changes: commit.members[0]?.changes ?? [],
      drops: [
        { table: 'sessions', version: 3 },
        { table: 'drafts', version: 1 },
      ],
    },
    { changes: [] },
  ],
};

/** A database in which tables were dropped. */
export const afterDrops: Block0 = {
  ...block0,
  format: 11,
  dropped: {
    tables: [
      { table: 'drafts', slot: 7, nodeId: 3, atMs: 1_700_000_000_123 },
      { table: 'sessions', slot: block0.appliedSeq, nodeId: 9, atMs: 1_700_000_000_400 },
    ],
    forgotten: 5,
  },
};

/** The same table while two indexes are added to it, one of which cannot be. */
export const adding: Block0 = {
  ...block0,
  format: 7,
  tables: block0.tables.map((table) => ({
    ...table,
    versions: table.versions.map((version) => ({
      ...version,
      added: [
        {
          index: Object.assign({ name: 'more' }, partialSchema.indexes[0], { name: 'more' }),
          root: version.root,
          built: 'AXJvdyA3AA==',
          rows: 7,
          birth: 3,
        },
        {
          index: { name: 'failed', fields: schema.primaryKey, unique: true as const },
          root: null,
          built: '',
          rows: 0,
          birth: 2,
          problem: 'Rows 1 and 2 both have 3 there.',
        },
      ],
    })),
  })),
};

/** Every stored object of the sample, by what it is. */
export const objects = {
  'table-leaf': { name: leafName, bytes: tableLeaf(leafName, false) },
  'index-leaf': { name: indexLeafName, bytes: indexLeaf(indexLeafName) },
  'inner-node': { name: innerName, bytes: innerNode(innerName) },
  commit: { name: commitName(slot), bytes: encodeCommit(slot, commit) },
  block0: { name: 'block0', bytes: encodeBlock0(block0) },
  'block0-migrating': { name: 'block0', bytes: encodeBlock0(migrating) },
  'result-leaf': { name: resultLeafName, bytes: resultLeaf(resultLeafName) },
  'commit-functions': { name: commitName(slot), bytes: encodeCommit(slot, commitOfFunctions) },
  'block0-functions': { name: 'block0', bytes: encodeBlock0(functional) },
  'commit-renames': { name: commitName(slot), bytes: encodeCommit(slot, commitOfRenamed) },
  'block0-renames': { name: 'block0', bytes: encodeBlock0(renamed) },
  'commit-rules': { name: commitName(slot), bytes: encodeCommit(slot, commitOfRules) },
  'block0-rules': { name: 'block0', bytes: encodeBlock0(ruled) },
  'commit-partial': { name: commitName(slot), bytes: encodeCommit(slot, commitOfPartial) },
  'block0-partial': { name: 'block0', bytes: encodeBlock0(partial) },
  'commit-compound': { name: commitName(slot), bytes: encodeCommit(slot, commitOfCompound) },
  'block0-compound': { name: 'block0', bytes: encodeBlock0(compound) },
  'commit-including': { name: commitName(slot), bytes: encodeCommit(slot, commitOfIncluding) },
  'block0-including': { name: 'block0', bytes: encodeBlock0(including) },
  'leaf-texts': { name: wordsLeafName, bytes: wordsLeaf(wordsLeafName) },
  'commit-texts': { name: commitName(slot), bytes: encodeCommit(slot, commitOfTexts) },
  'block0-texts': { name: 'block0', bytes: encodeBlock0(withWords) },
  'commit-paths': { name: commitName(slot), bytes: encodeCommit(slot, commitOfPaths) },
  'block0-paths': { name: 'block0', bytes: encodeBlock0(withPaths) },
  'commit-parts-paths': { name: commitName(slot), bytes: encodeCommit(slot, commitOfPathParts) },
  'block0-parts-paths': { name: 'block0', bytes: encodeBlock0(withPathParts) },
  'commit-lists-including': { name: commitName(slot), bytes: encodeCommit(slot, commitOfFunctionLists) },
  'block0-lists-including': { name: 'block0', bytes: encodeBlock0(withFunctionLists) },
  'commit-later-runs': { name: commitName(slot), bytes: encodeCommit(slot, commitOfLoad) },
  'commit-expiry': { name: commitName(slot), bytes: encodeCommit(slot, commitOfExpiring) },
  'block0-expiry': { name: 'block0', bytes: encodeBlock0(expiring) },
  'commit-drops': { name: commitName(slot), bytes: encodeCommit(slot, commitOfDrop) },
  'block0-drops': { name: 'block0', bytes: encodeBlock0(afterDrops) },
  'block0-adding': { name: 'block0', bytes: encodeBlock0(adding) },
  'block0-catalogue': { name: 'block0', bytes: encodeBlock0(catalogued) },
  catalogue: { name: writtenCatalogue.name, bytes: writtenCatalogue.bytes },
} as const;
export type ObjectKind = keyof typeof objects;
