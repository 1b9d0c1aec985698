/**
 * Files as a version of the format wrote them. What is encoded today must be the same bytes, and what was stored then
 * must still be read: a change that breaks this is a new version of the format, with files of its own beside the old.
 *
 * `UPDATE_GOLDEN=1` writes the files that the present version lacks; `UPDATE_GOLDEN=force` overwrites what differs, which
 * is right only for a version that was never released.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { CorruptionError } from '../../../src/base/errors.ts';
import { openStored } from '../../../src/cache/dense-node.ts';
import { BlockKind } from '../../../src/format/block.ts';
import { decodeBlock0 } from '../../../src/format/block0.ts';
import { decodeCatalogue } from '../../../src/format/catalogue.ts';
import { decodeCommit } from '../../../src/format/commit.ts';
import { openNode } from '../../../src/format/node.ts';
import type { Node } from '../../../src/format/node.ts';
import { readKeyComponent, skipKeyComponent, endOfResult, isFailedEntry } from '../../../src/format/ordered-key.ts';
import { decodeRow } from '../../../src/format/row-decode.ts';
import { rowMarks } from '../../../src/format/row-layout.ts';
import { Types } from '../../../src/format/types.ts';
import {
  addedIndexVersion,
  block0FormatVersion,
  blockFormatVersion,
  catalogueVersion,
  compoundKeyVersion,
  droppedTableVersion,
  expiryVersion,
  entryFormsVersion,
  functionIndexVersion,
  laterRunsVersion,
  fieldRulesVersion,
  partialIndexVersion,
  pathIndexVersion,
  textIndexVersion,
  renamesVersion,
} from '../../../src/format/version.ts';
import {
  adding,
  afterDrops,
  block0,
  catalogue,
  catalogued,
  children,
  commit,
  commitOfDrop,
  commitOfLoad,
  compound,
  compoundKeys,
  compoundSchema,
  expiring,
  expiringSchema,
  failure,
  findCatalogue,
  functional,
  functionListsSchema,
  including,
  includingSchema,
  indexEntries,
  layout,
  migrating,
  objects,
  partial,
  partialSchema,
  pathPartsSchema,
  pathsSchema,
  withFunctionLists,
  withPathParts,
  textSchema,
  withWords,
  wordEntries,
  wordKey,
  renamed,
  renamedSchema,
  results,
  rows,
  ruled,
  ruledSchema,
  schema,
  schemaOfFunctions,
  separators,
  slot,
  withPaths,
  writtenCatalogue,
} from './samples.ts';
import { TableShape } from '../../../src/schema/table-shape.ts';
import type { Block0 } from '../../../src/format/block0.ts';
import type { StoredSchema } from '../../../src/format/stored-schema.ts';
import type { ObjectKind, Row } from './samples.ts';

const update = process.env['UPDATE_GOLDEN'];

const laterVersions = {
  '-functions': functionIndexVersion,
  catalogue: catalogueVersion,
  '-renames': renamesVersion,
  '-rules': fieldRulesVersion,
  '-partial': partialIndexVersion,
  '-adding': addedIndexVersion,
  '-compound': compoundKeyVersion,
  '-including': entryFormsVersion,
  '-texts': textIndexVersion,
  '-paths': pathIndexVersion,
  '-later-runs': laterRunsVersion,
  '-expiry': expiryVersion,
  '-drops': droppedTableVersion,
};

/** Block 0 and the blocks have versions of their own; each object's files are named by the one that it is of. */
function fileOf(kind: ObjectKind): string {
  const own = kind.startsWith('block0') ? block0FormatVersion : blockFormatVersion;
  const later = Object.entries(laterVersions).find(([suffix]) => kind.endsWith(suffix));
  const version = later?.[1] ?? own;
  return fileURLToPath(new URL(`v${version}/${kind}.bin`, import.meta.url));
}

function stored(kind: ObjectKind): Uint8Array {
  const file = fileOf(kind);
  const { bytes } = objects[kind];
  const differs = !compressed.has(kind) && existsSync(file) && Buffer.compare(readFileSync(file), bytes) !== 0;
  if ((update === '1' && !existsSync(file)) || (update === 'force' && differs)) {
    mkdirSync(fileURLToPath(new URL('.', new URL(`file://${file}`))), { recursive: true });
    writeFileSync(file, bytes);
  }
  if (update === '1' && differs) {
    throw new Error(`${kind} is no longer what this version of the format stores: raise the version in version.ts`);
  }
  return new Uint8Array(readFileSync(file));
}

function expectRows(node: Node, expected: readonly Row[]): void {
  expect([node.kind, node.level, node.schemaVersion]).toEqual([BlockKind.table, 0, schema.version]);
  const decoded = expected.map((_, i) => Object.entries(decodeRow(layout, node, node.rowBase(i))));
  expect(decoded).toEqual(expected.map((row) => Object.entries(row)));
  const key = node.key(1);
  expect(readKeyComponent(key, 0, skipKeyComponent(key, 0, Types.varchar), Types.varchar)).toBe(expected[1]?.['id']);
}

function expectResults(node: Node): void {
  const read = results.map((_, i): readonly [unknown, string] => {
    const key = node.key(i);
    const end = endOfResult(key, Types.varchar);
    const isValue = (key[0] as number) < 2;
    const result = isValue ? readKeyComponent(key, 0, end, Types.varchar) : isFailedEntry(key) ? failure : 'another';
    return [result, readKeyComponent(key, end, key.length, Types.varchar) as string];
  });
  const isOther = (result: unknown): boolean => result === undefined || typeof result === 'number';
  expect(read).toEqual(results.map(([result, id]) => [isOther(result) ? 'another' : result, id]));
}

function expectChildren(node: Node): void {
  expect([node.kind, node.level]).toEqual([BlockKind.inner, 2]);
  expect(children.map((_, i) => node.child(i))).toEqual(children);
  expect(separators.map((_, i) => node.key(i))).toEqual(separators);
}

/** What is read from each stored object. */
function expectCommit(bytes: Uint8Array, version: number, changed: StoredSchema): void {
  expect(bytes[3]).toBe(version);
  const [change] = decodeCommit(slot, bytes).members[0]?.changes ?? [];
  expect(change?.schema).toEqual(changed);
}

function expectBlock0(bytes: Uint8Array, version: number, block: Block0): void {
  expect(decodeBlock0(bytes)).toEqual(block);
  expect(new TextDecoder().decode(bytes)).toContain(`"format":${version},`);
}

const readers: Readonly<Record<ObjectKind, (bytes: Uint8Array) => void>> = {
  'table-leaf': (bytes) => {
    const node = openNode(objects['table-leaf'].name, bytes);
    expectRows(node, rows);
    expect(rows.map((_, i) => (node.rows[node.rowBase(i)] as number) & rowMarks)).toEqual([0, 0, 0, 0]);
  },
  'index-leaf': (bytes) => {
    const node = openNode(objects['index-leaf'].name, bytes);
    const entries = indexEntries.map((_, i) => {
      const key = node.key(i);
      const middle = skipKeyComponent(key, 0, Types.int32);
      const value = readKeyComponent(key, 0, middle, Types.int32);
      return [value, readKeyComponent(key, middle, key.length, Types.varchar)];
    });
    expect(entries).toEqual(indexEntries);
  },
  'inner-node': (bytes) => expectChildren(openNode(objects['inner-node'].name, bytes)),
  commit: (bytes) => {
    const { members, ...header } = decodeCommit(slot, bytes);
    const { members: _, ...expected } = commit;
    expect(header).toEqual(expected);
    const [plain, staged] = members.map((member) => member.changes[0]);
    expect([plain?.schema, staged?.schema]).toEqual([schema, schema]);
    expect([plain?.staged, staged?.staged]).toEqual([undefined, commit.members[1]?.changes[0]?.staged]);
    const node = plain?.node as Node;
    expectRows(node, rows);
    expect(rows.map((_row, i) => (node.rows[node.rowBase(i)] as number) & rowMarks)).toEqual([0, 1, 2, 0]);
    expectChildren(staged?.node as Node);
  },
  block0: (bytes) => expect(decodeBlock0(bytes)).toEqual(block0),
  'block0-migrating': (bytes) => expect(decodeBlock0(bytes)).toEqual(migrating),
  'result-leaf': (bytes) => expectResults(openNode(objects['result-leaf'].name, bytes)),
  'commit-functions': (bytes) => {
    // What knows of no index on a function must not merge it.
    expectCommit(bytes, functionIndexVersion, schemaOfFunctions);
  },
  'block0-functions': (bytes) => expectBlock0(bytes, functionIndexVersion, functional),
  'commit-renames': (bytes) => {
    // What knows of no other names must not take the field for a new one.
    expectCommit(bytes, renamesVersion, renamedSchema);
  },
  'block0-renames': (bytes) => expectBlock0(bytes, renamesVersion, renamed),
  'commit-rules': (bytes) => {
    // What knows of no rules must not write rows that they refuse.
    expectCommit(bytes, fieldRulesVersion, ruledSchema);
  },
  'block0-rules': (bytes) => expectBlock0(bytes, fieldRulesVersion, ruled),
  'commit-partial': (bytes) => {
    // What knows of no conditions must not give the index entries of all rows.
    expectCommit(bytes, partialIndexVersion, partialSchema);
  },
  'block0-partial': (bytes) => expectBlock0(bytes, partialIndexVersion, partial),
  'commit-compound': (bytes) => {
    // What knows of one field for a key must not take the first for the whole of it.
    expectCommit(bytes, compoundKeyVersion, compoundSchema);
    const node = decodeCommit(slot, bytes).members[0]?.changes[0]?.node as Node;
    const shape = new TableShape(compoundSchema);
    expect(compoundKeys.map((_, i) => shape.keyValue(node.key(i)))).toEqual(compoundKeys);
    expect(compoundKeys.map((_, i) => shape.rowKey(node, node.rowBase(i)))).toEqual(compoundKeys);
  },
  'block0-compound': (bytes) => expectBlock0(bytes, compoundKeyVersion, compound),
  'commit-including': (bytes) => {
    // Releases that know of no included fields and of no elements must not make entries without them.
    expectCommit(bytes, entryFormsVersion, includingSchema);
  },
  'block0-including': (bytes) => expectBlock0(bytes, entryFormsVersion, including),
  'leaf-texts': (bytes) => {
    const node = openStored(objects['leaf-texts'].name, bytes);
    expect(wordEntries.map((_, i) => node.key(i))).toEqual(wordEntries.map(wordKey));
    // Releases that know of no dense leaves must not take it for one without entries.
    expect(() => openNode(objects['leaf-texts'].name, bytes)).toThrow(CorruptionError);
  },
  // Releases that know of no words must not count the entries of a text as one.
  'commit-texts': (bytes) => expectCommit(bytes, textIndexVersion, textSchema),
  'block0-texts': (bytes) => expectBlock0(bytes, textIndexVersion, withWords),
  // Releases that know of no paths must not take one for the name of a field.
  'commit-paths': (bytes) => expectCommit(bytes, pathIndexVersion, pathsSchema),
  'block0-paths': (bytes) => expectBlock0(bytes, pathIndexVersion, withPaths),
  'commit-parts-paths': (bytes) => expectCommit(bytes, pathIndexVersion, pathPartsSchema),
  'block0-parts-paths': (bytes) => expectBlock0(bytes, pathIndexVersion, withPathParts),
  'commit-lists-including': (bytes) => expectCommit(bytes, entryFormsVersion, functionListsSchema),
  'block0-lists-including': (bytes) => expectBlock0(bytes, entryFormsVersion, withFunctionLists),
  'commit-later-runs': (bytes) => {
    // Releases that know of no runs of later slots must not take the commit for a damaged one.
    expectCommit(bytes, laterRunsVersion, schema);
    const { members, since } = decodeCommit(slot, bytes);
    const [change] = members[0]?.changes ?? [];
    expect([since, change?.staged]).toEqual([commitOfLoad.since, commitOfLoad.members[0]?.changes[0]?.staged]);
    expectChildren(change?.node as Node);
  },
  'commit-expiry': (bytes) => {
    // What knows of no expiry must not show rows that have expired.
    expectCommit(bytes, expiryVersion, expiringSchema);
  },
  'block0-expiry': (bytes) => expectBlock0(bytes, expiryVersion, expiring),
  'commit-drops': (bytes) => {
    // What knows of no drops must not show the rows of the table.
    expectCommit(bytes, droppedTableVersion, schema);
    const { members } = decodeCommit(slot, bytes);
    expect(members.map(({ drops }) => drops)).toEqual(commitOfDrop.members.map(({ drops }) => drops));
  },
  'block0-drops': (bytes) => expectBlock0(bytes, droppedTableVersion, afterDrops),
  'block0-adding': (bytes) => expectBlock0(bytes, addedIndexVersion, adding),
  'block0-catalogue': (bytes) => {
    expect(decodeBlock0(bytes, findCatalogue)).toEqual(catalogued);
    // What knows of no catalogue must not take the tables in it for tables that do not exist.
    expect(new TextDecoder().decode(bytes)).toContain(`"format":${catalogueVersion},`);
  },
  catalogue: (bytes) => {
    const { ref } = writtenCatalogue.catalogue;
    const read = decodeCatalogue({ ...ref, sizeBytes: bytes.length }, bytes);
    expect([read.tables, read.inlined]).toEqual([catalogue.tables, catalogue.inlined]);
  },
};

/** The same text compressed by another library may be other bytes. */
const compressed: ReadonlySet<ObjectKind> = new Set<ObjectKind>(['catalogue']);

describe('the stored format', () => {
  for (const kind of Object.keys(objects) as ObjectKind[]) {
    it(`${kind}: encoding gives the stored bytes, and the stored bytes are read`, () => {
      const bytes = stored(kind);
      const written = compressed.has(kind) ? bytes : objects[kind].bytes;
      expect(Buffer.from(written).toString('hex')).toBe(Buffer.from(bytes).toString('hex'));
      readers[kind](objects[kind].bytes);
      readers[kind](bytes);
    });
  }
});
