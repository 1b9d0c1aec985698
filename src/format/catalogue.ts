/**
 * The catalogue: an object that holds the tables of a Block 0 with many tables. Then the size of each write of Block 0 depends
 * on the tables changed since the catalogue was written, not on the number of tables.
 *
 * The catalogue is a block of its own kind. Like the blocks of a table, it is named by birth and id and does not change. Its
 * body is the length of the text in bytes (u32), followed by JSON as raw DEFLATE:
 *
 *   { "schemas": [...], "tables": [...], "inlined": [...] }
 *
 * The members have the same form as in Block 0, except that tables which differ only in their names and roots share a schema:
 * "schemas" holds it without its name, and the versions of the tables hold its position there.
 */
import { deflate, inflate } from '#platform';
import { decodeUtf8, encodeUtf8 } from '../base/bytes.ts';
import { CorruptionError, invariant } from '../base/errors.ts';
import { BlockKind, blockHeaderBytes, openBlock, sealBlock } from './block.ts';
import { blockName } from './object-names.ts';
import { isCount, everyOf, isInlined, isTable } from './stored-table.ts';
import type { InlinedRoot, StoredTable } from './stored-table.ts';
import type { StoredSchema } from './stored-schema.ts';

/** A reference to a catalogue. */
export interface CatalogueRef {
  /** The generation that it was written for. */
  readonly birth: number;
  /** 16 hexadecimal digits. */
  readonly id: string;
  readonly sizeBytes: number;
}

export interface Catalogue {
  readonly ref: CatalogueRef;
  readonly tables: ReadonlyMap<string, StoredTable>;
  /** Root blocks as base64, by name. */
  readonly inlined: ReadonlyMap<string, string>;
}

/** Tables of users cannot have this name. */
const place = { table: '_catalogue' };
/** Longest text of a catalogue, in bytes. */
const maxTextBytes = 256 * 1024 * 1024;
/** High, because a catalogue is written rarely. */
const deflateLevel = 9;

/** Returns the name of the catalogue's object. */
export function catalogueName(ref: Pick<CatalogueRef, 'birth' | 'id'>): string {
  return blockName(place, ref);
}

/** Whether an object is a catalogue, by its name. */
export function isCatalogueName(name: string): boolean {
  return name.startsWith(catalogueFolder);
}

const catalogueFolder = blockName(place, { birth: 0, id: '' }).replace(/[^/]*$/, '');

/** Whether parsed JSON has the shape of a reference to a catalogue. */
export function isCatalogueRef(value: unknown): value is CatalogueRef {
  if (typeof value !== 'object' || value === null) return false;
  const { birth, id, sizeBytes } = value as Record<string, unknown>;
  return isCount(birth) && isCount(sizeBytes) && typeof id === 'string' && /^[0-9a-f]{16}$/.test(id);
}

/**
 * Returns a catalogue of tables, with the name and bytes of its object. `id`: 16 hexadecimal digits that no other object has.
 */
export function encodeCatalogue(
  { birth, id }: Pick<CatalogueRef, 'birth' | 'id'>,
  tables: readonly StoredTable[],
  inlined: readonly InlinedRoot[],
): { readonly catalogue: Catalogue; readonly name: string; readonly bytes: Uint8Array } {
  const text = encodeUtf8(JSON.stringify({ ...withSharedSchemas(tables), inlined }));
  invariant(text.length <= maxTextBytes, 'The tables are more than a catalogue may hold');
  const body = deflate(text, deflateLevel);
  const bytes = new Uint8Array(blockHeaderBytes + 4 + body.length);
  new DataView(bytes.buffer).setUint32(blockHeaderBytes, text.length, true);
  bytes.set(body, blockHeaderBytes + 4);
  const name = catalogueName({ birth, id });
  sealBlock(name, BlockKind.catalogue, bytes);
  return { catalogue: catalogueOf({ birth, id, sizeBytes: bytes.length }, tables, inlined), name, bytes };
}

/** Returns tables that hold positions in a list of schemas, and that list. */
function withSharedSchemas(tables: readonly StoredTable[]): { schemas: object[]; tables: object[] } {
  const schemas: object[] = [];
  const places = new Map<string, number>();
  const placeOf = (stored: StoredSchema): number => {
    const { name: _, ...schema } = stored;
    const text = JSON.stringify(schema);
    const known = places.get(text);
    if (known !== undefined) return known;
    places.set(text, schemas.length);
    return schemas.push(schema) - 1;
  };
  const shared = tables.map(({ name, versions }) => {
    return { name, versions: versions.map((version) => ({ ...version, schema: placeOf(version.schema) })) };
  });
  return { schemas, tables: shared };
}

/**
 * Returns parsed tables with their shared schemas put back. Malformed parts are left as they are, and later checks refuse them.
 */
function withOwnSchemas(schemas: unknown, tables: unknown): unknown {
  if (!Array.isArray(schemas) || !Array.isArray(tables)) return undefined;
  return tables.map((table: { name?: unknown; versions?: unknown } | null): unknown => {
    if (!Array.isArray(table?.versions)) return table;
    const versions = table.versions.map((version: { schema?: unknown } | null): unknown => {
      const schema: unknown = schemas[version?.schema as number];
      if (typeof schema !== 'object' || schema === null) return version;
      return { ...version, schema: { name: table.name, ...schema } };
    });
    return { ...table, versions };
  });
}

function catalogueOf(ref: CatalogueRef, tables: readonly StoredTable[], inlined: readonly InlinedRoot[]): Catalogue {
  return {
    ref,
    tables: new Map(tables.map((table) => [table.name, table])),
    inlined: new Map(inlined.map((root) => [root.name, root.block])),
  };
}

/** Checks and decodes the object of a catalogue. Throws `CorruptionError`. */
export function decodeCatalogue(ref: CatalogueRef, bytes: Uint8Array): Catalogue {
  const name = catalogueName(ref);
  const isOther = openBlock(name, bytes) !== BlockKind.catalogue || bytes.length !== ref.sizeBytes;
  if (isOther) throw new CorruptionError(name, 'This is not the catalogue that Block 0 names');
  const { schemas, inlined, ...parsed } = parse(name, bytes.subarray(blockHeaderBytes));
  const tables = withOwnSchemas(schemas, parsed.tables);
  if (!everyOf(tables, isTable) || !everyOf(inlined, isInlined)) throw wrong(name);
  const catalogue = catalogueOf(ref, tables, inlined);
  if (catalogue.tables.size !== tables.length || catalogue.inlined.size !== inlined.length) throw wrong(name);
  return catalogue;
}

/** Returns the content of a catalogue's object as a plain value. Throws `CorruptionError`. */
export function catalogueText(name: string, bytes: Uint8Array): object {
  if (openBlock(name, bytes) !== BlockKind.catalogue) throw new CorruptionError(name, 'This is not a catalogue');
  return { name, ...parse(name, bytes.subarray(blockHeaderBytes)) };
}

function parse(name: string, body: Uint8Array): { schemas?: unknown; tables?: unknown; inlined?: unknown } {
  let parsed: unknown;
  try {
    const length = new DataView(body.buffer, body.byteOffset, body.byteLength).getUint32(0, true);
    if (length > maxTextBytes) throw new RangeError(`it claims to hold ${length} bytes`);
    const text = inflate(body.subarray(4), Math.max(1, length));
    if (text.length !== length) throw new RangeError(`it holds ${text.length} bytes, not ${length} as it claims`);
    parsed = JSON.parse(decodeUtf8(text));
  } catch (cause) {
    throw new CorruptionError(name, 'The catalogue is not in the format that StoreDb writes', { cause });
  }
  if (typeof parsed !== 'object' || parsed === null) throw wrong(name);
  return parsed;
}

function wrong(name: string): CorruptionError {
  return new CorruptionError(name, 'The catalogue lacks a field, or a field has a wrong value');
}
