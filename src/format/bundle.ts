/**
 * A bundle: one published state of some tables, for readers that have nothing but `fetch` (docs/format.md, "Bundles").
 *
 *   bundle             the pointer: which bundles there are, the newest first; the only object that is replaced
 *   manifests/NAME     the tables of a bundle: schemas, roots, and the nodes near the roots
 *   contents/NAME      the names of the blocks and blobs of a bundle, for publishers
 *   data/…, indexes/…  blocks, in the folders in which a database has them
 *   NUMBER/blobs/UUID  blobs
 *
 * Names tell the content: a reader that trusts the pointer need trust nothing else. Names of blocks, manifests and contents end in
 * a hash, and hold the number of the bundle that was published first with the object. Every pointer has a higher number than the
 * one before, so no name comes back once a later pointer has left it out: whoever deletes such an object late deletes no other.
 */
import { sha256 } from '#platform';
import { decodeUtf8, encodeUtf8, joinBytes, toHex } from '../base/bytes.ts';
import { CorruptionError, UnknownFormatError } from '../base/errors.ts';
import { blockHeaderBytes, sealBlock } from './block.ts';
import type { BlockKind, BlockRef } from './block.ts';
import { decodeCheckedJson, encodeCheckedJson } from './checked-json.ts';
import { decodeFrame, encodeFrame, frameBytes } from './compression.ts';
import {
  Codec,
  decodeEnvelopeHeader,
  encodeEnvelopeHeader,
  isEnvelope,
  maxCompressedContentBytes,
  plainHeaderBytes,
} from './envelope.ts';
import { blockName, parseBlobName } from './object-names.ts';
import type { TreePlace } from './object-names.ts';
import type { StoredIndex } from './stored-schema.ts';
import { everyOf, isCount, isInlined, isTable } from './stored-table.ts';
import type { InlinedRoot, StoredTable } from './stored-table.ts';

/** Version of the pointer, and of manifests. */
const bundleFormatVersion = 1;
/** Version of manifests with indexes on texts. */
const textFormatVersion = 2;
/** Version of manifests with indexes on some rows, on elements of lists, on paths, or with included fields. */
const entryFormatVersion = 3;
/** Name of the pointer. */
export const pointerName = 'bundle';
/** Largest pointer and manifest that are read, in bytes. */
export const maxPointerBytes: number = 1024 * 1024;
export const maxManifestBytes: number = 32 * 1024 * 1024;
/** Most bundles in a pointer. */
export const maxBundles = 1000;

/** Bytes of the hash in the names of manifests and contents. */
const nameHashBytes = 16;
const numberDigits = 12;
/** The birth of a block holds 32 bits of its hash, and the last 16 bits of the number of its bundle. */
const birthNumbers = 0x1_0000;

/** Returns the hash of the bytes of a block in a folder, apart from the checksum, which depends on the name. */
function blockHash(folder: string, block: Uint8Array): Uint8Array {
  return sha256(`${folder}\n`, block.subarray(0, 12), block.subarray(blockHeaderBytes));
}

function folderOf(name: string): string {
  return name.slice(0, name.lastIndexOf('/'));
}

/** A block of a bundle, sealed under its name. */
export interface BundleBlock {
  readonly name: string;
  readonly ref: Pick<BlockRef, 'birth' | 'id'>;
  readonly bytes: Uint8Array;
}

/**
 * Names a block after its bytes, and seals it under the name. `nameFor` may return the name of an equal block of an earlier bundle.
 */
export function sealBundleBlock(
  place: TreePlace,
  kind: BlockKind,
  block: Uint8Array,
  number: number,
  nameFor: (name: string) => string | undefined,
): BundleBlock {
  // The header is part of the hash: this fills it in.
  sealBlock('', kind, block);
  const hash = blockHash(folderOf(blockName(place, { birth: 0, id: '' })), block);
  const head = new DataView(hash.buffer, hash.byteOffset).getUint32(0);
  const named = { birth: head * birthNumbers + (number % birthNumbers), id: toHex(hash.subarray(4, 12)) };
  const known = nameFor(hashKey(blockName(place, named)));
  const ref = known === undefined ? named : refIn(known);
  const name = known ?? blockName(place, named);
  sealBlock(name, kind, block);
  return { name, ref, bytes: block };
}

function refIn(name: string): Pick<BlockRef, 'birth' | 'id'> {
  const [birth = '', id = ''] = name.slice(name.lastIndexOf('/') + 1).split('-');
  return { birth: Number.parseInt(birth, 16), id };
}

/** Returns the part of a block's name that its folder and bytes determine. */
export function hashKey(name: string): string {
  const at = name.lastIndexOf('/') + 1;
  return `${name.slice(0, at + 8)}${name.slice(at + numberDigits)}`;
}

/** Throws `CorruptionError` unless a block has the bytes that its name tells. */
export function checkBundleBlock(name: string, block: Uint8Array): void {
  const hash = toHex(blockHash(folderOf(name), block).subarray(0, 12));
  const at = name.lastIndexOf('/') + 1;
  if (`${name.slice(at, at + 8)}${name.slice(at + numberDigits + 1)}` === hash) return;
  throw new CorruptionError(name, 'The block does not have the bytes that its name tells');
}

/** Returns the name of a manifest or contents with these bytes. */
export function bundleObjectName(folder: 'manifests' | 'contents', number: number, bytes: Uint8Array): string {
  return `${folder}/${numberText(number)}-${toHex(sha256(bytes).subarray(0, nameHashBytes))}`;
}

/** Throws `CorruptionError` unless a manifest or contents have the bytes that their name tells. */
export function checkBundleObject(name: string, bytes: Uint8Array): void {
  if (name.endsWith(`-${toHex(sha256(bytes).subarray(0, nameHashBytes))}`)) return;
  throw new CorruptionError(name, 'The object does not have the bytes that its name tells');
}

function numberText(number: number): string {
  return number.toString(16).padStart(numberDigits, '0');
}

/** Returns the prefix of the blobs that were first published in a bundle, below the prefix of all bundles. */
export function bundleBlobsPrefix(number: number): string {
  return numberText(number);
}

/**
 * Returns whether an object can belong only to bundles up to one, by the number in its name: then it is not of a bundle that is being
 * published. Undefined for an object that is of no bundle.
 */
export function isOfBundles(name: string, upTo: number): boolean | undefined {
  const whole = /^(?:(?:manifests|contents)\/([0-9a-f]{12})-[0-9a-f]{32}|([0-9a-f]{12})\/blobs\/.+)$/.exec(name);
  if (whole !== null) return Number.parseInt((whole[1] ?? whole[2]) as string, 16) <= upTo;
  const part = /^(?:data\/[^/]+|indexes\/[^/]+\/[^/]+)\/[0-9a-f]{8}([0-9a-f]{4})-[0-9a-f]{16}$/.exec(name)?.[1];
  if (part === undefined) return undefined;
  // Numbers that are far apart have equal ends; a bundle that is being published is near.
  return (upTo - Number.parseInt(part, 16) + birthNumbers) % birthNumbers < birthNumbers / 2;
}

/** Returns the object to store for content: compressed, if that makes it shorter. */
export function packBundleObject(name: string, content: Uint8Array): Uint8Array {
  if (content.length > maxCompressedContentBytes) return content;
  const frames: Uint8Array[] = [];
  for (let at = 0; at < content.length; at += frameBytes) {
    frames.push(encodeFrame(Codec.deflate, content.subarray(at, at + frameBytes)));
  }
  const header = { codec: Codec.deflate, contentBytes: content.length, seal: undefined };
  const packed = joinBytes([encodeEnvelopeHeader(name, header), ...frames]);
  return packed.length < content.length ? packed : content;
}

/** Most bytes that a byte of deflated content expands to. */
const maxExpansion = 1040;

/** Returns the content of a stored object. Throws `CorruptionError`, also for content of more than `maxBytes`, before it is expanded. */
export function unpackBundleObject(name: string, bytes: Uint8Array, maxBytes: number): Uint8Array {
  const isPacked = isEnvelope(bytes);
  const header = isPacked ? decodeEnvelopeHeader(name, bytes) : undefined;
  if (header !== undefined && (header.codec !== Codec.deflate || header.seal !== undefined)) {
    throw new UnknownFormatError(name, 'The object is stored in a form that bundles do not have');
  }
  const contentBytes = header?.contentBytes ?? bytes.length;
  if (contentBytes > maxBytes || contentBytes > bytes.length * maxExpansion) {
    throw new CorruptionError(name, `The object is longer than the ${maxBytes} bytes that it may have`);
  }
  if (header === undefined) return bytes;
  const content = new Uint8Array(contentBytes);
  let at = plainHeaderBytes;
  for (let to = 0; to < contentBytes; to += frameBytes) {
    at = decodeFrame(name, Codec.deflate, bytes, at, content.subarray(to, Math.min(contentBytes, to + frameBytes)));
  }
  if (at !== bytes.length) throw new CorruptionError(name, 'A compressed object is too long');
  return content;
}

/** Returns the length of the longest object that {@link unpackBundleObject} accepts for content of a length. */
export function maxPackedBytes(contentBytes: number): number {
  return Math.max(contentBytes, plainHeaderBytes) + 1024;
}

/** A bundle in the pointer. */
export interface ListedBundle {
  /** The number of the pointer with which it was published. */
  readonly number: number;
  /** Name of the manifest. */
  readonly manifest: string;
  /** Name of the contents. */
  readonly contents: string;
  /** Position in the log of the newest state of the database that is known to have these rows. */
  readonly position: number;
  /** When it was published, by the clock of the process that published it, in milliseconds since 1970. */
  readonly publishedMs: number;
}

/** The pointer: the bundles of one database under one prefix. */
export interface BundlePointer {
  /** Identifies the database, without telling its id. */
  readonly source: string;
  /** The bundles that can be read, the newest first; at least one. */
  readonly bundles: readonly ListedBundle[];
}

/** Returns the text that identifies a database in its bundles. */
export function bundleSource(databaseId: string): string {
  return toHex(sha256('bundles of ', databaseId).subarray(0, nameHashBytes));
}

export function encodePointer({ source, bundles }: BundlePointer): Uint8Array {
  return encodeCheckedJson({ format: bundleFormatVersion, source, bundles });
}

const objectName = (folder: string): RegExp => new RegExp(`^${folder}/[0-9a-f]{${numberDigits}}-[0-9a-f]{32}$`);
const manifestName = objectName('manifests');
const contentsName = objectName('contents');

function isListed(value: unknown): value is ListedBundle {
  if (typeof value !== 'object' || value === null) return false;
  const { number, manifest, contents, position, publishedMs } = value as Record<string, unknown>;
  return (
    [number, position, publishedMs].every(isCount) &&
    typeof manifest === 'string' &&
    manifestName.test(manifest) &&
    typeof contents === 'string' &&
    contentsName.test(contents)
  );
}

function isSource(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{32}$/.test(value);
}

function checkFormat(name: string, format: unknown, newest: number): void {
  if (isCount(format) && format > 0 && format <= newest) return;
  throw new UnknownFormatError(
    name,
    `The bundle has format ${String(format)}, and this version of store-db reads ${newest}: upgrade it`,
  );
}

/** Throws `CorruptionError`, or `UnknownFormatError` for a later version. */
export function decodePointer(bytes: Uint8Array): BundlePointer {
  let checked: ReturnType<typeof decodeCheckedJson>;
  try {
    checked = decodeCheckedJson(bytes);
  } catch (cause) {
    throw new CorruptionError(pointerName, 'This is not the pointer of a bundle', { cause });
  }
  if (!checked.matches) throw new CorruptionError(pointerName, 'The pointer does not match its checksum');
  const { format, source, bundles } = checked.fields;
  checkFormat(pointerName, format, bundleFormatVersion);
  const isRight = isSource(source) && everyOf(bundles, isListed) && bundles.length > 0 && bundles.length <= maxBundles;
  if (!isRight) throw new CorruptionError(pointerName, 'The pointer lacks a field, or a field has a wrong value');
  return { source, bundles };
}

/** The manifest of a bundle. */
export interface BundleManifest {
  readonly source: string;
  /** The tables, each in one version, with its roots. */
  readonly tables: readonly StoredTable[];
  /** Blocks that are part of the manifest: they are not stored as objects. */
  readonly inlined: readonly InlinedRoot[];
}

/** Returns the lowest version of manifests that have such an index. */
function formatOf({ text, where, each, paths, include }: StoredIndex): number {
  if ([where, each, paths, include].some((part) => part !== undefined)) return entryFormatVersion;
  return text === undefined ? bundleFormatVersion : textFormatVersion;
}

export function encodeManifest({ source, tables, inlined }: BundleManifest): Uint8Array {
  const formats = tables.flatMap(({ versions }) => versions[0]?.schema.indexes.map(formatOf) ?? []);
  const format = Math.max(bundleFormatVersion, ...formats);
  return encodeUtf8(JSON.stringify({ format, source, tables, inlined }));
}

/** Parses the content of an object whose hash is checked. Throws `CorruptionError`. */
function parsed(name: string, bytes: Uint8Array): Readonly<Record<string, unknown>> {
  checkBundleObject(name, bytes);
  try {
    const value: unknown = JSON.parse(decodeUtf8(bytes));
    if (typeof value === 'object' && value !== null) return value as Readonly<Record<string, unknown>>;
  } catch (cause) {
    throw new CorruptionError(name, 'The object is not JSON', { cause });
  }
  throw new CorruptionError(name, 'The object is not JSON of an object');
}

/** Whether a table has one version, and nothing that only a database needs. */
function isPublished({ name, versions }: StoredTable): boolean {
  const [version, more] = versions;
  if (version === undefined || more !== undefined || name !== version.schema.name) return false;
  const { schema, root, indexes, editions, added } = version;
  const isPlain = editions === undefined && added === undefined && schema.functionIndexes === undefined;
  const names = new Set(schema.indexes.map((index) => index.name));
  // Queries take it that other indexes have an entry for every row.
  const areWhole =
    names.size === schema.indexes.length &&
    indexes.every((index, i) => {
      const of = schema.indexes[i];
      return of?.text ?? of?.each ?? of?.where ?? (index.root?.count ?? 0) === (root?.count ?? 0);
    });
  return isPlain && areWhole;
}

/** Decodes a manifest. Throws `CorruptionError`, or `UnknownFormatError` for a later version. */
export function decodeManifest(name: string, bytes: Uint8Array): BundleManifest {
  const { format, source, tables, inlined } = parsed(name, bytes);
  checkFormat(name, format, entryFormatVersion);
  const isRight =
    isSource(source) &&
    everyOf(tables, isTable) &&
    tables.every(isPublished) &&
    new Set(tables.map((table) => table.name)).size === tables.length &&
    everyOf(inlined, isInlined);
  if (!isRight) throw new CorruptionError(name, 'The manifest lacks a field, or a field has a wrong value');
  return { source, tables, inlined };
}

/** The objects of a bundle. */
export interface BundleContents {
  /** Names of the blocks that are objects. */
  readonly blocks: readonly string[];
  /** Names of the blocks that are part of the manifest. */
  readonly inlined: readonly string[];
  /** Names of the blobs. */
  readonly blobs: readonly string[];
}

export function encodeContents({ blocks, inlined, blobs }: BundleContents): Uint8Array {
  return encodeUtf8(JSON.stringify({ blocks, inlined, blobs }));
}

function isObjectName(value: unknown): value is string {
  return typeof value === 'string' && isOfBundles(value, 0) !== undefined;
}

/** Decodes contents. Throws `CorruptionError`. */
export function decodeContents(name: string, bytes: Uint8Array): BundleContents {
  const { blocks, inlined, blobs } = parsed(name, bytes);
  const areNames = (value: unknown): value is string[] => everyOf(value, isObjectName);
  const isRight = areNames(blocks) && areNames(inlined) && areNames(blobs);
  if (!isRight || !blobs.every((blob) => parseBlobName(blob.slice(numberDigits + 1)))) {
    throw new CorruptionError(name, 'The contents lack a field, or a field has a wrong value');
  }
  return { blocks, inlined, blobs };
}

/** Returns the number of the bundle in the name of a blob. */
export function numberInBlob(name: string): number {
  return Number.parseInt(name.slice(0, numberDigits), 16);
}
